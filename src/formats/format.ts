import type { BackupRecord } from '../model/backup.js'
import type { CheckpointTree } from '../model/branches.js'
import type { FileNode, RestoreRules } from '../model/restore-plan.js'
import type { EditEvidence } from '../model/evidence.js'
import type { Finding } from '../model/finding.js'
import type { Checkpoint } from '../model/history.js'
import type { RetentionLayer } from '../model/retention.js'
import type { FormatId, Member, Message, SessionReading, SessionRef } from '../model/session.js'
import type { Conversations } from './conversation.js'

/** Every session of a store by its names, with what was found out of place on the way. */
export interface Inventory {
  readonly sessions: readonly SessionRef[]
  readonly findings: readonly Finding[]
  /** Number of names of no known shape; when there are only such, nothing was recognised (R18). */
  readonly unrecognised: number
}

export interface ReadOptions {
  /** Milliseconds since 1970; later timestamps are in the future. */
  readonly now: number
  /** Also read what proves the content of backups (`SessionReading.evidence`). */
  readonly evidence?: boolean
  /** Also hand over the delta lines as they were parsed (`SessionReading.deltas`). */
  readonly deltas?: boolean
  /** False: only times, and what keeps a session from being removed; checkpoints and damage of history lines are left out. */
  readonly history?: boolean
}

/** The two texts that the result of an editing tool holds; `null` before means that the file was created. */
export interface EditTexts {
  readonly path: string
  readonly before: string | null
  readonly after: string | undefined
}

/** What the agent's registry of running processes says. */
export interface LiveRegistry {
  readonly live: readonly LiveSession[]
  readonly findings: readonly Finding[]
  /** False when a session may run that is not in `live`: then only a quiet period protects it. */
  readonly complete: boolean
}

/** A switch that decides whether the agent makes checkpoints, where it is set, and what that does. */
export interface Gate {
  readonly gate: string
  /** As found, as JSON text; `undefined` when it is set nowhere. */
  readonly value: string | undefined
  /** `environment`, or the settings file; `undefined` when it is set nowhere. */
  readonly from: string | undefined
  readonly effect: string
  /** True when the gate, as set, stops checkpoints of interactive sessions. */
  readonly stops: boolean
}

/** A session that a running process has open. */
export interface LiveSession {
  readonly session: string
  readonly pid: number
  /** The registry file that says so, relative to the root. */
  readonly registry: string
}

/** What a format needs to know of this machine; everything of it is passed in. */
export interface Machine {
  /** Start time of a process in clock ticks since boot, `undefined` when there is no such process or no way to know. */
  processStart(pid: number): string | undefined
  processExists(pid: number): boolean
  /** Machine id and pid namespace as the agent writes them, `undefined` when unknown. */
  readonly pidDomain: string | undefined
  /** Start time of a process in milliseconds since 1970, to about a second; `undefined` when unknown. */
  processStartedAt?(pid: number): number | undefined
  /** Name of this host as programs write it. */
  readonly hostname?: string
}

/** What of a session is the agent's own, path by path, and what lies among it that is not. */
export interface SessionContents {
  /** Everything that goes with the session: whole folders where nothing else lies in them, else single files. */
  readonly own: readonly Member[]
  /** Paths that the agent does not make; they and the folders above them stay (R14). */
  readonly foreign: readonly string[]
  /** Paths that could not be looked at, with the system error code. */
  readonly unreadable: readonly { readonly path: string; readonly code: string }[]
  /** Folders that go when nothing is left in them. */
  readonly emptied: readonly string[]
  /** Newest modification time of folders of it that hold nothing of its own, beside backups and for backups; milliseconds since 1970. */
  readonly companion?: number
  readonly backup?: number
  /** Why there may be more of the session than can be seen: then it is left alone. */
  readonly doubt?: string
}

/** What the first lines of a session say: cheap to read however long it is. */
export interface SessionHead {
  /** Folders its transcripts were started in; of a session without one, those of its subagents. */
  readonly folders: readonly string[]
  /** Milliseconds since 1970. */
  readonly firstRecorded?: number
  /** The session that it is a fork of, where its records say so. */
  readonly forkedFrom?: string
}

/** A file of the agent that holds state of all projects, and what in it belongs to some of them. */
export interface SharedUse {
  /** Relative to the root. */
  readonly path: string
  /** The path is a single name in the folder that holds the root. */
  readonly beside?: true
  /** What was found, in words: lines, or keys. */
  readonly what: 'line' | 'key'
  readonly count: number
  readonly keys: readonly string[]
  /** The agent only ever appends to it. */
  readonly appendOnly: boolean
  /** Why it must not be rewritten, if so. */
  readonly refusal?: string
  /** The bytes it would have without what was found; absent with a refusal. */
  readonly rest?: Buffer
  /** Stamp of the file that `rest` was made from. */
  readonly size: number
  readonly mtimeNs: string
}

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

