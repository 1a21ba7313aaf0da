import type { BackupRecord } from '../model/backup.js'
import type { Finding } from '../model/finding.js'
import type { Checkpoint } from '../model/history.js'
import type { FileNode } from '../model/restore-plan.js'
import type { Member, SessionReading, SessionRef } from '../model/session.js'

/** A file of the agent as it shall be, relative to the root. It is published beside its place and renamed. */
export interface NewFile {
  readonly path: string
  readonly bytes: Buffer
  /** Permission bits; those of the file that it replaces when not given, else 0600. */
  readonly mode?: number
  /** Stamp of the file that the bytes were made from: when it changed meanwhile, nothing is written. */
  readonly was?: { readonly size: number; readonly mtimeNs: string }
}

/** The records of a session rebuilt, with the words for what proves them. */
export interface RecordRebuild {
  readonly file: NewFile
  readonly proof: string
}

/** What enforcing the cap goes by besides the session. */
export interface CapContext {
  /** Milliseconds since 1970. */
  readonly now: number
  /** Backups that something else still needs, by name: they and what names them stay. */
  readonly spared: ReadonlySet<string>
}

/** What enforcing the cap does to one session, by the format's own rule. */
export interface CapChoice {
  /** Checkpoints that are dropped. */
  readonly checkpoints: number
  /** What goes, once every file of `rewrites` is in place; relative to the root. */
  readonly drop: readonly Member[]
  readonly rewrites: readonly NewFile[]
  /** Why nothing is dropped although the session is over the cap. */
  readonly refusal?: string
}

/** A file that a migration makes, relative to the root. */
export interface MigratedFile {
  readonly path: string
  /** Permission bits; those of the file that it replaces when not given, else 0600. */
  readonly mode?: number
  /** Modification time in milliseconds since 1970; now when not given. */
  readonly mtimeMs?: number
  /** Hands over its bytes piece by piece; throws when what it is made from changed meanwhile. */
  write(take: (bytes: Buffer) => void): void
}

/** What brings one session up to date, or to another place. */
export interface Migration {
  /** What is done, in words, for the plan. */
  readonly reason: string
  /** Files in the order in which they are published. */
  readonly files: readonly MigratedFile[]
  /** What goes to the trash once the result was read back; relative to the root. */
  readonly drop: readonly Member[]
  /** Folders that go when nothing is left in them. */
  readonly emptied?: readonly string[]
  /** The key of a tracked path afterwards; the same when not given. */
  readonly newKey?: (key: string) => string
  /** Findings that stay: what could not be brought over, and why. */
  readonly findings?: readonly Finding[]
}

/** A conversation that a migration repairs: it lies beside the root, in the folder that holds it. */
export interface ConversationRepair {
  readonly session: string
  /** What is done, in words, for the plan. */
  readonly reason: string
  /** Modification time of the conversation, milliseconds since 1970. */
  readonly lastWritten: number
  /** Its path is relative to the folder that holds the root. */
  readonly file: MigratedFile
  /** Reads back what was published: what is wrong with it, in words. */
  check(): string | undefined
}

export interface ConversationRepairs {
  readonly repairs: readonly ConversationRepair[]
  /** What cannot be repaired, and why. */
  readonly findings: readonly Finding[]
}

/** What brings a session of another root of the agent into this one. */
export interface SessionMerge {
  /** Files that this root lacks, in the order in which they are published. */
  readonly files: readonly MigratedFile[]
  /** Folders that are made for them, relative to the root, with the time that they shall have; the outermost first. */
  readonly folders: readonly { readonly path: string; readonly mtimeNs: bigint }[]
  /** The session as both roots together tell it. */
  readonly reading: SessionReading
  /** Bytes of a backup of that reading; `undefined` when there are none. Throws when they cannot be read. */
  bytes(name: string): Buffer | undefined
  /** Compares what was published with what it was made from: what is wrong, in words. */
  check(): string | undefined
}

/** What a migration is asked for. Folders are absolute. */
export interface MigrationRequest {
  readonly now: number
  /** A project that was moved: sessions of the first folder, or below it, are now of the second. */
  readonly move?: { readonly from: string; readonly to: string }
}

/** A folder in which backups of a session lie; `prefix` stands before the name of a file in the name of its backup. */
export interface BackupFolder {
  /** Relative to the root. */
  readonly path: string
  readonly prefix: string
}

/** What one way of ending an interrupted restore makes of the files. */
export interface RestoreWay {
  /** Absolute path to its state. */
  readonly files: ReadonlyMap<string, BackupRecord>
  /** Bytes of backups that are no files of their own, by name. */
  readonly inline: ReadonlyMap<string, Buffer>
  /** Paths that this way deletes because nothing was there before the restore, with what the restore wrote. */
  readonly written: ReadonlyMap<string, BackupRecord>
  /** The journal as the agent closes it; `now` in milliseconds since 1970. */
  closed(now: number): NewFile
}

/** A restore of the agent's own that did not end. */
export interface InterruptedRestore {
  /** Its journal, relative to the root. */
  readonly path: string
  readonly id: string
  /** Why its journal cannot be followed; then it is kept as it is. */
  readonly damaged?: string
  /** What it restored to, as a rewind names it. */
  readonly target?: string
  /** As the agent calls it. */
  readonly state?: string
  /** Milliseconds since 1970. */
  readonly startedAt?: number
  /** Absent where only the way back is left. */
  readonly finish?: RestoreWay
  readonly rollBack?: RestoreWay
}

/** What a fork of a session is made of where the agent itself makes the conversation. */
export interface SessionCopy {
  /** Files to copy, relative to the session; the last ones make the copy valid. */
  readonly copies: readonly Member[]
  /** Files to write instead of copying, relative to the session, in order. */
  readonly files: readonly NewFile[]
  readonly checkpoints: number
  /** Checkpoints of the source that the fork does not get. */
  readonly left: number
}

/** Where forks are copies of what the agent keeps beside its conversations. */
export interface Copying {
  /** True for a text that can be the id of a session. */
  isSessionId(text: string): boolean
  /**
   * What the fork `newId` needs of a session.
   * @param before a message from which on nothing is taken; else where the fork's own conversation begins, when that is known
   * @throws NoMatchError when there is no such message
   */
  plan(session: SessionRef, newId: string, before?: string): SessionCopy
}

/** State of one tracked path just before a rewind, for a redo point that the agent itself can read. */
export interface SavedPath {
  /** As recorded. */
  readonly key: string
  /** Of a file: where its bytes were saved, and its permission bits; `undefined` when there is no file. */
  readonly file: { bytes(): Buffer; readonly mode: number } | undefined
}

/** A file of a working tree that a restore replaces, beside its backup. Modes are `mode & 07777`. */
export interface RestoredFile {
  readonly node: FileNode
  readonly backup: { readonly size: number; readonly mode: number; readonly mtimeMs: number }
  /** Whether both are equal once they are decoded as UTF-8. Reads them. */
  readonly isSameText: () => boolean
}

/** The agent's own stack of rewinds that can be undone. */
export interface AgentRedo {
  /** The checkpoint that undoing the newest rewind goes to, or why that is not possible. */
  top(session: SessionRef, reading: SessionReading): { readonly checkpoint: Checkpoint } | { readonly refusal: string }
  /** The files that put a rewind on the stack, in the order in which they are published; the last one makes it valid. */
  push(session: SessionRef, saved: readonly SavedPath[], context: { readonly now: number; uuid(): string }): readonly NewFile[]
  /** The files that take the newest rewind off the stack. */
  pop(session: SessionRef): readonly NewFile[]
}
