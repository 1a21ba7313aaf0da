import { createHash } from 'node:crypto'
import { closeSync, constants, fchmodSync, fstatSync, openSync, unlinkSync } from 'node:fs'
import { writeWhole } from '../fs/atomic-write.js'
import { eachBlock } from '../fs/content.js'
import { sameStamp, stampOf, tooBig, type Stamp } from './look.js'

/** A copy of a file that waits for its name: open for syncing, its digest in hex, and what the file was when it was read. */
export interface StagedCopy {
  readonly path: string
  readonly fd: number
  readonly sha256: string
  readonly stamp: Stamp
  /** Clock of the file system just before it was read, milliseconds since 1970. */
  readonly at: number
}

/** What came of copying a file. */
export type CopyResult = { readonly kind: 'copied'; readonly copy: StagedCopy } | { readonly kind: 'refused'; readonly reason: string }

/** A file that somebody writes to at the same time is read again so often. */
const tries = 3

/**
 * Copies the bytes of a plain file to a new file of ours, 0600 until it is whole and then with the mode of its source. A file
 * that changes while it is read is refused: half of one state and half of another is a state that never was.
 * @param limit largest size in bytes; 0 for none
 * @throws system errors of writing; the new file is gone then
 */
export function stageCopy(source: string, to: string, limit: number): CopyResult {
  let from: number
  try {
    from = openSync(source, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    return { kind: 'refused', reason: `it could not be read (${String((error as NodeJS.ErrnoException).code)})` }
  }
  try {
    for (let left = tries; left > 0; left -= 1) {
      const found = fstatSync(from)
      if (!found.isFile() || found.nlink > 1) return { kind: 'refused', reason: 'it was replaced while it was read' }
      if (limit > 0 && found.size > limit) return { kind: 'refused', reason: tooBig(found.size, limit) }
      const before = stampOf(found)
      const copy = copyOpen(from, to, before)
      if (sameStamp(before, stampOf(fstatSync(from)))) return { kind: 'copied', copy }
      discardCopy(copy)
    }
    return { kind: 'refused', reason: 'it was written to while it was read' }
  } finally {
    closeSync(from)
  }
}

/** Closes and removes a copy that is not wanted. */
export function discardCopy({ fd, path }: StagedCopy): void {
  closeSync(fd)
  unlinkSync(path)
}

function copyOpen(from: number, to: string, stamp: Stamp): StagedCopy {
  const fd = openSync(to, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600)
  try {
    const at = fstatSync(fd).ctimeMs
    const sha256 = pour(from, fd)
    if (stamp.mode !== 0o600) fchmodSync(fd, stamp.mode)
    return { path: to, fd, sha256, stamp, at }
  } catch (error) {
    closeSync(fd)
    unlinkSync(to)
    throw error
  }
}

function pour(from: number, to: number): string {
  const digest = createHash('sha256')
  eachBlock(from, { offset: 0, size: Number.POSITIVE_INFINITY }, (block) => {
    digest.update(block)
    writeWhole(to, block)
  })
  return digest.digest('hex')
}
