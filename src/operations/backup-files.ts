import { join } from 'node:path'
import type { Store } from '../formats/format.js'
import type { ProbeJob } from '../fs/probe.js'
import { isBackupName } from '../model/names.js'
import { membersOf, type SessionRef } from '../model/session.js'

/** Names that a session's records or seals know as backups. */
interface KnownNames {
  has(name: string): boolean
}

/**
 * True for the name of a backup of a store. A text in a record has no shape of its own: it is one when a record or a seal says so.
 */
export function isBackupOf(store: Pick<Store, 'isBackup'>, known: KnownNames | undefined, name: string): boolean {
  if (store.isBackup === undefined) return isBackupName(name)
  return store.isBackup(name) || known?.has(name) === true
}

/**
 * What to look at for the backups of a session; `undefined` when it has none. Several folders are looked at as one, and names
 * have the prefix of theirs.
 */
export function backupJob(store: Store, ref: SessionRef, digest: ProbeJob['digest']): ProbeJob | undefined {
  if (membersOf(ref, 'backups').length === 0) return undefined
  const path = join(store.root, store.backupFolder(ref.id))
  const folders = store.backupFolders?.(ref)
  if (folders === undefined) return { path, digest }
  return { path, digest, parts: folders.map((folder) => ({ path: join(store.root, folder.path), prefix: folder.prefix })) }
}

/** The name of the backup that a path in the store stands for, by the folder of its session. */
export function backupNameAt(store: Pick<Store, 'backupFolder'>, session: string, path: string): string {
  const folder = `${store.backupFolder(session)}/`
  return path.startsWith(folder) ? path.slice(folder.length) : ''
}
