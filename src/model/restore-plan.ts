import type { BackupRecord } from './backup.js'
import type { Resolution } from './resolve.js'
import { trackedTarget } from './tracked-path.js'

/** A regular file as `lstat` saw it. `dev`, `ino` and the times (milliseconds since 1970) tell it from any other. */
export interface FileNode {
  readonly kind: 'file'
  /** Permission bits with setuid, setgid and sticky: `mode & 07777`. */
  readonly mode: number
  /** Bytes. */
  readonly size: number
  readonly nlink: number
  readonly uid: number
  readonly gid: number
  readonly dev: number
  readonly ino: number
  readonly mtimeMs: number
  readonly ctimeMs: number
}

/** What stands at a target; nothing was followed or opened to find out. */
export type TargetNode =
  | { readonly kind: 'absent' }
  | FileNode
  | { readonly kind: 'link' }
  | { readonly kind: 'folder' }
  | { readonly kind: 'special'; readonly what: string }
  | { readonly kind: 'unreachable'; readonly reason: string }

/** Where a target really lies: `name` in the real path `folder`, whose last `missing` folders do not exist yet. */
export interface TargetPlace {
  readonly folder: string
  readonly missing: number
  readonly name: string
}

/** What was found out about the folders above a target. */
export interface ParentState {
  /** Real path that the folder has, or would have once its missing folders are made; `undefined` when nobody can tell. */
  readonly real?: string
  readonly missing: number
  /** Why `real` is not known. */
  readonly trouble?: string
  /** The file that stands where one of its folders should be. */
  readonly blockedBy?: string
  /** The first link among the folders that must not be links; looked for only when no real parent is recorded. */
  readonly link?: string
}

/** How the restores of a format treat what stands at a path. */
export interface RestoreRules {
  /** The permission bits that a backup carries. */
  readonly modeBits: number
  /** Whether a difference of these bits alone is a change. */
  readonly modeCounts: boolean
  /** A file that its owner may not write keeps its mode when the record has none. */
  readonly readOnlyKeepsMode?: true
  /** A file at the path of more bytes than this is left alone. */
  readonly liveLimit?: number
}

/** Mode, size and bytes must be equal (formats/claude-code section 4). */
export const defaultRestoreRules: RestoreRules = { modeBits: 0o7777, modeCounts: true }

/**
 * What was found where a backup should be. `mode` is `mode & 07777`, absent when nothing says it: then a file keeps its own.
 * `size` and `offset` are bytes.
 */
export type BackupState =
  | { readonly kind: 'file'; readonly size: number; readonly mode?: number; readonly offset: number }
  | { readonly kind: 'missing' }
  | { readonly kind: 'not-regular' }
  | { readonly kind: 'unreadable'; readonly reason: string }
  | { readonly kind: 'damaged'; readonly reason: string }

/** Everything that the decision about one path rests on. */
export interface Observation {
  readonly node: TargetNode
  readonly parent: ParentState
  /** Why the target may not be touched whatever stands there: it lies in a folder of ours or of the agent's. */
  readonly fenced?: string
  readonly backup?: BackupState
  /** Whether the bytes of file and backup are equal; looked at only when mode and size are. Of a lossy backup: the texts. */
  readonly equal?: boolean
}

/** What a restore does to one path. */
export type Decision =
  | { readonly action: 'unchanged' }
  | { readonly action: 'restore'; readonly backup: string; readonly offset: number; readonly size: number; readonly mode?: number }
  | { readonly action: 'delete' }
  | { readonly action: 'skip'; readonly reason: string }
  | { readonly action: 'fail'; readonly reason: string }
  | { readonly action: 'unknown'; readonly reason: string }

/** One file that a restore is about: an absolute path with every key that stands for it, and what it should be. */
export interface Wanted {
  readonly path: string
  readonly keys: readonly string[]
  readonly resolution: Resolution
}

/** One path of a restore plan. */
export interface PlannedPath {
  /** Absolute path as tracked; the key itself when it stands for none. */
  readonly path: string
  readonly keys: readonly string[]
  readonly decision: Decision
  readonly node: TargetNode
  /** Where it really lies; absent when that is not known, and then it is never acted on. */
  readonly place?: TargetPlace
  /** A file above it goes first, and only then its folders can be made. */
  readonly late: boolean
}

/**
 * Brings keys together that stand for one file (R102). The checkpoint's own record goes before the first record of
 * another key; keys that still disagree make the file unknown. Sorted by path.
 */
export function wantedPaths(
  resolutions: ReadonlyMap<string, Resolution>,
  own: ReadonlyMap<string, BackupRecord>,
  start: string | undefined,
  windows = false,
): Wanted[] {
  const byPath = new Map<string, { keys: string[]; resolution: Resolution; own: boolean }>()
  for (const [key, resolution] of resolutions) {
    const target = trackedTarget(key, start, windows)
    const path = 'path' in target ? target.path : key
    const next: Resolution = 'path' in target ? resolution : { state: 'unknown', reason: target.refused }
    const known = byPath.get(path)
    if (known === undefined) {
      byPath.set(path, { keys: [key], resolution: next, own: own.has(key) })
      continue
    }
    known.keys.push(key)
    if (own.has(key) && !known.own) {
      known.resolution = next
      known.own = true
    } else if (own.has(key) === known.own && !sameResolution(known.resolution, next)) {
      known.resolution = { state: 'unknown', reason: `the records of ${known.keys.join(' and ')} disagree about this file` }
    }
  }
  return [...byPath]
    .map(([path, { keys, resolution }]) => ({ path, keys, resolution }))
    .sort((a, b) => (a.path < b.path ? -1 : 1))
}

