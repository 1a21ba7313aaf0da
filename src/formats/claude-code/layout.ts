import { join } from 'node:path'
import { isUuid } from '../../model/names.js'

interface Around {
  readonly home: string
  readonly env: Readonly<Record<string, string | undefined>>
}

/** The client's data folder: `$CLAUDE_CONFIG_DIR`, else `~/.claude` (formats/claude-code section 1). */
export function dataFolder({ home, env }: Around): string {
  const configured = env.CLAUDE_CONFIG_DIR
  return configured === undefined || configured === '' ? join(home, '.claude') : configured
}

/** The settings of the user, which are in it. */
export function userSettings(around: Around): string {
  return join(dataFolder(around), 'settings.json')
}

/** Folders of the root that hold per-session state (formats/claude-code section 1). */
export const projectsFolder = 'projects'
export const historyFolder = 'file-history'

/** Folders whose children are named by a session id and belong to that session. */
export const leftoverFolders = ['session-env', 'tasks', 'image-cache'] as const
/** Folders whose files begin with a session id. */
export const leftoverFiles = ['todos', 'debug'] as const

/** Names in a project folder that are the agent's own and no session: user data and a cache. */
export const projectKeepers: ReadonlySet<string> = new Set(['memory', 'sessions-index.json'])

/** Names in the companion folder of a session that the agent makes. */
export const companionNames: ReadonlySet<string> = new Set(['subagents', 'tool-results'])

const transcriptSuffix = '.jsonl'
const flatAgent = /^agent-[0-9A-Za-z-]+\.jsonl$/
const todo = /^([0-9a-f-]{36})-agent-[0-9A-Za-z-]+\.json$/
const debug = /^([0-9a-f-]{36})\.txt$/

/** The session id of `<id>.jsonl`, or `undefined`. */
export function transcriptId(name: string): string | undefined {
  if (!name.endsWith(transcriptSuffix)) return undefined
  const id = name.slice(0, -transcriptSuffix.length)
  return isUuid(id) ? id : undefined
}

/** True for the flat subagent transcripts of 2.0.x. */
export function isFlatAgent(name: string): boolean {
  return flatAgent.test(name)
}

/** The session id that a file of `todos` or `debug` begins with, or `undefined`. */
export function leftoverId(folder: string, name: string): string | undefined {
  const id = (folder === 'todos' ? todo : debug).exec(name)?.[1]
  return id !== undefined && isUuid(id) ? id : undefined
}

/** Relative path of the folder that holds the backups of a session. */
export function backupFolderOf(session: string): string {
  return `${historyFolder}/${session}`
}
