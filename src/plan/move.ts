import { closeSync, constants, fchmodSync, fstatSync, openSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { identityOf, sameIdentity, sameInode, statusOf, typeOf } from '../fs/identity.js'
import { insideRoot } from '../fs/safe-path.js'
import { FenceError, systemErrorCode } from '../model/errors.js'
import type { PlannedItem } from './action.js'
import type { Acts } from './file-acts.js'
import type { FolderTimes } from './folder-times.js'
import type { Sidecar } from './sidecar.js'
import type { Slot } from './slot.js'

/** What everything that moves things needs. */
export interface Bench {
  readonly root: string
  readonly sidecar: Sidecar
  readonly acts: Acts
  readonly times: FolderTimes
}

/** Something is not as it was when the plan was made. The session it belongs to is kept. */
export class Changed extends Error {}

/**
 * Looks at a path once more, just before the act: still there, still the same file, nothing written to it, no link on the way.
 * @returns its absolute path, `undefined` when it is gone
 * @throws Changed, FenceError
 */
export function recheck(root: string, item: PlannedItem): string | undefined {
  const path = insideRoot(root, item.path)
  const status = path === undefined ? undefined : statusOf(path)
  if (path === undefined || status === undefined) return undefined
  const now = identityOf(status)
  // What lies in a folder was compared when the action began; a folder's own time changes with every name in it.
  const same = item.type === 'folder' ? sameInode(item.identity, now) : sameIdentity(item.identity, now)
  if (item.type !== typeOf(status) || !same) throw new Changed(`${item.path} changed since the plan was made`)
  return path
}

/**
 * Moves one path into the trash by rename. What arrived there is compared with what was planned: something else that slipped
 * in between look and act is put back at once.
 * @throws Changed, FenceError, system errors; the path is then still in place
 */
export async function moveToTrash(bench: Bench, slot: Slot, item: PlannedItem): Promise<'moved' | 'gone'> {
  const target = slot.placeFor(item.path)
  const path = recheck(bench.root, item)
  if (path === undefined) return 'gone'
  bench.times.before(dirname(path))
  try {
    await renameAny(bench.acts, path, target, item)
  } catch (error) {
    // Another housekeeper was faster: that is what was wanted (R105).
    if (systemErrorCode(error) === 'ENOENT' && statusOf(path) === undefined) return 'gone'
    if (systemErrorCode(error) !== 'EXDEV') throw error
    throw new FenceError(`${item.path} lies on another file system than the trash; it was left in place`, {
      hint: 'remove it for good with --no-trash',
      cause: error,
    })
  } finally {
    bench.times.after(dirname(path))
  }
  const arrived = statusOf(target)
  if (arrived === undefined || !sameInode(item.identity, identityOf(arrived))) {
    await bench.acts.try((acts) => { acts.rename(target, path) })
    throw new FenceError(`something else stood at ${item.path} when it was moved; it was put back`)
  }
  return 'moved'
}

/** A rename; a folder that its owner may not write to cannot change its parent, so it is opened up for that moment (R54). */
async function renameAny(acts: Acts, from: string, to: string, was: { readonly type: string; readonly mode: number }): Promise<void> {
  const shut = was.type === 'folder' && (was.mode & 0o300) !== 0o300
  try {
    await acts.try((direct) => { direct.rename(from, to) })
  } catch (error) {
    if (!shut || systemErrorCode(error) !== 'EACCES') throw error
    chmodFolder(from, was.mode | 0o700)
    try {
      await acts.try((direct) => { direct.rename(from, to) })
    } catch (second) {
      chmodFolder(from, was.mode)
      throw second
    }
    chmodFolder(to, was.mode)
  }
}

/** Changes the mode of a folder through a handle, so that a link put in its place is not followed. @throws system errors */
export function chmodFolder(path: string, mode: number): void {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    if (fstatSync(fd).isDirectory()) fchmodSync(fd, mode)
  } finally {
    closeSync(fd)
  }
}

/**
 * Puts something from the trash back to where it was. Nothing that stands there now is overwritten.
 * @param merge a folder that exists at the place takes what it does not have yet
 * @returns relative paths that are occupied: what was to go there stays in the trash
 * @throws FenceError, system errors
 */
export async function putBack(bench: Bench, from: string, relative: string, merge: boolean): Promise<string[]> {
  const source = statusOf(from)
  if (source === undefined) return []
  const path = insideRoot(bench.root, relative)
  if (path === undefined) throw new FenceError(`the folder that ${relative} belongs to is gone; it stays in the trash`)
  const there = statusOf(path)
  if (there !== undefined && sameInode(identityOf(there), identityOf(source)) && !source.isDirectory()) {
    // Both names of one file: an earlier try ended between making one and removing the other.
    await bench.acts.try((acts) => { acts.unlink(from) })
    return []
  }
  if (there?.isDirectory() === true && source.isDirectory() && merge) {
    const occupied: string[] = []
    for (const name of readdirSync(from)) occupied.push(...(await putBack(bench, join(from, name), `${relative}/${name}`, merge)))
    if (occupied.length === 0) await bench.acts.try((acts) => { acts.rmdir(from) })
    return occupied
  }
  if (there !== undefined) return [relative]
  bench.times.before(dirname(path))
  try {
    if (source.isFile()) await moveFileBack(bench.acts, from, path)
    else await renameAny(bench.acts, from, path, { type: typeOf(source), mode: Number(source.mode & 0o7777n) })
    return []
  } catch (error) {
    if (systemErrorCode(error) === 'EEXIST') return [relative]
    throw error
  } finally {
    bench.times.after(dirname(path))
  }
}

/** A rename would overwrite what appeared meanwhile; a new name for the file does not. @throws EEXIST when the place is taken */
async function moveFileBack(acts: Acts, from: string, to: string): Promise<void> {
  try {
    await acts.try((direct) => { direct.link(from, to) })
  } catch (error) {
    const code = systemErrorCode(error)
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EOPNOTSUPP' && code !== 'EMLINK' && !isFull(code)) throw error
    await acts.try((direct) => { direct.rename(from, to) })
    return
  }
  await acts.try((direct) => { direct.unlink(from) })
}

function isFull(code: string | undefined): boolean {
  return code === 'ENOSPC' || code === 'EDQUOT'
}
