import { existsSync, type Dirent } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { nodeWord } from '../../fs/blocks.js'
import { listFolder } from '../../fs/folder.js'
import { finding, type Finding } from '../../model/finding.js'
import { isBackupName } from '../../model/names.js'
import type { Member, SessionRef } from '../../model/session.js'
import type { Inventory } from '../format.js'
import { backupFolderOf, backupsName, backupStateName, isOtherState, isPiSessionId, isSessionName, isTemporaryState, logName, sidecarOf, stateName, statePathOf } from './layout.js'
import { readStateFile } from './state-file.js'

/**
 * Lists the sessions of a store: folders of the root that look like sessions (formats/pi-candy-undo section 15, 4). The
 * plugin's own expiry deletes any old folder; here all that is no session is foreign and left alone.
 */
export function takeInventory(root: string): Inventory {
  const sessions: SessionRef[] = []
  const findings: Finding[] = []
  let unrecognised = 0
  const listing = listFolder(root)
  if (listing.error !== undefined) findings.push(finding('unreadable', `the root cannot be listed (${listing.error})`, { path: '.' }))
  for (const entry of listing.entries) {
    const { name } = entry
    if (name === logName && entry.isFile()) continue
    const inside = entry.isDirectory() && isSessionName(name) ? listFolder(join(root, name)) : undefined
    if (inside?.error !== undefined) {
      findings.push(finding('unreadable', `the folder cannot be listed (${inside.error}); what is in it is left alone`, { path: name }))
      continue
    }
    if (inside === undefined || !isSession(root, name, inside.entries)) {
      unrecognised += 1
      findings.push(outOfPlace(name, entry))
      continue
    }
    sessions.push({ id: name, members: membersOf(name, inside.entries) })
    for (const each of inside.entries) if (!isOwn(each)) findings.push(outOfPlace(`${name}/${each.name}`, each, name))
  }
  return { sessions, findings, unrecognised }
}

/** True for a root with a session or the plugin's log in it, and for the plugin's own place whatever is left there. */
export function looksLikeStore(root: string): boolean {
  const { entries, error } = listFolder(root)
  if (error !== undefined) return false
  if (basename(root) === 'file-history' && basename(dirname(root)) === '.pi') return true
  // What went to the trash must come back although nothing is left here. A root of that name is another agent's.
  if (basename(root) !== 'rewind-snapshots' && existsSync(join(sidecarOf(root), 'trash'))) return true
  if (entries.some(({ name }) => name === logName)) return true
  return entries.some((entry) => entry.isDirectory() && isSessionName(entry.name) && isSession(root, entry.name, listFolder(join(root, entry.name)).entries))
}

/** A folder named by an id of pi with a state or backups in it; of another name only with proof that it is one. */
function isSession(root: string, name: string, entries: readonly Dirent[]): boolean {
  const hasState = entries.some((entry) => entry.name === stateName || isTemporaryState(entry.name))
  const backups = entries.find((entry) => entry.name === backupsName)
  if (!hasState && backups?.isDirectory() !== true) return false
  const holdsBackups = (): boolean => backups?.isDirectory() === true && listFolder(join(root, backupFolderOf(name))).entries.some((each) => isBackupName(each.name))
  if (isPiSessionId(name)) return hasState || entries.length === 1 || holdsBackups()
  if (holdsBackups()) return true
  const file = readStateFile(root, statePathOf(name))
  return file.kind === 'read' && file.parsed.kind === 'state' && file.parsed.state.sessionId === name
}

function membersOf(id: string, entries: readonly Dirent[]): Member[] {
  return entries.flatMap((entry): Member[] => {
    const path = `${id}/${entry.name}`
    // What stands in the place of the state counts as the state: reading it says what it is, and the session is kept.
    if (entry.name === stateName) return [{ kind: 'transcript', path, folder: entry.isDirectory() }]
    if (entry.name === backupsName && entry.isDirectory()) return [{ kind: 'backups', path, folder: true }]
    return (isTemporaryState(entry.name) || entry.name === backupStateName) && entry.isFile() ? [{ kind: 'companion', path, folder: false }] : []
  })
}

function isOwn(entry: Dirent): boolean {
  if (entry.name === stateName) return true
  return entry.isDirectory() ? entry.name === backupsName : entry.isFile() && (isTemporaryState(entry.name) || entry.name === backupStateName)
}

function outOfPlace(path: string, entry: Dirent, session?: string): Finding {
  const at = { path, ...(session === undefined ? {} : { session }) }
  if (!entry.isFile() && !entry.isDirectory()) return finding('not-regular', `${nodeWord(entry)} stands in the store; it is not followed`, at)
  const words = session !== undefined && isOtherState(entry.name) ? 'a copy of the state that the agent does not make; left alone' : 'not a name that the agent makes; left alone'
  return finding('foreign-file', words, at)
}
