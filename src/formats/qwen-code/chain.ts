import { readLines, type ReadStamp } from '../../fs/blocks.js'
import type { RecordHead } from './record-bytes.js'
import { TranscriptScan, type Place, type ScanProblem } from './scan.js'

/** What a record is to the chain and to the history. */
type RecordKind = 'prompt' | 'snapshot' | 'rewind' | 'other'

/** One record by its place in the chain of parents; fragments of one record share it. */
export interface ChainNode {
  readonly id: string
  readonly parent: string | undefined
  readonly kind: RecordKind
  /** As recorded (ISO 8601). */
  readonly time: string | undefined
  readonly places: readonly Place[]
}

/** A transcript by the heads of its records. */
export interface LoadedTranscript {
  readonly nodes: ReadonlyMap<string, ChainNode>
  /** Ids of the active chain, from its first record to the last. */
  readonly chain: readonly string[]
  /** The parent that is missing, and the record that names it: what stands before it is not reached (#6501). */
  readonly gap: { readonly record: string; readonly parent: string; readonly place: Place } | undefined
  /** The head of the first record that says where it was made. */
  readonly first: RecordHead | undefined
  readonly problems: readonly ScanProblem[]
  /** Names of backups in bytes that are no record. */
  readonly names: readonly string[]
  /** Largest time of a record up to `now`, and after it; ISO 8601. */
  readonly newest: string | undefined
  readonly future: string | undefined
  readonly stamp: ReadStamp
}

const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?Z$/

/**
 * Loads a transcript as the agent does (formats/qwen-code section 4): the leaf is the last record that is conversation, and
 * the active chain are its parents. A missing parent ends the chain; nothing is bridged.
 * @param now milliseconds since 1970; without it no time counts as in the future
 * @throws NotRegularError, or the system error when it cannot be read
 */
export function loadTranscript(path: string, source: number, now?: number): LoadedTranscript {
  const loader = new Loader(now === undefined ? undefined : new Date(now).toISOString())
  const stamp = readLines(path, new TranscriptScan(loader, source))
  return { ...loader.finish(), stamp }
}

/** The ids from the first record of a chain down to `leaf`, and the parent that is missing. */
export function chainTo(nodes: ReadonlyMap<string, ChainNode>, leaf: string | undefined): Pick<LoadedTranscript, 'chain' | 'gap'> {
  const chain: string[] = []
  const seen = new Set<string>()
  let gap: LoadedTranscript['gap']
  for (let at = leaf; at !== undefined && !seen.has(at); ) {
    const node = nodes.get(at)
    if (node === undefined) break
    seen.add(at)
    chain.push(at)
    const [place] = node.places
    if (node.parent !== undefined && !nodes.has(node.parent) && place !== undefined) gap = { record: at, parent: node.parent, place }
    at = node.parent
  }
  return { chain: chain.reverse(), gap }
}

/** The nearest message of the user's above a record; with `stopsAtRewind` none beyond a rewind. */
export function promptAbove(nodes: ReadonlyMap<string, ChainNode>, from: ChainNode, stopsAtRewind: boolean): string | undefined {
  const seen = new Set([from.id])
  for (let at = from.parent; at !== undefined && !seen.has(at); ) {
    const node = nodes.get(at)
    if (node === undefined || (stopsAtRewind && node.kind === 'rewind')) return undefined
    if (node.kind === 'prompt') return at
    seen.add(at)
    at = node.parent
  }
  return undefined
}

interface OpenNode extends ChainNode {
  readonly places: Place[]
}

class Loader {
  readonly #now: string | undefined
  readonly #nodes = new Map<string, OpenNode>()
  readonly #problems: ScanProblem[] = []
  readonly #names = new Set<string>()
  #leaf: string | undefined
  #first: RecordHead | undefined
  #newest: string | undefined
  #future: string | undefined

  constructor(now: string | undefined) {
    this.#now = now
  }

  record(head: RecordHead, place: Place): void {
    this.#noteTime(head.timestamp)
    if (this.#first === undefined && head.cwd !== undefined) this.#first = head
    const { uuid } = head
    if (uuid === undefined) return
    const known = this.#nodes.get(uuid)
    if (known !== undefined) known.places.push(place)
    else this.#nodes.set(uuid, { id: uuid, parent: head.parentUuid ?? undefined, kind: kindOf(head), time: head.timestamp, places: [place] })
    if (!isAside(head)) this.#leaf = uuid
  }

  names(names: readonly string[]): void {
    for (const name of names) this.#names.add(name)
  }

  problem(problem: ScanProblem): void {
    this.#problems.push(problem)
  }

  finish(): Omit<LoadedTranscript, 'stamp'> {
    return {
      nodes: this.#nodes,
      ...chainTo(this.#nodes, this.#leaf),
      first: this.#first,
      problems: this.#problems,
      names: [...this.#names],
      newest: this.#newest,
      future: this.#future,
    }
  }

  #noteTime(time: string | undefined): void {
    if (time === undefined || !isoTime.test(time)) return
    if (this.#now !== undefined && time > this.#now) {
      if (this.#future === undefined || time > this.#future) this.#future = time
    } else if (this.#newest === undefined || time > this.#newest) this.#newest = time
  }
}

function kindOf({ type, subtype, provenance }: RecordHead): RecordKind {
  if (type === 'user') return provenance === undefined || provenance === 'real_user' ? 'prompt' : 'other'
  if (type !== 'system') return 'other'
  return subtype === 'file_history_snapshot' ? 'snapshot' : subtype === 'rewind' ? 'rewind' : 'other'
}

/** Records about artifacts and about sessions are no conversation: they are never the leaf (section 4, step 2). */
function isAside({ type, subtype }: RecordHead): boolean {
  return type === 'system' && (subtype?.startsWith('session_') === true || subtype === 'parent_session')
}
