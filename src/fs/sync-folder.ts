import { closeSync, constants, fsyncSync, openSync } from 'node:fs'

/**
 * Asks the system to write the names in a folder to the disk, so that a file made or renamed in it is found there after
 * a power cut. Systems that cannot open or sync a folder (Windows, some network file systems) are passed over: there is
 * nothing better to do on them.
 */
export function syncFolder(path: string): void {
  let fd: number
  try {
    fd = openSync(path, constants.O_RDONLY)
  } catch {
    return
  }
  try {
    fsyncSync(fd)
  } catch {
    // EINVAL, EISDIR, EPERM: not possible here.
  } finally {
    closeSync(fd)
  }
}
