import { basename, dirname, join } from 'node:path'
import { isBackupName, isUuid } from '../../model/names.js'

/** Names in the folder of a session (formats/pi-candy-undo section 1). */
export const stateName = 'state.json'
export const backupsName = 'backups'

/** The state before the present one: our own recorder keeps it, the plugin does not know it. */
export const backupStateName = 'state.json.bak'

/** The plugin's own log in the root. */
export const logName = 'undo.log'

const temporaryState = /^state\.json\.tmp-[0-9]+-[0-9a-f]{8}$/
const otherState = /^state\.json\.[0-9A-Za-z.~_-]+$/
const temporaryBackup = /^([0-9a-f]{16}@v[1-9][0-9]{0,14})\.tmp-[0-9]+-[0-9a-f]{8}$/

/** True for what a crash during a write of state.json leaves; nobody ever removes it. */
export function isTemporaryState(name: string): boolean {
  return temporaryState.test(name)
}

/** True for what may be another copy of state.json: a temporary file, or one that somebody put aside. */
export function isOtherState(name: string): boolean {
  return otherState.test(name)
}

/** True for what a crash during a write of a backup leaves. */
export function isTemporaryBackup(name: string): boolean {
  return temporaryBackup.test(name)
}

/** True for a name in `backups/` that the plugin makes. */
export function isBackupsEntry(name: string): boolean {
  return isBackupName(name) || isTemporaryBackup(name)
}

/** Path of the state of a session, relative to the root. */
export function statePathOf(session: string): string {
  return `${session}/${stateName}`
}

/** Path of the state before the present one, relative to the root. */
export function backupStatePathOf(session: string): string {
  return `${session}/${backupStateName}`
}

/** Path of the folder that holds the backups of a session, relative to the root. */
export function backupFolderOf(session: string): string {
  return `${session}/${backupsName}`
}

/** Our own folder for a root: a sibling, since the plugin sweeps folders of its root that it does not know. */
export function sidecarOf(root: string): string {
  return join(dirname(root), '.rewind-admin', basename(root))
}

/** True for a text that is one name and may be the id of a session: the plugin takes ids as they are (section 15, 36). */
export function isSessionName(name: string): boolean {
  return name !== '' && !name.startsWith('.') && name.length <= 200 && !/[/\\\p{Cc}\uFFFD]/u.test(name)
}

/** True for the shape that pi gives its session ids. */
export function isPiSessionId(name: string): boolean {
  return isUuid(name)
}
