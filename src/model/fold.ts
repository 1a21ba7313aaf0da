import { isFollowed, sameRecord, type BackupRecord } from './backup.js'
import { EarlyDeltas } from './early-deltas.js'
import type {
  Checkpoint,
  DeltaEvent,
  History,
  HistoryAnomaly,
  HistoryEvent,
  Reference,
  SalvageEvent,
  SnapshotEvent,
} from './history.js'
import { parseBackupName } from './names.js'
import type { Writable } from './writable.js'

interface OpenCheckpoint {
  readonly id: string
  readonly order: number
  time: string | undefined
  files: ReadonlyMap<string, BackupRecord>
  /** The same map while no other checkpoint shares it. */
  own: Map<string, BackupRecord> | undefined
}

const noFiles: ReadonlyMap<string, BackupRecord> = new Map()

/**
 * Folds history lines, in file order, into checkpoints (formats/claude-code section 2, "Folding"). Memory grows with
 * the number of distinct checkpoints and records, not with the number of lines (R43): records and maps that repeat are
 * shared.
 */
export class HistoryFold {
  readonly #checkpoints: OpenCheckpoint[] = []
  readonly #byId = new Map<string, OpenCheckpoint>()
  readonly #originals = new Map<string, BackupRecord>()
  readonly #references = new Map<string, Writable<Reference>>()
  readonly #tracked = new Set<string>()
  readonly #anomalies: HistoryAnomaly[] = []
  readonly #newestRecord = new Map<string, BackupRecord>()
  /** Path to its only record so far, or to the name of each of its versions. */
  readonly #versions = new Map<string, BackupRecord | Map<number, string | null>>()
  readonly #early = new EarlyDeltas()
  /** Anomalies that were told already: lines repeat by the thousand (R43). */
  readonly #told = new Set<string>()
  #lines = 0

  add(event: HistoryEvent): void {
    if (event.kind === 'snapshot') this.#addSnapshot(event)
    else if (event.kind === 'delta') this.#addDelta(event)
    else this.#addSalvage(event)
  }

  /** What the lines added so far amount to. */
  finish(): History {
    for (const { byPath, byName } of this.#early.rest()) {
      for (const [name, delta] of byName) this.#refer(name, delta.path, delta.record, undefined)
      for (const delta of byPath.values()) {
        this.#anomaly('odd-record', `a delta names checkpoint ${delta.checkpoint}, which no snapshot line opens`, delta)
      }
    }
    return {
      checkpoints: this.#checkpoints.map(({ id, order, time, files }): Checkpoint => (time === undefined ? { id, order, files } : { id, order, files, time })),
      originals: this.#originals,
      references: this.#references,
      tracked: this.#tracked,
      anomalies: this.#anomalies,
      lines: this.#lines,
    }
  }

