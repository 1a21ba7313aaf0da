import { isFields, type Fields } from '../../model/fields.js'
import type { DeltaEvent } from '../../model/history.js'
import { readHistoryLine } from './lines.js'
import { parseRecord } from '../parse-record.js'

interface Place {
  readonly source: number
  readonly offset: number
  readonly length: number
}

type ReadAt = (source: number, offset: number, length: number) => Buffer

interface OpenCheckpoint {
  readonly order: number
  /** The snapshot line that holds, by its place: a flood of snapshots costs no memory. */
  snapshot: Place
  /** True when that line is as a fork has it: under its own id, and no update. */
  isOwn: boolean
  /** Records of the delta lines after it, as they stand in the lines. */
  deltas: [path: string, record: unknown][]
}

interface Original {
  readonly name: string | null
  /** The record as it stands in its line. */
  readonly record: unknown
  readonly checkpoint: string
  /** The snapshot line it stands in; of a delta, its position among those of the checkpoint. */
  readonly at: Place | number
}

const lineFeed = Buffer.from('\n')

/**
 * The history lines of a transcript brought down to one snapshot for each checkpoint (formats/claude-code section 2,
 * "Folding"), as a fork begins with them. Records keep every field they have.
 */
export class FoldedLines {
  readonly #checkpoints = new Map<string, OpenCheckpoint>()
  readonly #waiting = new Map<string, [path: string, record: unknown][]>()
  /** Path to its first record of version 1 in any line. */
  readonly #originals = new Map<string, Original>()
  /** Paths that any line names. */
  readonly #seen = new Set<string>()
  /** True when records of version 1 disagree, or one comes late: which of them holds then depends on every line. */
  #isOdd = false
  #kept: string[] = []
  /** Originals that no kept checkpoint would hold otherwise. */
  #homeless = new Map<string, unknown>()

  /** Takes a line of a `file-history-` type. False when the type is not known. */
  add(value: Fields, place: Place): boolean {
    const line = readHistoryLine(value, { source: place.source, offset: place.offset })
    if (line.kind === 'newer') return false
    if (line.kind !== 'event') return true
    const { event } = line
    if (event.kind === 'snapshot') {
      const raw = trackedOf(value)
      for (const [path, { name, version, unusable }] of event.files) {
        this.#seen.add(path)
        if (unusable === undefined && version === 1) this.#note(path, { name, record: raw[path], checkpoint: event.checkpoint, at: place })
      }
      const known = this.#checkpoints.get(event.checkpoint)
      const isOwn = value.messageId === event.checkpoint && value.isSnapshotUpdate === false && isFields(value.snapshot) && value.snapshot.messageId === event.checkpoint
      if (known === undefined) {
        const deltas = this.#waiting.get(event.checkpoint) ?? []
        this.#waiting.delete(event.checkpoint)
        this.#checkpoints.set(event.checkpoint, { order: this.#checkpoints.size, snapshot: place, isOwn, deltas })
      } else {
        known.snapshot = place
        known.isOwn = isOwn
        known.deltas = []
      }
    } else if (event.kind === 'delta') this.addDelta(event, value.backup)
    return true
  }

  /** Takes a delta line that is parsed already. */
  addDelta(event: DeltaEvent, backup: unknown): void {
    const { name, version, unusable } = event.record
    if (this.#seen.has(event.path)) this.#isOdd = true
    this.#seen.add(event.path)
    const deltas = this.#checkpoints.get(event.checkpoint)?.deltas ?? this.#waitingFor(event.checkpoint)
    if (unusable === undefined && version === 1) this.#note(event.path, { name, record: backup, checkpoint: event.checkpoint, at: deltas.length })
    deltas.push([event.path, backup])
  }

  #waitingFor(checkpoint: string): [path: string, record: unknown][] {
    const waiting = this.#waiting.get(checkpoint) ?? []
    this.#waiting.set(checkpoint, waiting)
    return waiting
  }

