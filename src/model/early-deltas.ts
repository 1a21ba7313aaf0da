import { isFollowed } from './backup.js'
import type { DeltaEvent } from './history.js'

/** Deltas of one checkpoint that stand before its snapshot. */
export interface EarlyDeltasOfOne {
  /** The first one of each path: only that one can add it. */
  readonly byPath: ReadonlyMap<string, DeltaEvent>
  /** One for each backup name: all of them count as references. */
  readonly byName: ReadonlyMap<string, DeltaEvent>
}

/** Keeps deltas that stand before the snapshot they belong to, with memory that does not grow when they repeat (R43). */
export class EarlyDeltas {
  readonly #byCheckpoint = new Map<string, { readonly byPath: Map<string, DeltaEvent>; readonly byName: Map<string, DeltaEvent> }>()

  add(delta: DeltaEvent): void {
    const { checkpoint, path, record } = delta
    const known = this.#byCheckpoint.get(checkpoint) ?? { byPath: new Map<string, DeltaEvent>(), byName: new Map<string, DeltaEvent>() }
    this.#byCheckpoint.set(checkpoint, known)
    if (!known.byPath.has(path)) known.byPath.set(path, delta)
    if (isFollowed(record) && !known.byName.has(record.name)) known.byName.set(record.name, delta)
  }

  /** Hands over the deltas of a checkpoint that is opened now. */
  take(checkpoint: string): EarlyDeltasOfOne | undefined {
    const known = this.#byCheckpoint.get(checkpoint)
    this.#byCheckpoint.delete(checkpoint)
    return known
  }

  /** What is left: deltas of checkpoints that no snapshot opened. */
  rest(): Iterable<EarlyDeltasOfOne> {
    return this.#byCheckpoint.values()
  }
}
