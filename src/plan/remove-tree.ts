import { chmodSync, closeSync, constants, existsSync, fchmodSync, fstatSync, openSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { systemErrorCode } from '../model/errors.js'
import type { Acts } from './file-acts.js'

/**
 * Removes a path for good, and of a folder everything in it. Links are removed, never followed: where the system lets us, a
 * folder is listed and emptied through an open handle, so that a link put in its place leads nowhere. Folders that their owner
 * may not write to are opened up first; files are never chmodded, they may have other names (R54, R67). What is gone already
 * counts as removed (R105).
 * @throws system errors; what could not be removed is still there, and so are the folders above it
 */
export async function removeTree(acts: Acts, path: string | Buffer): Promise<void> {
  const folder = openFolder(path)
  if (folder === undefined) {
    await unlink(acts, path)
    return
  }
  try {
    for (const { name, isFolder } of entriesOf(folder.place)) {
      const child = typeof name === 'string' ? join(folder.place, name) : Buffer.concat([Buffer.from(`${folder.place}/`), name])
      if (isFolder) await removeTree(acts, child)
      else await unlink(acts, child)
    }
  } finally {
    folder.close()
  }
  try {
    await acts.try((direct) => { direct.rmdir(path) })
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw error
  }
}

async function unlink(acts: Acts, path: string | Buffer): Promise<void> {
  try {
    await acts.try((direct) => { direct.unlink(path) })
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw error
  }
}

interface OpenFolder {
  /** A path that leads to the opened folder whatever happens to its name. */
  readonly place: string
  close(): void
}

/** Opens a folder, with the rights that emptying it needs. `undefined` when it is no folder, or is gone. */
function openFolder(path: string | Buffer): OpenFolder | undefined {
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  let fd: number
  try {
    fd = openSync(path, flags)
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOTDIR' || code === 'ELOOP' || code === 'ENOENT' || code === 'ENXIO' || code === 'EMLINK') return undefined
    if (code !== 'EACCES') throw error
    chmodSync(path, 0o700)
    fd = openSync(path, flags)
  }
  const status = fstatSync(fd)
  if (!status.isDirectory()) {
    closeSync(fd)
    return undefined
  }
  if ((status.mode & 0o700) !== 0o700) fchmodSync(fd, status.mode | 0o700)
  const handle = `/proc/self/fd/${String(fd)}`
  return { place: existsSync(handle) ? handle : path.toString(), close: () => { closeSync(fd) } }
}

function entriesOf(place: string): { name: string | Buffer; isFolder: boolean }[] {
  const entries = readdirSync(place, { withFileTypes: true })
  if (!entries.some((entry) => entry.name.includes('\uFFFD'))) {
    return entries.map((entry) => ({ name: entry.name, isFolder: entry.isDirectory() }))
  }
  // Names that are not valid UTF-8 can only be given back as bytes; whether each is a folder is found out by opening it.
  return readdirSync(place, { encoding: 'buffer' }).map((name) => ({ name, isFolder: true }))
}
