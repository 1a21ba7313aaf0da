import type { EditEvidence } from './evidence.js'
import type { Finding } from './finding.js'
import type { DeltaEvent, History } from './history.js'

export type FormatId = 'claude-code' | 'pi-candy-undo' | 'dsh-rewind' | 'qwen-code'

/** What a path of a session is: the conversation, files beside it, its backups, or what the agent left elsewhere. */
export type MemberKind = 'transcript' | 'companion' | 'agent' | 'backups' | 'leftover'

/** One path that belongs to a session, relative to the store's root with `/` between names. */
export interface Member {
  readonly kind: MemberKind
  readonly path: string
  readonly folder: boolean
}

/** A session by its names alone: cheap to list, nothing of it was opened. */
export interface SessionRef {
  readonly id: string
  readonly members: readonly Member[]
}

/** The members of one kind. */
export function membersOf(ref: SessionRef, kind: MemberKind): Member[] {
  return ref.members.filter((member) => member.kind === kind)
}

/** True when the session is more than leftovers of one that is gone. */
export function isConversation(session: SessionRef): boolean {
  return session.members.some((member) => member.kind !== 'leftover')
}

/** What one session says about itself, read from its transcripts. Times are milliseconds since 1970. */
export interface SessionReading {
  readonly id: string
  /** The folder the session was started in, as first recorded; what relative paths and projects are decided by. */
  readonly project?: string
  /** Every folder recorded in the lines that were looked at, the first one first. */
  readonly folders: readonly string[]
  readonly clientVersion?: string
  readonly entrypoint?: string
  readonly history: History
  /** Largest timestamp in the transcripts that is not in the future of `now`. */
  readonly lastRecorded?: number
  /** Largest timestamp in the future of `now`, if there is one. */
  readonly future?: number
  /** Newest modification time of its transcripts. */
  readonly lastWritten?: number
  /** Sum of the sizes of its transcripts in bytes. */
  readonly transcriptBytes: number
  /** How many of them are history lines (R83); `undefined` where transcripts hold none, or were not searched for them. */
  readonly historyBytes?: number
  /** What is wrong with the transcripts. */
  readonly findings: readonly Finding[]
  /** True when a line could not be read whole: nothing of the session may be removed on its own. */
  readonly damaged: boolean
  /** True when a transcript changed while it was read: leave the session alone in this run. */
  readonly busy: boolean
  /** Only when it was asked for: reading it costs time. */
  readonly evidence?: SessionEvidence
  /** Only when it was asked for: the delta lines of each transcript, so that a fork need not parse them again. */
  readonly deltas?: readonly ReadDeltas[]
}

/** The delta lines of one transcript, by where they begin: a byte offset. */
export interface ReadDeltas {
  /** Stamp of the file they were read from: size in bytes, modification time in milliseconds since 1970. */
  readonly inode: number
  readonly size: number
  readonly mtimeMs: number
  readonly lines: ReadonlyMap<number, ReadDelta>
}

/** One delta line, parsed. */
export interface ReadDelta {
  readonly event: DeltaEvent
  /** The record as it stands in the line, with every field it has. */
  readonly backup: unknown
  /** Bytes of the record; a line that is longer holds something else too. */
  readonly length: number
}

/** What the other lines of a transcript say, for checks that go beyond the history. */
export interface SessionEvidence {
  /** Results of editing tools in the order of the lines. */
  readonly edits: readonly EditEvidence[]
  /** Tracked path to the outer id of the line that first recorded its version 1. */
  readonly makers: ReadonlyMap<string, string>
  /** Checkpoints that no message line carries the id of. */
  readonly withoutMessage: readonly string[]
  /** Number of message lines that name another session. */
  readonly foreignLines: number
}

/** One user message that a rewind can be asked for. */
export interface Message {
  readonly id: string
  readonly parent?: string
  /** Milliseconds since 1970. */
  readonly time?: number
  readonly text: string
  /** True when the message lies on the branch that ends in the newest line. */
  readonly active: boolean
}
