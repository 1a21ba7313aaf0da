import { join } from 'node:path'
import type { Dirent } from 'node:fs'
import { nodeWord } from '../../fs/blocks.js'
import { listFolder } from '../../fs/folder.js'
import { finding, type Finding } from '../../model/finding.js'
import type { SessionRef } from '../../model/session.js'
import type { Inventory } from '../format.js'
import { formatMarker, groupNumber, isClean, isOddGroup, isRecordName, journalId, pendingFolder, rescueFolder, storeMarker } from './layout.js'

/** How deep and how wide a folder is searched for sessions whose id holds a slash (section 2.2). */
const deepest = 3
const widest = 50

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
    else findings.push(outOfPlace(root, entry))
  }
  return { sessions, findings, unrecognised: entries.length - sessions.length }
}

/** The first folder at or below a folder that holds records in a group; only so many are looked into. */
function nestedSession(root: string, path: string, depth: number): string | undefined {
  for (const entry of listFolder(join(root, path)).entries.slice(0, widest)) {
    if (!entry.isDirectory()) continue
    const inside = `${path}/${entry.name}`
    const records = groupNumber(entry.name) === undefined ? [] : listFolder(join(root, inside)).entries
    if (records.some((record) => record.isFile() && isRecordName(record.name))) return path
    const below = depth === 0 ? undefined : nestedSession(root, inside, depth - 1)
    if (below !== undefined) return below
  }
  return undefined
}

function isSession(root: string, entry: Dirent): boolean {
  if (!entry.isDirectory() || entry.name.startsWith('.') || !isClean(entry.name)) return false
  const { entries, error } = listFolder(join(root, entry.name))
  // A folder that cannot be looked into may be one: reading it says so, and it is kept.
  if (error !== undefined || entries.length === 0) return true
  return entries.some(({ name }) => ownNames.has(name) || groupNumber(name) !== undefined || isOddGroup(name) || journalId(name) !== undefined)
}

function outOfPlace(root: string, entry: Dirent): Finding {
  const path = entry.name
  const nested = entry.isDirectory() && !path.startsWith('.') ? nestedSession(root, path, deepest) : undefined
  if (nested !== undefined) {
    const message = `it holds the session ${nested} of the first build, which made folders of an id with a slash; no later build reads it, and it is left alone`
    return finding('foreign-file', message, { path })
  }
  if (entry.isFile() || entry.isDirectory()) return finding('foreign-file', 'not a name that the plugin makes; left alone', { path })
  return finding('not-regular', `${nodeWord(entry)} stands in the store; it is not followed`, { path })
}
