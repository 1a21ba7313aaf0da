import { join } from 'node:path'
import type { Dirent } from 'node:fs'
import { nodeWord } from '../../fs/blocks.js'
import { listFolder } from '../../fs/folder.js'
import { finding, type Finding } from '../../model/finding.js'
import type { SessionRef } from '../../model/session.js'
import type { Inventory } from '../format.js'
import { formatMarker, groupNumber, isClean, isOddGroup, journalId, pendingFolder, rescueFolder, storeMarker } from './layout.js'

const ownNames: ReadonlySet<string> = new Set([storeMarker, formatMarker, pendingFolder, rescueFolder])

/**
 * Lists every session of a root by names alone: a folder of a clean name that is empty or holds something that the plugin
 * makes. Whatever else is there is foreign and left alone (R14); names with a dot in front are nobody's sessions (section 4.1).
 */
export function takeInventory(root: string): Inventory {
  const sessions: SessionRef[] = []
  const findings: Finding[] = []
  const { entries, error } = listFolder(root)
  if (error !== undefined) findings.push(finding('unreadable', `the store cannot be listed (${error}); nothing in it is touched`, { path: '.' }))
  for (const entry of entries) {
    if (isSession(root, entry)) sessions.push({ id: entry.name, members: [{ kind: 'backups', path: entry.name, folder: true }] })
    else findings.push(outOfPlace(entry))
  }
  return { sessions, findings, unrecognised: entries.length - sessions.length }
}

function isSession(root: string, entry: Dirent): boolean {
  if (!entry.isDirectory() || entry.name.startsWith('.') || !isClean(entry.name)) return false
  const { entries, error } = listFolder(join(root, entry.name))
  // A folder that cannot be looked into may be one: reading it says so, and it is kept.
  if (error !== undefined || entries.length === 0) return true
  return entries.some(({ name }) => ownNames.has(name) || groupNumber(name) !== undefined || isOddGroup(name) || journalId(name) !== undefined)
}

function outOfPlace(entry: Dirent): Finding {
  const path = entry.name
  if (entry.isFile() || entry.isDirectory()) return finding('foreign-file', 'not a name that the plugin makes; left alone', { path })
  return finding('not-regular', `${nodeWord(entry)} stands in the store; it is not followed`, { path })
}
