import { closeSync, constants, fsyncSync, openSync } from 'node:fs'
import { syncFolder } from './sync-folder.js'

/**
 * Writes everything of the file system that holds a folder to its disk (`sync -f <folder>` of coreutils). Passed in,
 * because Node has no call for it. Throws when it cannot.
 */
export type SyncFileSystem = (folder: string) => void

/** Something written that shall survive a power cut. */
export interface Written {
  readonly path: string
  readonly folder: string
  /** Device number of its file system. */
  readonly device: number
  readonly isFolder: boolean
}

/** From this many files on one sync of the file system is cheaper than one of each file. */
const manyFiles = 32

/** Makes sure that what was written is on the disk: file by file, or by file system when there are many. */
export function flush(written: readonly Written[], syncFileSystem: SyncFileSystem | undefined): void {
  if (syncFileSystem === undefined || written.length < manyFiles) {
    written.forEach(flushOne)
    return
  }
  const byDevice = new Map<number, Written[]>()
  for (const each of written) {
    const same = byDevice.get(each.device)
    if (same === undefined) byDevice.set(each.device, [each])
    else same.push(each)
  }
  for (const group of byDevice.values()) {
    try {
      syncFileSystem(group[0]?.folder ?? '/')
    } catch {
      group.forEach(flushOne)
    }
  }
}

function flushOne({ path, isFolder }: Written): void {
  if (isFolder) {
    syncFolder(path)
    return
  }
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
