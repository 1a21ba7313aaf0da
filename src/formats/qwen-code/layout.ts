import { hash } from 'node:crypto'
import { isBackupName } from '../../model/names.js'

/** Folders of the roots (formats/qwen-code section 1). */
export const historyFolder = 'file-history'
export const projectsFolder = 'projects'
export const chatsFolder = 'chats'
export const archiveFolder = 'archive'
export const subagentsFolder = 'subagents'
export const debugFolder = 'debug'
export const registryFolder = 'sessions'
export const locksFolder = 'tmp/session-writer-locks'

/** Files of the agent's own housekeeping (section 8). */
export const cleanupMarker = '.file-history-cleanup'
export const cleanupLock = '.file-history-cleanup.lock'

const sessionId = /^[0-9a-f-]{32,36}$/
const staging = /^\.([0-9a-f-]{32,36})\.[0-9a-f-]{32,36}\.tmp$/
const sideFile = /^([0-9a-f-]{32,36})\.(?:runtime\.json|worktree\.json|pr\.json|ledger\.jsonl)$/
const transcript = /^([0-9a-f-]{32,36})\.jsonl$/
const debugFile = /^([0-9a-f-]{32,36})\.txt$/

/** True for a text that the agent takes for the id of a session: 32 to 36 hex digits and dashes. */
export function isSessionId(text: string): boolean {
  return sessionId.test(text)
}

/** The session of `<id>.jsonl`, or `undefined`. */
export function transcriptId(name: string): string | undefined {
  return transcript.exec(name)?.[1]
}

/** The session that a file beside a transcript belongs to, or `undefined`. */
export function sideFileId(name: string): string | undefined {
  return sideFile.exec(name)?.[1]
}

/** The session of `debug/<id>.txt`, or `undefined`. */
export function debugId(name: string): string | undefined {
  return debugFile.exec(name)?.[1]
}

/** The session that a folder in which the agent prepares a fork is for, or `undefined`. */
export function stagingId(name: string): string | undefined {
  return staging.exec(name)?.[1]
}

/** Relative path of the folder that holds the backups of a session. */
export function backupFolderOf(session: string): string {
  return `${historyFolder}/${session}`
}

/** Why a recorded name is not followed, or `undefined`. Names of an unknown shape are kept as they are (section 12). */
export function nameRefusal(name: string): string | undefined {
  return isBackupName(name) ? undefined : `${JSON.stringify(name)} is not a backup name`
}

/** Relative path, below the runtime root, of the prompts that were typed in a project (section 1). */
export function promptsOf(project: string): string {
  return `tmp/${hash('sha256', project, 'hex')}/logs.json`
}
