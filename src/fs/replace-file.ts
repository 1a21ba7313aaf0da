import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { FenceError, systemErrorCode } from '../model/errors.js'
import type { TargetNode } from '../model/restore-plan.js'
import type { AnchoredFolder } from './anchored-folder.js'
import { eachBlockAt, type ContentAt, type Stretch } from './content.js'
import { isAsSeen, nodeAt, nodeOf } from './working-tree.js'

/**
 * Bytes that a file shall have, and its mode (`mode & 07777`); without one a file keeps its own, and a new one gets what
 * the system gives to new files.
 */
export interface NewContent {
  readonly at: ContentAt
  readonly stretch: Stretch
  readonly mode?: number
}

/** How the new bytes get to their place: by renaming the temporary file, or by writing into the file that is there. */
export type Way = 'rename' | 'in-place'

/** Thrown when the bytes to write are not all there. */
class ShortContentError extends Error {
  readonly code = 'SHORT_CONTENT'
}

/**
 * Writes a temporary file beside a target, private until it is whole, with the owner and group of the target. When that
 * cannot be had (the file belongs to somebody else, or the folder takes no new file) nothing is left and the way is
 * `in-place`.
 */
export function stageBeside(folder: AnchoredFolder, temporary: string, content: NewContent, target: TargetNode): Way {
  const mode = content.mode ?? (target.kind === 'file' ? target.mode : undefined)
  let fd: number
  try {
    fd = openSync(folder.at(temporary), constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, mode === undefined ? 0o666 : 0o600)
  } catch (error) {
    const code = systemErrorCode(error)
    if (target.kind === 'file' && (code === 'EACCES' || code === 'EPERM')) return 'in-place'
    throw error
  }
  try {
    copyInto(fd, content)
    const owned = target.kind !== 'file' || takeOwner(fd, target.uid, target.gid)
    if (owned) {
      // After chown, which takes the set-user-id bits away.
      if (mode !== undefined) fchmodSync(fd, mode)
      return 'rename'
    }
  } catch (error) {
    discard(folder, temporary)
    throw error
  } finally {
    closeSync(fd)
  }
  discard(folder, temporary)
  return 'in-place'
}

/** Puts a staged file in the place of its target, which must still be what was seen. */
export function renameOver(folder: AnchoredFolder, name: string, temporary: string, seen: TargetNode): void {
  assertAsSeen(folder, name, seen)
  renameSync(folder.at(temporary), folder.at(name))
}

/** Unlinks a file, which must still be what was seen. */
export function removeFile(folder: AnchoredFolder, name: string, seen: TargetNode): void {
  assertAsSeen(folder, name, seen)
  unlinkSync(folder.at(name))
}

/** Writes into the file that is there, so that it keeps its owner. Not atomic: have a copy of the old bytes first. */
export function writeInPlace(folder: AnchoredFolder, name: string, content: NewContent, seen: TargetNode): void {
  assertAsSeen(folder, name, seen)
  const fd = openSync(folder.at(name), constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    if (!isAsSeen(seen, nodeOf(fstatSync(fd)))) throw changed(folder, name)
    const mode = content.mode ?? (seen.kind === 'file' ? seen.mode : undefined)
    // The mode first: if that is refused, the bytes are still the old ones.
    if (seen.kind === 'file' && mode !== undefined && seen.mode !== mode) fchmodSync(fd, mode)
    copyInto(fd, content)
    ftruncateSync(fd, content.stretch.size)
    // Writing takes the set-user-id bits away.
    if (mode !== undefined && (mode & 0o6000) !== 0) fchmodSync(fd, mode)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** Takes a temporary file away; it may be gone already. */
export function discard(folder: AnchoredFolder, temporary: string): void {
  try {
    unlinkSync(folder.at(temporary))
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw error
  }
}

function copyInto(fd: number, { at, stretch }: NewContent): void {
  let written = 0
  const copied = eachBlockAt(at, stretch, (block) => {
    for (let done = 0; done < block.length; ) done += writeSync(fd, block, done, block.length - done, written + done)
    written += block.length
  })
  if (copied !== stretch.size) throw new ShortContentError(`${'folder' in at ? `${at.folder.path}/${at.name}` : 'a backup'} ended before it should`)
}

function takeOwner(fd: number, uid: number, gid: number): boolean {
  const made = fstatSync(fd)
  if (made.uid === uid && made.gid === gid) return true
  try {
    fchownSync(fd, uid, gid)
    return true
  } catch {
    return false
  }
}

function assertAsSeen(folder: AnchoredFolder, name: string, seen: TargetNode): void {
  if (!folder.isInPlace() || !isAsSeen(seen, nodeAt(folder.at(name)))) throw changed(folder, name)
}

function changed(folder: AnchoredFolder, name: string): FenceError {
  return new FenceError(`${folder.path}/${name} changed since it was looked at; it was left alone`, { hint: 'run again' })
}
