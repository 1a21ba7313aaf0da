import type { Place } from './scan.js'
import type { Snapshot } from './snapshots.js'

/** A snapshot of the list, and where its content stands: the record, and its number in that record. */
export interface ListedSnapshot extends Snapshot {
  readonly place: Place
  readonly index: number
}

/** A prompt id that was recorded with another time than before: numbers start anew after a rewind and a restart. */
export interface RepeatedPrompt {
  readonly promptId: string
  readonly before: string | undefined
  readonly after: string | undefined
  readonly place: Place
}

/**
 * The list of snapshots that the agent builds when it loads a session (formats/qwen-code section 4, step 4). An unknown
 * prompt id is appended; a known one gets its new content at its old place; one that was evicted stays so.
 */
export class LoadedList {
  readonly #cap: number
  readonly #list = new Map<string, ListedSnapshot>()
  readonly #evicted = new Set<string>()
  readonly #repeated: RepeatedPrompt[] = []

  constructor(cap: number) {
    this.#cap = cap
  }

  add(snapshot: ListedSnapshot): void {
    const { promptId } = snapshot
    if (this.#evicted.has(promptId)) return
    const known = this.#list.get(promptId)
    if (known !== undefined && known.time !== snapshot.time) {
      this.#repeated.push({ promptId, before: known.time, after: snapshot.time, place: snapshot.place })
    }
    // A map keeps the place of a key whose value is set again.
    this.#list.set(promptId, snapshot)
    if (this.#list.size <= this.#cap) return
    const [oldest] = this.#list.keys()
    if (oldest === undefined) return
    this.#list.delete(oldest)
    this.#evicted.add(oldest)
  }

  /** The snapshots that a rewind can go to, in the order of the list. */
  get snapshots(): ListedSnapshot[] {
    return [...this.#list.values()]
  }

  get repeated(): readonly RepeatedPrompt[] {
    return this.#repeated
  }
}
