import { readdirSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Surroundings } from '../format.js'
import { formatMarker, groupNumber, journalId, snapshotsFolder, storeMarker } from './layout.js'

/** Sub-folders that are looked into before a folder counts as no store. */
const looked = 200

/**
 * Where stores may be (section 1.1): the variable, then the snapshots of each home of the agent. A user with `DSH_HOME` set
 * can own two, since early versions ignored it.
 */
export function storePlaces(around: Surroundings): string[] {
  const set = filled(around.env.DSH_REWIND_SNAPSHOT_DIR)
  const homes = agentHomes(around).map((home) => join(home, snapshotsFolder))
  return [...new Set(set === undefined ? homes : [withHome(set, around.home), ...homes])]
}

/** The agent's homes on this machine, the one that counts first. */
function agentHomes({ home, env }: Surroundings): string[] {
  const set = filled(env.DSH_HOME)
  const usual = join(home, '.dsh')
  return [...new Set(set === undefined ? [usual] : [withHome(set, home), usual])]
}

/** The folder of snapshots that a given folder is or holds. */
export function snapshotsIn(root: string): string {
  const inner = join(root, snapshotsFolder)
  return isFolder(inner) ? inner : root
}

/** True for a home of the agent with snapshots, and for a folder of snapshots. */
export function looksLikeStore(root: string): boolean {
  if (isFolder(join(root, snapshotsFolder)) || basename(root) === snapshotsFolder) return true
  try {
    const folders = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    return folders.slice(0, looked).some(({ name }) => looksLikeSession(join(root, name)))
  } catch {
    return false
  }
}

/** Folders with conversations that may belong to a store: those that were named, else those of the home around it and of the usual homes. */
export function conversationFolders(root: string, around: Surroundings): string[] {
  if (around.conversations !== undefined) return [around.conversations].filter(isFolder)
  const own = basename(root) === snapshotsFolder ? [dirname(root)] : []
  const folders = [...own, ...agentHomes(around)].map((home) => join(home, 'sessions')).filter(isFolder)
  return [...new Set(folders.map((folder) => realpathSync(folder)))]
}

/** Homes whose files may speak for a store. */
export function homesOf(root: string, around: Surroundings): string[] {
  const own = basename(root) === snapshotsFolder ? [dirname(root)] : []
  return [...new Set([...own, ...agentHomes(around)])]
}

/** True for a folder with something that only this plugin makes: a journal, or a group with records beside a marker or not. */
function looksLikeSession(folder: string): boolean {
  try {
    const entries = readdirSync(folder, { withFileTypes: true })
    const groups = entries.filter((entry) => entry.isDirectory() && groupNumber(entry.name) !== undefined)
    const marked = entries.some((entry) => entry.isFile() && (entry.name === storeMarker || entry.name === formatMarker))
    if (entries.some((entry) => entry.isFile() && journalId(entry.name) !== undefined)) return true
    if (groups.length === 0) return false
    return marked || groups.slice(0, looked).some(({ name }) => readdirSync(join(folder, name)).some((inner) => /\.(?:json|before)$/.test(inner)))
  } catch {
    return false
  }
}

function filled(value: string | undefined): string | undefined {
  const text = value?.trim()
  return text === undefined || text === '' ? undefined : text
}

function withHome(path: string, home: string): string {
  return path === '~' ? home : /^~[\\/]/.test(path) ? join(home, path.slice(2)) : path
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}
