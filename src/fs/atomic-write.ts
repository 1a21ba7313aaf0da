import { closeSync, constants, fchmodSync, fsyncSync, openSync, renameSync, unlinkSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { NoSpaceError, systemErrorCode } from '../model/errors.js'
import { syncFolder } from './sync-folder.js'

export interface AtomicWriteOptions {
  /** Permission bits of the new file; 0600 unless told otherwise. */
  readonly mode?: number
  /** Sets the temporary file's name apart from those of other writers: hex digits, new for each call. */
  readonly token: string
}

/** True for the errors of a full disk and of a full quota (R106). */
export function isNoSpace(error: unknown): boolean {
  const code = systemErrorCode(error)
  return code === 'ENOSPC' || code === 'EDQUOT'
}

/** Writes a whole buffer to an open file, however often the system takes only a part of it. */
export function writeWhole(fd: number, data: Uint8Array): void {
  for (let at = 0; at < data.length; ) at += writeSync(fd, data, at, data.length - at)
}

/**
 * Publishes bytes at a path at once: a new file beside it is written, fsynced and renamed over it. A reader sees the old
 * bytes or the new ones; a link at the path is replaced, never followed; other names of an old inode keep the old bytes.
 * @throws NoSpaceError when the disk or the quota is full; the old file is as it was and no temporary file is left
 */
export function atomicWrite(path: string, data: Uint8Array, options: AtomicWriteOptions): void {
  const mode = options.mode ?? 0o600
  const temporary = `${path}.${options.token}.tmp`
  try {
    const fd = openSync(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600)
    try {
      writeWhole(fd, data)
      // Made private first and widened only when whole, whatever the umask (R54).
      fchmodSync(fd, mode)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(temporary, path)
  } catch (error) {
    if (systemErrorCode(error) !== 'EEXIST') discard(temporary)
    if (!isNoSpace(error)) throw error
    throw new NoSpaceError(`no space left to write ${path}; what was there before is untouched`, {
      hint: 'free some space, then run again',
      cause: error,
    })
  }
  syncFolder(dirname(path))
}

function discard(path: string): void {
  try {
    unlinkSync(path)
  } catch {
    // It was never made, or is gone.
  }
}
