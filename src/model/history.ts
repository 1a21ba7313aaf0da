import type { BackupRecord } from './backup.js'

/** The recorded state at the start of one user message. */
export interface Checkpoint {
  /** The id a rewind is asked for: the `uuid` of the user message. */
  readonly id: string
  /** Position among the session's checkpoints in the order in which they were opened, from 0. */
  readonly order: number
  /** Other words that name it: a message id, a key, a prompt id, an anchor number. */
  readonly aliases?: readonly string[]
  /** What it is when it is not the start of a message; such a one is never meant by a message. */
  readonly kind?: 'baseline' | 'redo-point'
  /** When it was taken, as recorded (ISO 8601). */
  readonly time?: string
  /** Tracked path, as recorded, to its record. Keys are data: any text may stand there. */
  readonly files: ReadonlyMap<string, BackupRecord>
}

/** Every mention of one backup in any line of a session, folded away or not. Deciding what may go starts here. */
export interface Reference {
  readonly name: string
  /** A path that the backup stands for; absent when only a damaged line names it. */
  readonly path?: string
  readonly version: number
  readonly time?: string
  /** Real path of the file's folder, where a record has it. */
  readonly parent?: string
  /** Order of the oldest and of the newest checkpoint with a line that names it; of a damaged line, where it stands. */
  readonly oldest: number
  readonly newest: number
  /** True when a line without a known checkpoint names it (a damaged line, a delta of no snapshot): always in use. */
  readonly pinned: boolean
  /** True when only checkpoints name it that the agent itself, or a cap of ours, has dropped: `oldest` and `newest` say nothing then. */
  readonly dropped?: true
  /** sha256 of its bytes in hex, where its record has it. */
  readonly digest?: string
}

/** What folding the lines of a session yields. */
export interface History {
  readonly checkpoints: readonly Checkpoint[]
  /** Path to its first record of version 1 anywhere in the session. */
  readonly originals: ReadonlyMap<string, BackupRecord>
  /** Backup name to its mentions; only names with the shape of a backup name. */
  readonly references: ReadonlyMap<string, Reference>
  /** Every path tracked anywhere in the session. */
  readonly tracked: ReadonlySet<string>
  readonly anomalies: readonly HistoryAnomaly[]
  /** Number of snapshot and delta lines folded. */
  readonly lines: number
}

/** Something in the lines that does not add up. */
export interface HistoryAnomaly {
  readonly kind:
    | 'unsafe-name'
    | 'odd-record'
    | 'version-mismatch'
    | 'conflicting-records'
    | 'duplicate-checkpoint'
  readonly message: string
  /** Which transcript of the session, and where in it: a byte offset. */
  readonly source: number
  readonly offset: number
}

/** A history line, taken from its bytes. `source` numbers the transcripts of a session that has several. */
export type HistoryEvent = SnapshotEvent | DeltaEvent | SalvageEvent

export interface SnapshotEvent {
  readonly kind: 'snapshot'
  readonly checkpoint: string
  /** `isSnapshotUpdate`: the line restates a checkpoint that exists. */
  readonly update: boolean
  readonly time?: string
  readonly files: ReadonlyMap<string, BackupRecord>
  readonly source: number
  readonly offset: number
}

export interface DeltaEvent {
  readonly kind: 'delta'
  readonly checkpoint: string
  readonly path: string
  readonly record: BackupRecord
  readonly source: number
  readonly offset: number
}

/** Backup names found in bytes that could not be parsed. */
export interface SalvageEvent {
  readonly kind: 'salvage'
  readonly names: readonly string[]
  readonly source: number
  readonly offset: number
}