/** One store of one agent. Rules of the format live behind this and nowhere else. */
export interface Store {
  readonly format: FormatId
  /** Real path of the root, free of symbolic links. */
  readonly root: string
  /** Our own folder beside or in the store. */
  readonly sidecar: string
  /** Checkpoints that the agent itself keeps. */
  readonly cap: number
  /** Whether the agent is known never to open an existing backup for writing, so that hard links are safe. */
  readonly linksAreSafe: boolean
  /** Newest version of the agent that this version of ours was tested with. */
  readonly testedClient: string
  inventory(): Inventory
  read(session: SessionRef, options: ReadOptions): SessionReading
  /** The texts of one edit, read again from its line; `undefined` when they are no longer there. */
  editTexts(session: SessionRef, edit: EditEvidence): EditTexts | undefined
  /** The user messages of a session in the order of the transcript, with the branch that is active. */
  messages(session: SessionRef): Message[]
  /** Sessions that a running process has open; `now` in milliseconds since 1970. */
  live(machine: Machine, now: number): LiveRegistry
  /** Findings about files of the agent that belong to no session. */
  globals(): Finding[]
  /** Every settings file that can set the retention period, for the whole store or for one project. */
  retention(project?: string): RetentionLayer[]
  /** The switches of checkpointing, for the whole store or for one project. */
  gates(project?: string): Gate[]
  /** Relative path of the folder that holds the backups of a session. */
  backupFolder(session: string): string
  /** What removing a session would take; without it, its members as they are. */
  contents?(session: SessionRef): SessionContents
  head?(session: SessionRef): SessionHead
  /** How the checkpoints of a session hang together, from the messages they belong to. */
  branches?(session: SessionRef, checkpoints: ReadonlySet<string>): CheckpointTree
  /** Files that hold state of all projects, and what in them belongs to the projects for which `matches` is true. */
  shared?(matches: (project: string) => boolean): SharedUse[]
  /** Files of a project folder that belong to no single session: user data, and what is the agent's own. */
  projectFiles?(folder: string): { readonly memory: readonly Member[]; readonly caches: readonly Member[] }
  /** Where conversations can be written: forks, mended transcripts. Absent where the rules are not known. */
  readonly conversations?: Conversations
  /** How restores differ from `defaultRestoreRules`. */
  readonly restoreRules?: RestoreRules
  /** How the agent's own restore would treat a file otherwise than ours, in words for the report. */
  agentDifference?(file: RestoredFile): string | undefined
  /** Absolute paths of folders that a restore never writes to, besides the backups of the session and the sidecar. */
  readonly fenced?: readonly string[]
  /**
   * The conversations lie outside the root: a session without a transcript of its own is none that lost it, and reading it says
   * when it was last active.
   */
  readonly conversationsElsewhere?: true
  /** Days that the agent keeps sessions when no layer says anything; `Infinity` where it never removes any. */
  readonly defaultRetentionDays?: number
  /**
   * The checkpoint that a word means, where not every target has a checkpoint of its own; asked instead of `findCheckpoint`.
   * @throws NewerFormatError when a newer version of the agent wrote what it depends on
   */
  checkpointAt?(session: SessionRef, reading: SessionReading, word: string): Checkpoint | undefined
  /** One word that changes when anything changes that a reading rests on, besides transcripts and backups. */
  recordStamp?(session: SessionRef): string
  /** Restores of the agent's own that did not end. */
  interruptedRestores?(session: SessionRef): readonly InterruptedRestore[]
  /** How forks are made where the agent itself makes the conversation. */
  readonly copying?: Copying
  /** The shape of a backup's name; without it `isBackupName`. A text in a record counts too when a record names it. */
  isBackup?(name: string): boolean
  /** The first half of the name that a backup of a tracked path has; without it, the hash of its absolute path. */
  pathHash?(key: string): string
  /** Folders that hold the backups of a session; without it `backupFolder` alone. */
  backupFolders?(session: SessionRef): readonly BackupFolder[]
  /** Bytes of a backup that is no file of its own but a text in a record; `undefined` when it is a file, or not there. */
  inlineBytes?(session: string, name: string): Buffer | undefined
  /** Findings of the format's own rules about one session, beyond those of reading it. Never writes, never follows a link. */
  check?(session: SessionRef, reading: SessionReading, context: { readonly now: number }): Finding[]
  /** What enforcing the cap does; without it, backups that no kept checkpoint needs go and nothing is rewritten. */
  capSession?(session: SessionRef, reading: SessionReading, max: number, context: { readonly now: number }): CapChoice
  /** True when checkpoints stand in the transcript alone, so that a state of our own helps them to outlive it. */
  readonly checkpointsInTranscript?: true
  /**
   * What brings a session to the newest generation, or to the place that its project was moved to; `undefined` when there is
   * nothing to do. Reads only.
   */
  migrate?(session: SessionRef, reading: SessionReading, request: MigrationRequest): Migration | { readonly refusal: string } | undefined
  /** The records of a session as far as they can be rebuilt from proof, or why they cannot; `undefined` when none is broken. */
  rebuildRecords?(ref: SessionRef, context: { readonly now: number; uuid(): string }): RecordRebuild | { readonly refused: string } | undefined
  /** Where the agent keeps its own undone rewinds; without it they are kept in the sidecar alone. */
  readonly agentRedo?: AgentRedo
  /** Takes the agent's own lock of housekeeping, if it has one. Throws `LockedError` while the agent holds it. */
  takeAgentLock?(now: number): { release(): void }
}

/** What a format needs to know of the environment to find its stores. */
export interface Surroundings {
  readonly home: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
  /** Folder of the conversations that belong to the store, where it cannot be told from the root (pi). */
  readonly conversations?: string
  /** Folder of the transcripts, where it is not the root (qwen). */
  readonly runtimeRoot?: string
  /** What relative paths mean when no record says. */
  readonly baseFolder?: string
}

export interface Format {
  readonly id: FormatId
  /** Places where this agent keeps its store on this machine, in order of preference; they need not exist. */
  places(around: Surroundings): string[]
  /** True when the folder has the marks of a store of this format. */
  detect(root: string): boolean
  open(root: string, around: Surroundings): Store
}
