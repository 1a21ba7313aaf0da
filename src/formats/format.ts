import type { CheckpointTree } from '../model/branches.js'
import type { EditEvidence } from '../model/evidence.js'
import type { Finding } from '../model/finding.js'
import type { Checkpoint } from '../model/history.js'
import type { RestoreRules } from '../model/restore-plan.js'
import type { RetentionLayer } from '../model/retention.js'
import type { FormatId, Member, Message, SessionReading, SessionRef } from '../model/session.js'
import type { AgentRedo, BackupFolder, CapChoice, CapContext, ConversationRepairs, Copying, InterruptedRestore, Migration, MigrationRequest, RecordRebuild, RestoredFile, SessionMerge } from './changes.js'
import type { Conversations } from './conversation.js'

/** What changes a store or a working tree is described by; kept apart, read as one interface. */
export type { AgentRedo, BackupFolder, CapChoice, CapContext, ConversationRepair, ConversationRepairs, Copying, InterruptedRestore, MigratedFile, Migration, MigrationRequest, NewFile, RecordRebuild, RestoreWay, RestoredFile, SavedPath, SessionCopy, SessionMerge } from './changes.js'

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
  /** What enforcing the cap does; without it, backups that no kept checkpoint needs go and nothing is rewritten. What is spared stays in use. */
  capSession?(session: SessionRef, reading: SessionReading, max: number, context: CapContext): CapChoice
  /** True when checkpoints stand in the transcript alone, so that a state of our own helps them to outlive it. */
  readonly checkpointsInTranscript?: true
  /**
   * What brings a session to the newest generation, or to the place that its project was moved to; `undefined` when there is
   * nothing to do. Reads only.
   */
  migrate?(session: SessionRef, reading: SessionReading, request: MigrationRequest): Migration | { readonly refusal: string } | undefined
  /**
   * What brings conversations up to date, with or without backups, whatever their sessions are: markers of rewinds as later builds
   * of the agent write them (`message`), or with the number of the turn that they stand in (`turn`). Reads only.
   */
  conversationRepairs?(markers: 'message' | 'turn'): ConversationRepairs
  /**
   * What brings a session of another root of the same agent into this one, or why it stays there; `undefined` when there is
   * nothing to bring. Reads only.
   * @param from real path of the other root
   */
  merge?(from: string, session: SessionRef, context: { readonly now: number }): SessionMerge | { readonly refusal: string } | undefined
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