  /** Whether a checkpoint was opened before another one. */
  isOlder(checkpoint: string, than: string): boolean {
    const order = this.#checkpoints.get(than)?.order
    return order === undefined || (this.#checkpoints.get(checkpoint)?.order ?? order) < order
  }

  /** Chooses the checkpoints that stay. */
  keep(stays: (checkpoint: string) => boolean, read: ReadAt): void {
    this.#kept = [...this.#checkpoints.keys()].filter(stays)
    this.#homeless = new Map()
    // Mostly every original stands in a line that stays: then nothing has to be read for this.
    if (!this.#isOdd && this.#allAtHome()) return
    for (const [path, { record }] of this.#originals) this.#homeless.set(path, record)
    const seen = new Set<string>()
    for (const id of this.#kept) {
      const { value, tracked } = this.#fold(id, read)
      const folded = { ...value, snapshot: { ...(value.snapshot as Fields), trackedFileBackups: tracked } }
      const line = readHistoryLine(folded, { source: 0, offset: 0 })
      if (line.kind !== 'event' || line.event.kind !== 'snapshot') continue
      for (const [path, { name, version, unusable }] of line.event.files) {
        if (version !== 1 || unusable !== undefined || seen.has(path)) continue
        seen.add(path)
        if (name === this.#originals.get(path)?.name) this.#homeless.delete(path)
      }
    }
  }

  get count(): number {
    return this.#kept.length
  }

  /** One snapshot line for each checkpoint that stays, with its line feed. */
  *lines(read: ReadAt): Generator<Buffer> {
    const homeless = new Map(this.#homeless)
    for (const id of this.#kept) {
      const open = this.#checkpoints.get(id)
      if (open?.isOwn === true && open.deltas.length === 0 && homeless.size === 0) {
        yield Buffer.concat([read(open.snapshot.source, open.snapshot.offset, open.snapshot.length), lineFeed])
        continue
      }
      const { value, tracked } = this.#fold(id, read)
      for (const [path, record] of homeless) if (define(tracked, path, record)) homeless.delete(path)
      const snapshot = { ...(value.snapshot as Fields), messageId: id, trackedFileBackups: tracked }
      yield Buffer.from(`${JSON.stringify({ ...value, messageId: id, snapshot, isSnapshotUpdate: false })}\n`)
    }
  }

  /** True when every original stands in a line of a checkpoint that stays. */
  #allAtHome(): boolean {
    const kept = new Map(this.#kept.map((id) => [id, this.#checkpoints.get(id)]))
    for (const { checkpoint, at, record } of this.#originals.values()) {
      const home = kept.get(checkpoint)
      // A later snapshot line took the place of the one before, and of its deltas.
      if (typeof at === 'number' ? home?.deltas[at]?.[1] !== record : home?.snapshot !== at) return false
    }
    return true
  }

  #note(path: string, original: Original): void {
    const first = this.#originals.get(path)
    if (first === undefined) this.#originals.set(path, original)
    else if (first.name !== original.name) this.#isOdd = true
  }

  #fold(id: string, read: ReadAt): { value: Fields; tracked: Record<string, unknown> } {
    const open = this.#checkpoints.get(id)
    if (open === undefined) return { value: {}, tracked: {} }
    const { source, offset, length } = open.snapshot
    const value = parseRecord(read(source, offset, length)) ?? {}
    const tracked: Record<string, unknown> = { ...trackedOf(value) }
    for (const [path, record] of open.deltas) define(tracked, path, record)
    return { value, tracked }
  }
}

/** Adds a path that is not there; false when it is. Keys are data: `__proto__` is a path like any other. */
function define(target: Record<string, unknown>, path: string, record: unknown): boolean {
  if (Object.hasOwn(target, path)) return false
  if (path === '__proto__') Object.defineProperty(target, path, { value: record, enumerable: true, writable: true, configurable: true })
  else target[path] = record
  return true
}

function trackedOf(value: Fields): Fields {
  const tracked = isFields(value.snapshot) ? value.snapshot.trackedFileBackups : undefined
  return isFields(tracked) ? tracked : {}
}
