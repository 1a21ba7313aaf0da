import { chmodSync, chownSync, closeSync, fsyncSync, linkSync, lstatSync, mkdirSync, openSync, renameSync, rmSync, rmdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { writeWhole } from '../fs/atomic-write.js'
import { identityOf, sameIdentity, sameInode, statusOf, type Identity } from '../fs/identity.js'
import { publishFile } from '../fs/publish.js'
import { insideRoot } from '../fs/safe-path.js'
import { syncFolder } from '../fs/sync-folder.js'
import { FenceError, systemErrorCode } from '../model/errors.js'
import { stagingPath, type StorePlace } from './sidecar.js'

/** A file as it shall be, relative to the root; see `NewFile` of the formats. */
interface FileToPublish {
  readonly path: string
  readonly bytes: Buffer
  readonly mode?: number
  readonly was?: Pick<Identity, 'size' | 'mtimeNs'>
}

/** Files that were published; one of the two calls ends it. */
export interface PublishedFiles {
  /** Takes all of it back, the newest first; a file that was written to since stays. */
  undo(): void
  /** Lets go of what is needed to take it back. */
  keep(): void
}

/**
 * Publishes files in their order, each whole and on the disk before it gets its name; a new file overwrites nothing, and one
 * that replaces another keeps the mode and owner of that. When one fails, those before it are taken back. Hold the store's lock.
 * @param token hex digits, new for each call
 * @throws FenceError when a path leads out of the store, something is in the way, or a file is no longer what it was made
 *   from; system errors
 */
export function publishFiles(place: StorePlace, files: readonly FileToPublish[], token: string): PublishedFiles {
  const undo: (() => void)[] = []
  const kept: string[] = []
  const published: PublishedFiles = {
    undo: () => {
      for (const step of undo.reverse()) step()
    },
    keep: () => {
      for (const path of kept) rmSync(path, { force: true })
    },
  }
  try {
    for (const [index, file] of files.entries()) publishOne(place, file, `${token}-${String(index)}`, undo, kept)
    return published
  } catch (error) {
    published.undo()
    throw error
  }
}

function publishOne(place: StorePlace, file: FileToPublish, name: string, undo: (() => void)[], kept: string[]): void {
  makeFolder(place, dirname(file.path), undo)
  const path = insideRoot(place.root, file.path)
  if (path === undefined) throw new FenceError(`the folder for ${file.path} is gone or a link; nothing was written`)
  const staged = stagingPath(place, name)
  try {
    const old = lstatSync(path, { throwIfNoEntry: false })
    if (old?.isFile() === false) throw new FenceError(`something that is no file stands at ${file.path}; it was left as it is`)
    stage(staged, file.bytes, file.mode ?? (old === undefined ? 0o600 : old.mode & 0o7777), old)
    const made = identityOf(lstatSync(staged, { bigint: true }))
    if (old === undefined) {
      addNew(staged, path, file.path)
      undo.push(() => {
        const there = statusOf(path)
        if (there !== undefined && sameIdentity(identityOf(there), made)) rmSync(path)
      })
    } else {
      const aside = `${staged}.old`
      swap(staged, path, aside, file)
      kept.push(aside)
      undo.push(() => {
        const there = statusOf(path)
        if (there !== undefined && sameIdentity(identityOf(there), made)) renameSync(aside, path)
      })
    }
    syncFolder(dirname(path))
  } finally {
    rmSync(staged, { force: true })
  }
}

/** The folder of a new file, where only that is missing: a session without backups may have none. */
function makeFolder(place: StorePlace, relative: string, undo: (() => void)[]): void {
  const folder = insideRoot(place.root, relative)
  if (folder === undefined || lstatSync(folder, { throwIfNoEntry: false }) !== undefined) return
  mkdirSync(folder, { mode: 0o700 })
  const above = lstatSync(dirname(folder))
  if (process.geteuid?.() === 0) chownSync(folder, above.uid, above.gid)
  syncFolder(dirname(folder))
  undo.push(() => {
    try {
      rmdirSync(folder)
    } catch (error) {
      // What somebody put into it meanwhile stays.
      if (systemErrorCode(error) !== 'ENOTEMPTY') throw error
    }
  })
}

function stage(path: string, bytes: Buffer, mode: number, like: { readonly uid: number; readonly gid: number } | undefined): void {
  const fd = openSync(path, 'wx', 0o600)
  try {
    writeWhole(fd, bytes)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
  const made = lstatSync(path)
  if (like !== undefined && process.geteuid?.() === 0 && (made.uid !== like.uid || made.gid !== like.gid)) chownSync(path, like.uid, like.gid)
  chmodSync(path, mode)
}

function addNew(staged: string, path: string, relative: string): void {
  try {
    publishFile(staged, path)
  } catch (error) {
    if (systemErrorCode(error) !== 'EEXIST') throw error
    throw new FenceError(`something appeared at ${relative} meanwhile; it was left as it is`, { hint: 'run again' })
  }
}

/** The old file gets a second name first, so that there is no moment without a file at the path. */
function swap(staged: string, path: string, aside: string, { path: relative, was }: FileToPublish): void {
  linkSync(path, aside)
  const [seen, there] = [statusOf(aside), statusOf(path)]
  const same = seen !== undefined && there !== undefined && sameInode(identityOf(seen), identityOf(there))
  const now = seen === undefined ? undefined : identityOf(seen)
  if (!same || now === undefined || (was !== undefined && (now.size !== was.size || now.mtimeNs !== was.mtimeNs))) {
    rmSync(aside, { force: true })
    throw new FenceError(`${relative} was written to meanwhile; nothing was changed`, { hint: 'run again when the session is quiet' })
  }
  renameSync(staged, path)
}
