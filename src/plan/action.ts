import type { EntryType, Identity, TreeSummary } from '../fs/identity.js'
import type { KeptItem } from '../model/report.js'
import type { FormatId, MemberKind } from '../model/session.js'

/** Version of the plan, the receipts and the journal on disk. A higher one is refused. */
export const planSchemaVersion = 1

/** One path that an action takes away, as it was when the plan was made. */
export interface PlannedItem {
  /** Relative to the root, with `/` between names. */
  readonly path: string
  readonly kind: MemberKind
  readonly type: EntryType
  /** Permission bits. */
  readonly mode: number
  readonly identity: Identity
  /** Of a folder: what lies in it. */
  readonly tree?: TreeSummary
}

interface ActionBase {
  readonly reason: string
  /** Bytes that really become free, counted by inode: those of inodes whose last name goes (R68). */
  readonly bytes: number
  /** Paths that are not touched and must be as they were planned, or the whole action is left out. */
  readonly witnesses?: readonly PlannedItem[]
}

/**
 * Takes a whole session (`trash-session`) or single backups of one (`trash-backups`) away. It is done for all items or for none.
 */
export interface RemoveAction extends ActionBase {
  readonly kind: 'trash-session' | 'trash-backups'
  readonly session: string
  readonly project?: string
  /** Milliseconds since 1970. */
  readonly lastActivity?: number
  readonly items: readonly PlannedItem[]
  /** Folders that go too if nothing is left in them by then, relative to the root. */
  readonly emptied?: readonly string[]
  /** Paths that earlier actions of the plan must have published: until then something in them names what goes. */
  readonly needs?: readonly string[]
}

/** Publishes a file made beforehand, in place of an old one that goes to the trash, or where nothing was. */
export interface ReplaceAction extends ActionBase {
  readonly kind: 'replace'
  readonly session?: string
  /** Relative to the root. */
  readonly path: string
  /** The path is relative to the folder that holds the root (`.claude.json` beside `.claude`). */
  readonly beside?: true
  /** What is replaced; without it nothing may stand at the path. */
  readonly old?: PlannedItem
  /** The new file: its name in the sidecar's `staging` folder with what it was when it was made there, or its bytes in base64. */
  readonly staged?: string
  readonly stagedIdentity?: Identity
  readonly content?: string
  /** Permission bits of a file that replaces none; 0600 when not given. */
  readonly mode?: number
  /** Bytes written to the end of the old file while it was replaced are carried over. */
  readonly appendOnly?: true
}

/** A replacement whose new file lies in the sidecar's `staging` folder. */
export type StagedAction = ReplaceAction & { readonly staged: string; readonly stagedIdentity: Identity }

export type Action = RemoveAction | ReplaceAction

/** What a command would do to one store, as data. Applying it is another matter (design section 3, promise 1). */
export interface Plan {
  readonly schemaVersion: typeof planSchemaVersion
  readonly format: FormatId
  /** Real path of the root. */
  readonly root: string
  readonly sidecar: string
  /** Milliseconds since 1970. */
  readonly createdAt: number
  /** The command that made it, for receipts. */
  readonly command: string
  /** Sessions in the store when the plan was made; what the brake measures shares by. */
  readonly storeSessions: number
  readonly actions: readonly Action[]
  readonly kept: readonly KeptItem[]
}

const order: Record<MemberKind, number> = { backups: 0, leftover: 1, agent: 2, companion: 3, transcript: 4 }

/** Backups and companions first and the transcript last, so that a session is listed until nothing of it is left to move. */
export function inOrderOfRemoval(items: readonly PlannedItem[]): PlannedItem[] {
  return [...items].sort((a, b) => order[a.kind] - order[b.kind])
}

/** Sessions that the plan removes whole. */
export function sessionsRemoved(plan: Plan): number {
  return new Set(plan.actions.flatMap((action) => (action.kind === 'trash-session' ? [action.session] : []))).size
}

/** The session an action is for; of a file that belongs to none, its path. */
export function subjectOf(action: Action): string {
  return action.session ?? (action.kind === 'replace' ? action.path : '')
}

/** The path that stands for an action in reports: the transcript, or else the first path. */
export function pathOf(action: Action): string {
  if (action.kind === 'replace') return action.path
  return (action.items.find((item) => item.kind === 'transcript') ?? action.items[0])?.path ?? ''
}
