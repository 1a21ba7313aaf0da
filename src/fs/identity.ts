import { lstatSync, readdirSync } from 'node:fs'
import type { BigIntStats } from 'node:fs'
import { sep } from 'node:path'
import { systemErrorCode } from '../model/errors.js'

/** Which file it is and how far it was written. Numbers that may exceed 2^53 are decimal text, so that JSON keeps them. */
export interface Identity {
  readonly dev: string
  readonly ino: string
  /** Bytes; of a folder 0. */
  readonly size: number
  /** Modification time in nanoseconds since 1970. */
  readonly mtimeNs: string
}

export type EntryType = 'file' | 'folder' | 'link' | 'other'

/** What lies in a folder, all the way down: enough to see that something in it grew, came or went. */
export interface TreeSummary {
  readonly entries: number
  /** Sum of the sizes of the files in bytes, each name counted. */
  readonly bytes: number
  /** Newest modification time of the folder or anything in it, nanoseconds since 1970. */
  readonly newestNs: string
}

/** One name of a regular file's inode. */
export interface InodeName {
  /** `<dev>:<ino>` */
  readonly key: string
  /** Names that the inode has in the whole file system. */
  readonly links: number
  /** Size in bytes. */
  readonly bytes: number
}

/** What stands at a path, looked at without following links. */
export interface Observation {
  readonly type: EntryType
  readonly identity: Identity
  /** Permission bits, `mode & 0o7777`. */
  readonly mode: number
  readonly tree?: TreeSummary
  /**
   * Newest modification time, nanoseconds since 1970, of what is not a folder at or below the path; of a folder that holds only
   * folders its own.
   */
  readonly newestNs: bigint
  /** Every regular file at or below the path. */
  readonly inodes: readonly InodeName[]
}

/** Status of a path without following links, `undefined` when nothing is there. Other errors are thrown. */
export function statusOf(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    if (systemErrorCode(error) === 'ENOTDIR') return undefined
    throw error
  }
}

export function typeOf(status: BigIntStats): EntryType {
  if (status.isFile()) return 'file'
  if (status.isDirectory()) return 'folder'
  return status.isSymbolicLink() ? 'link' : 'other'
}

export function identityOf(status: BigIntStats): Identity {
  return {
    dev: status.dev.toString(),
    ino: status.ino.toString(),
    size: status.isDirectory() ? 0 : Number(status.size),
    mtimeNs: status.mtimeNs.toString(),
  }
}

/** True when both name the same inode, whatever was written to it since. */
export function sameInode(a: Identity, b: Identity): boolean {
  return a.dev === b.dev && a.ino === b.ino
}

/** True when both name the same inode and nothing was written to it between them. */
export function sameIdentity(a: Identity, b: Identity): boolean {
  return sameInode(a, b) && a.size === b.size && a.mtimeNs === b.mtimeNs
}

/**
 * Looks at a path and, for a folder, at everything below it; links are never followed, nothing is opened but folders.
 * @returns `undefined` when nothing is there
 * @throws system errors other than "not there", for instance a folder that cannot be listed
 */
export function observe(path: string): Observation | undefined {
  const status = statusOf(path)
  if (status === undefined) return undefined
  const type = typeOf(status)
  const base = { type, identity: identityOf(status), mode: Number(status.mode & 0o7777n) }
  if (type !== 'folder') return { ...base, newestNs: status.mtimeNs, inodes: type === 'file' ? [inodeName(status)] : [] }

  const inodes: InodeName[] = []
  let entries = 0
  let bytes = 0
  let newest = status.mtimeNs
  let newestFile: bigint | undefined
  const waiting = [path]
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    for (const name of namesIn(folder)) {
      entries += 1
      // Both are clean already: joining them by hand saves a tenth of the walk.
      const child = `${folder}${sep}${name}`
      const seen = statusOf(child)
      if (seen === undefined) continue
      const { mtimeNs } = seen
      if (mtimeNs > newest) newest = mtimeNs
      if (seen.isDirectory()) {
        waiting.push(child)
        continue
      }
      if (newestFile === undefined || mtimeNs > newestFile) newestFile = mtimeNs
      if (!seen.isFile()) continue
      const inode = inodeName(seen)
      bytes += inode.bytes
      inodes.push(inode)
    }
  }
  return { ...base, tree: { entries, bytes, newestNs: newest.toString() }, newestNs: newestFile ?? status.mtimeNs, inodes }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return []
    throw error
  }
}

function inodeName(status: BigIntStats): InodeName {
  return { key: `${status.dev.toString()}:${status.ino.toString()}`, links: Number(status.nlink), bytes: Number(status.size) }
}
