import { lstatSync, type Dirent } from 'node:fs'
import { join } from 'node:path'
import { listFolder } from '../../fs/folder.js'
import { systemErrorCode } from '../../model/errors.js'
import { isBackupName } from '../../model/names.js'
import type { Member, SessionRef } from '../../model/session.js'
import type { SessionContents } from '../format.js'
import { backupFolderOf, isBackupsEntry, isTemporaryBackup, isTemporaryState, statePathOf } from './layout.js'
import { readStateFile, stateTrouble, type StateFile } from './state-file.js'

/**
 * What removing a session takes: its state, its backups and its leftovers by name, and the folder when nothing else lies in
 * it. A session whose state is damaged, missing, newer, or empty beside backups is left alone: its backups may be all there is.
 */
export function readContents(root: string, session: SessionRef): SessionContents {
  const own: Member[] = []
  const foreign: string[] = []
  const unreadable: { path: string; code: string }[] = []
  const newest: { companion?: number; backup?: number } = {}
  const note = (path: string, key: 'companion' | 'backup'): void => {
    try {
      const status = lstatSync(join(root, path), { throwIfNoEntry: false })
      if (status !== undefined) newest[key] = Math.max(newest[key] ?? 0, Math.round(status.mtimeMs))
    } catch (error) {
      unreadable.push({ path, code: systemErrorCode(error) ?? 'UNKNOWN' })
    }
  }
  for (const member of session.members) {
    if (member.kind !== 'backups') {
      own.push(member)
      if (member.kind === 'companion') note(member.path, 'companion')
      continue
    }
    const { entries, error } = listFolder(join(root, member.path))
    if (error !== undefined) {
      unreadable.push({ path: member.path, code: error })
      continue
    }
    const isOurs = (entry: Dirent): boolean => entry.isFile() && isBackupsEntry(entry.name)
    for (const entry of entries) {
      const path = `${member.path}/${entry.name}`
      if (isOurs(entry)) note(path, 'backup')
      else foreign.push(path)
    }
    if (entries.every(isOurs)) own.push(member)
    else own.push(...entries.filter(isOurs).map((entry): Member => ({ kind: 'backups', path: `${member.path}/${entry.name}`, folder: false })))
  }
  const known = new Set(session.members.map(({ path }) => path))
  for (const { name } of listFolder(join(root, session.id)).entries) {
    const path = `${session.id}/${name}`
    if (!known.has(path)) foreign.push(path)
  }
  const doubt = doubtAbout(root, session)
  return { own, foreign, unreadable, emptied: [backupFolderOf(session.id), session.id], ...newest, ...(doubt === undefined ? {} : { doubt }) }
}

function doubtAbout(root: string, session: SessionRef): string | undefined {
  const file = readStateFile(root, statePathOf(session.id))
  const orphans = backupNames(root, session.id).length
  if (file.kind === 'missing' && orphans === 0) return undefined
  const trouble = stateTrouble(file)
  if (trouble !== undefined) return `${trouble}, so its backups may be all that is left`
  return isWiped(file) && orphans > 0 ? `its state is empty, but ${String(orphans)} backups lie beside it` : undefined
}

/** True for a state that names no file at all. */
export function isWiped(file: StateFile): boolean {
  if (file.kind !== 'read' || file.parsed.kind !== 'state') return false
  const { originals, trackedFiles, snapshots } = file.parsed.state
  return originals.size === 0 && trackedFiles.length === 0 && snapshots.every(({ files }) => files.size === 0)
}

/** Names of the backups of a session that are plain files. */
export function backupNames(root: string, session: string): string[] {
  return listFolder(join(root, backupFolderOf(session))).entries.flatMap((entry) => (entry.isFile() && isBackupName(entry.name) ? [entry.name] : []))
}

/** Plain files that a write which never ended left in a session: copies of its state, and of backups. */
export function temporaryFiles(root: string, session: string): Member[] {
  const below = (folder: string, kind: Member['kind'], isLeft: (name: string) => boolean): Member[] =>
    listFolder(join(root, folder)).entries.flatMap((entry) => (entry.isFile() && isLeft(entry.name) ? [{ kind, path: `${folder}/${entry.name}`, folder: false }] : []))
  return [...below(session, 'companion', isTemporaryState), ...below(backupFolderOf(session), 'backups', isTemporaryBackup)]
}
