import { createHash, hash } from 'node:crypto'
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, type Stats } from 'node:fs'
import { systemErrorCode } from '../model/errors.js'
import type { BackupState } from '../model/restore-plan.js'
import type { AnchoredFolder } from './anchored-folder.js'
import { NotRegularError } from './blocks.js'

const blockSize = 256 * 1024

/** Two blocks for all readings of this thread: comparing needs both at once. */
let first: Buffer | undefined
let second: Buffer | undefined

/** A stretch of bytes in a plain file; `offset` and `size` in bytes. */
export interface Stretch {
  readonly offset: number
  readonly size: number
}

/** Where bytes are: in a plain file of a folder, or at hand because they are no file of their own. */
export type ContentAt = { readonly folder: AnchoredFolder; readonly name: string } | { readonly bytes: Buffer }

/** Opens a plain file in a folder for reading; never follows a link, never waits on a pipe, never reads a device. */
export function openInFolder(folder: AnchoredFolder, name: string): number {
  return openWithStatus(folder, name).fd
}

/** As `openInFolder`, with the status of the file that was opened. */
export function openWithStatus(folder: AnchoredFolder, name: string): { readonly fd: number; readonly status: Stats } {
  const fd = openSync(folder.at(name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  const status = fstatSync(fd)
  if (status.isFile()) return { fd, status }
  closeSync(fd)
  throw new NotRegularError(`${folder.path}/${name}`, 'not a plain file')
}

/** What stands where a backup should be, looked at without opening anything but a plain file whose digest is wanted. */
export function inspectBackup(folder: AnchoredFolder, name: string, seal: string | undefined): BackupState {
  try {
    const status = lstatSync(folder.at(name), { throwIfNoEntry: false })
    if (status === undefined) return { kind: 'missing' }
    if (!status.isFile()) return { kind: 'not-regular' }
    const state: BackupState = { kind: 'file', size: status.size, mode: status.mode & 0o7777, offset: 0 }
    if (seal === undefined || digestStretch(folder, name, state) === seal) return state
    return { kind: 'damaged', reason: 'its bytes are not those that were sealed' }
  } catch (error) {
    if (error instanceof NotRegularError) return { kind: 'not-regular' }
    return { kind: 'unreadable', reason: systemErrorCode(error) ?? 'unknown error' }
  }
}

/** sha256 in hex of a stretch of a plain file; a file that ends early has another digest. */
export function digestStretch(folder: AnchoredFolder, name: string, stretch: Stretch): string {
  const fd = openInFolder(folder, name)
  try {
    return digestOpen(fd, stretch)
  } finally {
    closeSync(fd)
  }
}

/** True when a plain file has exactly the bytes of a stretch of something; see `sameBytes`. */
export function sameContent(path: string, at: ContentAt, stretch: Stretch): boolean {
  if ('folder' in at) return sameBytes(path, at.folder, at.name, stretch)
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const blocks: Buffer[] = []
    // One byte more than is wanted: a file that grew meanwhile is not equal.
    eachBlock(fd, { offset: 0, size: stretch.size + 1 }, (block) => blocks.push(Buffer.from(block)))
    return Buffer.concat(blocks).equals(at.bytes.subarray(stretch.offset, stretch.offset + stretch.size))
  } finally {
    closeSync(fd)
  }
}

/** True when a plain file and a stretch of something are the same text once both are decoded as UTF-8 (R52). */
export function sameText(path: string, at: ContentAt, stretch: Stretch): boolean {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const { size } = fstatSync(fd)
    // Each byte that cannot be decoded became three.
    if (size > stretch.size || size * 3 < stretch.size) return false
    const gather = (read: (take: (block: Buffer) => void) => void): string => {
      const blocks: Buffer[] = []
      read((block) => blocks.push(Buffer.from(block)))
      return Buffer.concat(blocks).toString('utf8')
    }
    return gather((take) => eachBlock(fd, { offset: 0, size }, take)) === gather((take) => eachBlockAt(at, stretch, take))
  } finally {
    closeSync(fd)
  }
}

/** sha256 in hex of a stretch of an open file; a file that ends early has another digest. */
export function digestOpen(fd: number, stretch: Stretch): string {
  if (stretch.size > blockSize) return digestSlowly(fd, stretch)
  const blocks: Buffer[] = []
  eachBlock(fd, stretch, (block) => blocks.push(block))
  const [only] = blocks
  // The buffer is used again: more than one block means a file that comes in small pieces.
  if (blocks.length > 1) return digestSlowly(fd, stretch)
  return hash('sha256', only ?? Buffer.alloc(0), 'hex')
}

function digestSlowly(fd: number, stretch: Stretch): string {
  const digest = createHash('sha256')
  eachBlock(fd, stretch, (block) => digest.update(block))
  return digest.digest('hex')
}

/** Hands over a stretch of bytes that are somewhere, block by block; see `eachBlock`. */
export function eachBlockAt(at: ContentAt, stretch: Stretch, take: (block: Buffer) => void): number {
  if ('bytes' in at) {
    const bytes = at.bytes.subarray(stretch.offset, stretch.offset + stretch.size)
    take(bytes)
    return bytes.length
  }
  const fd = openInFolder(at.folder, at.name)
  try {
    return eachBlock(fd, stretch, take)
  } finally {
    closeSync(fd)
  }
}

/** Hands over a stretch block by block, in a buffer that is used again; returns how many bytes there were. */
export function eachBlock(fd: number, { offset, size }: Stretch, take: (block: Buffer) => void): number {
  first ??= Buffer.allocUnsafeSlow(blockSize)
  let done = 0
  while (done < size) {
    const count = readSync(fd, first, 0, Math.min(blockSize, size - done), offset + done)
    if (count === 0) break
    take(first.subarray(0, count))
    done += count
  }
  return done
}

/**
 * True when a plain file has exactly the bytes of a stretch of another. Stops at the first block that differs.
 * @param path of the one file, its last name not followed
 */
export function sameBytes(path: string, folder: AnchoredFolder, name: string, { offset, size }: Stretch): boolean {
  const one = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  let other: number | undefined
  try {
    other = openSync(folder.at(name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    first ??= Buffer.allocUnsafeSlow(blockSize)
    second ??= Buffer.allocUnsafeSlow(blockSize)
    for (let done = 0; done <= size; ) {
      // One byte more than is left: a file that grew meanwhile is not equal.
      const wanted = Math.min(blockSize, size - done + 1)
      const here = readSync(one, first, 0, wanted, done)
      const there = readSync(other, second, 0, Math.min(wanted, size - done), offset + done)
      if (here !== there || first.compare(second, 0, there, 0, here) !== 0) return false
      if (here < wanted) return done + here === size
      done += here
    }
    return true
  } finally {
    closeSync(one)
    if (other !== undefined) closeSync(other)
  }
}