  #addSnapshot(event: SnapshotEvent): void {
    this.#lines += 1
    const known = this.#byId.get(event.checkpoint)
    const open = known ?? this.#open(event.checkpoint)
    for (const [path, record] of event.files) {
      this.#note(path, record, event)
      if (isFollowed(record)) this.#refer(record.name, path, record, open.order)
    }
    if (known !== undefined) this.#checkRestated(known, event)
    open.time = event.time ?? open.time
    this.#setFiles(open, event.files, known)
    this.#applyEarly(open)
  }

  #addDelta(event: DeltaEvent): void {
    this.#lines += 1
    const { path, record } = event
    const open = this.#byId.get(event.checkpoint)
    this.#note(path, record, event)
    if (open !== undefined) {
      if (isFollowed(record)) this.#refer(record.name, path, record, open.order)
      this.#addPath(open, event)
      return
    }
    this.#early.add(event)
  }

  #addSalvage(event: SalvageEvent): void {
    // Whose line it was is not known; where it stands says about when it was written.
    const latest = Math.max(0, this.#checkpoints.length - 1)
    for (const name of event.names) {
      const version = parseBackupName(name)?.version
      if (version === undefined) continue
      const known = this.#references.get(name)
      if (known === undefined) this.#references.set(name, { name, version, oldest: latest, newest: latest, pinned: true })
      else {
        known.pinned = true
        known.newest = Math.max(known.newest, latest)
      }
    }
  }

  #open(id: string): OpenCheckpoint {
    const open: OpenCheckpoint = { id, order: this.#checkpoints.length, time: undefined, files: noFiles, own: undefined }
    this.#checkpoints.push(open)
    this.#byId.set(id, open)
    return open
  }

  #applyEarly(open: OpenCheckpoint): void {
    const early = this.#early.take(open.id)
    if (early === undefined) return
    for (const delta of early.byPath.values()) this.#addPath(open, delta)
    for (const [name, delta] of early.byName) this.#refer(name, delta.path, delta.record, open.order)
  }

  /** A delta adds its path and never replaces one that is there (R33). */
  #addPath(open: OpenCheckpoint, delta: DeltaEvent): void {
    if (open.files.has(delta.path)) return
    open.own ??= new Map(open.files)
    open.own.set(delta.path, delta.record)
    open.files = open.own
  }

  /** Takes the map of the checkpoint before when it says the same, so that a flood of equal snapshots costs one map. */
  #setFiles(open: OpenCheckpoint, files: ReadonlyMap<string, BackupRecord>, known: OpenCheckpoint | undefined): void {
    const last = known ?? this.#checkpoints[this.#checkpoints.length - 2]
    open.own = undefined
    if (files.size === 0) open.files = noFiles
    else if (last !== undefined && sameFiles(last.files, files)) {
      last.own = undefined
      open.files = last.files
    } else {
      open.own = new Map()
      for (const [path, record] of files) open.own.set(path, this.#interned(path, record))
      open.files = open.own
    }
  }

  #interned(path: string, record: BackupRecord): BackupRecord {
    const newest = this.#newestRecord.get(path)
    if (newest !== undefined && sameRecord(newest, record)) return newest
    this.#newestRecord.set(path, record)
    return record
  }

  #note(path: string, record: BackupRecord, event: SnapshotEvent | DeltaEvent): void {
    const newest = this.#newestRecord.get(path)
    const seen = newest !== undefined && sameRecord(newest, record)
    this.#tracked.add(path)
    if (record.version === 1 && record.unusable === undefined && !this.#originals.has(path)) this.#originals.set(path, record)
    if (!seen) this.#checkRecord(path, record, event)
  }

  #refer(name: string, path: string, record: BackupRecord, order: number | undefined): void {
    const known = this.#references.get(name)
    if (known === undefined) {
      const { version, time, parent } = record
      const reference: Writable<Reference> = { name, path, version, oldest: order ?? 0, newest: order ?? 0, pinned: order === undefined }
      if (time !== undefined) reference.time = time
      if (parent !== undefined) reference.parent = parent
      this.#references.set(name, reference)
      return
    }
    known.path ??= path
    if (known.time === undefined && record.time !== undefined) known.time = record.time
    if (known.parent === undefined && record.parent !== undefined) known.parent = record.parent
    if (order === undefined) known.pinned = true
    else if (order > known.newest) known.newest = order
    else if (order < known.oldest) known.oldest = order
  }

  #checkRecord(path: string, record: BackupRecord, event: SnapshotEvent | DeltaEvent): void {
    if (record.unusable !== undefined) {
      const kind = record.name === null ? 'odd-record' : 'unsafe-name'
      this.#anomaly(kind, `checkpoint ${event.checkpoint}, path ${path}: ${record.unusable}`, event)
      return
    }
    if (record.name !== null) {
      const named = parseBackupName(record.name)?.version
      if (named !== undefined && named !== record.version) {
        this.#anomaly('version-mismatch', `path ${path}: version ${String(record.version)} is recorded with backup ${record.name}`, event)
      }
    }
    const known = this.#versions.get(path)
    if (known === undefined) {
      this.#versions.set(path, record)
      return
    }
    const versions = known instanceof Map ? known : new Map([[known.version, known.name]])
    if (versions !== known) this.#versions.set(path, versions)
    const other = versions.get(record.version)
    if (other === undefined) versions.set(record.version, record.name)
    else if (other !== record.name) {
      const words = (name: string | null): string => name ?? '"did not exist"'
      this.#anomaly('conflicting-records', `path ${path}, version ${String(record.version)}: both ${words(other)} and ${words(record.name)} are recorded`, event)
    }
  }

  /** A checkpoint that is opened twice with other versions, or whose versions fall: the ids clashed (R39). */
  #checkRestated(known: OpenCheckpoint, event: SnapshotEvent): void {
    for (const [path, record] of event.files) {
      const before = known.files.get(path)
      if (before === undefined || before.version === record.version) continue
      if (event.update && record.version > before.version) continue
      const versions = `version ${String(before.version)}, then version ${String(record.version)}`
      this.#anomaly('duplicate-checkpoint', `checkpoint ${event.checkpoint} is recorded twice: path ${path} with ${versions}`, event)
      return
    }
  }

  #anomaly(kind: HistoryAnomaly['kind'], message: string, event: HistoryEvent): void {
    const key = `${kind} ${message}`
    if (this.#told.has(key)) return
    this.#told.add(key)
    this.#anomalies.push({ kind, message, source: event.source, offset: event.offset })
  }
}

function sameFiles(a: ReadonlyMap<string, BackupRecord>, b: ReadonlyMap<string, BackupRecord>): boolean {
  if (a.size !== b.size) return false
  for (const [path, record] of b) {
    const other = a.get(path)
    if (other === undefined || !sameRecord(other, record)) return false
  }
  return true
}

/** Folds `events`, in file order, into a history. */
export function fold(events: Iterable<HistoryEvent>): History {
  const state = new HistoryFold()
  for (const event of events) state.add(event)
  return state.finish()
}