function sameResolution(a: Resolution, b: Resolution): boolean {
  if (a.state === 'backup' && b.state === 'backup') return a.name === b.name
  return a.state === b.state
}

/**
 * Why a path is left alone whatever its backup says (formats/claude-code section 4, rule 2; R55), or `undefined`.
 * Looks only at names and nodes, so it is asked before any content is read.
 */
export function obstacle(resolution: Resolution, seen: Observation, rules: RestoreRules = defaultRestoreRules): Decision | undefined {
  if (resolution.state === 'unknown') return unknown(resolution)
  const { node, parent } = seen
  if (seen.fenced !== undefined) return skip(seen.fenced)
  if (node.kind === 'link') return skip('it is a symbolic link')
  if (node.kind === 'folder') return skip('it is a folder')
  if (node.kind === 'special') return skip(`it is a ${node.what}`)
  if (node.kind === 'unreachable') return skip(node.reason)
  if (node.kind === 'file' && node.nlink > 1) return skip(`it is a hard link (link count ${String(node.nlink)})`)
  if (node.kind === 'file' && rules.liveLimit !== undefined && node.size > rules.liveLimit) {
    return skip(`it has ${String(node.size)} bytes, more than the limit of ${String(rules.liveLimit)}`)
  }
  if (parent.real === undefined) return skip(parent.trouble ?? 'the real path of its folder is not known')
  const recorded = resolution.record.parent
  if (recorded !== undefined && recorded !== parent.real) return skip(`its folder is now ${parent.real}, recorded was ${recorded}`)
  if (recorded === undefined && parent.link !== undefined) return skip(`${parent.link} is a link, and no record says where it led`)
  const isBlocked = parent.blockedBy !== undefined && resolution.state === 'backup'
  return isBlocked ? skip(`a file stands where its folder should be: ${parent.blockedBy}`) : undefined
}

/**
 * What a restore does to one path (formats/claude-code section 4): absolute, so that doing it twice is doing it once.
 */
export function decide(resolution: Resolution, seen: Observation, rules: RestoreRules = defaultRestoreRules): Decision {
  const left = obstacle(resolution, seen, rules)
  if (left !== undefined) return left
  if (resolution.state === 'unknown') return unknown(resolution)
  if (resolution.state === 'absent') return { action: seen.node.kind === 'absent' ? 'unchanged' : 'delete' }
  const backup = seen.backup ?? { kind: 'missing' }
  const { name } = resolution
  if (backup.kind === 'missing') return fail(`its backup ${name} is missing`)
  if (backup.kind === 'not-regular') return fail(`its backup ${name} is not a plain file`)
  if (backup.kind === 'unreadable') return fail(`its backup ${name} cannot be read: ${backup.reason}`)
  if (backup.kind === 'damaged') return fail(`its backup ${name} is damaged: ${backup.reason}`)
  const { node } = seen
  const { lossy } = resolution.record
  if (seen.equal === true && (lossy === true || isAlike(node, backup, rules))) return { action: 'unchanged' }
  if (lossy === true) return skip('its backup was written through a lossy text decoding')
  const mode = modeFor(node, resolution.record, backup.mode, rules)
  return { action: 'restore', backup: name, offset: backup.offset, size: backup.size, ...(mode === undefined ? {} : { mode }) }
}

function modeFor(node: TargetNode, record: BackupRecord, mode: number | undefined, rules: RestoreRules): number | undefined {
  if (node.kind !== 'file') return mode
  const keeps = rules.readOnlyKeepsMode === true && record.mode === undefined && (node.mode & 0o200) === 0
  return keeps ? node.mode : (mode ?? node.mode)
}

/** True when a file may be equal to a backup, so that its bytes must be looked at. */
export function isAlike(node: TargetNode, backup: BackupState, { modeBits, modeCounts }: RestoreRules): node is FileNode {
  if (node.kind !== 'file' || backup.kind !== 'file' || node.size !== backup.size) return false
  return !modeCounts || backup.mode === undefined || (node.mode & modeBits) === (backup.mode & modeBits)
}

/** True when the decision changes the working tree. */
export function isChange(decision: Decision): boolean {
  return decision.action === 'restore' || decision.action === 'delete'
}

/** What was never recorded is passed over; what cannot be told although it was stops a rewind. */
function unknown({ reason, gap }: Extract<Resolution, { state: 'unknown' }>): Decision {
  return gap === true ? skip(reason) : { action: 'unknown', reason }
}

function skip(reason: string): Decision {
  return { action: 'skip', reason }
}

function fail(reason: string): Decision {
  return { action: 'fail', reason }
}
