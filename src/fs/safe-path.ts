import { lstatSync, readlinkSync, realpathSync, type Stats } from 'node:fs'
import { join } from 'node:path'
import { FenceError, systemErrorCode } from '../model/errors.js'

/** A path longer than this is no path that an agent makes. Bytes. */
const longestPath = 4096

/**
 * Says why a relative path must not be joined to a root, or `undefined` when it may (promise 3, R14, R55). Allowed are
 * names with `/` between them: no absolute path, no `.` or `..`, nothing empty, no NUL, no backslash, no drive letter,
 * and no name whose bytes were not valid UTF-8 (it would name another file than the one that was listed).
 */
export function unsafePathReason(relative: string): string | undefined {
  if (relative === '') return 'it is empty'
  // No character takes more than three bytes for each unit of its length.
  if (relative.length > longestPath / 3 && Buffer.byteLength(relative) > longestPath) return 'it is too long'
  if (relative.includes('\0')) return 'it holds a NUL character'
  if (relative.includes('\\')) return 'it holds a backslash'
  if (relative.includes('\uFFFD')) return 'its name is not valid UTF-8'
  for (const name of relative.split('/')) {
    if (name === '') return 'it is absolute or holds an empty name'
    if (name === '.' || name === '..') return `it holds "${name}"`
    if (/^[A-Za-z]:/.test(name)) return 'it holds a drive letter'
  }
  return undefined
}

/**
 * Joins a root with a relative path made of names with `/` between them.
 * @throws FenceError when the path could lead anywhere but below the root
 */
export function joinSafe(root: string, relative: string): string {
  const reason = unsafePathReason(relative)
  if (reason !== undefined) {
    throw new FenceError(`refused the path ${JSON.stringify(relative)}: ${reason}`, { hint: 'nothing was touched at that path' })
  }
  return join(root, relative)
}

/** The relative path of the folder that holds `relative`, `''` for the root itself. */
export function parentOf(relative: string): string {
  const cut = relative.lastIndexOf('/')
  return cut < 0 ? '' : relative.slice(0, cut)
}

/** Every folder between the root and `relative`, the outermost first, without the root and `relative` itself. */
export function foldersAbove(relative: string): string[] {
  const names = relative.split('/').slice(0, -1)
  return names.map((_, index) => names.slice(0, index + 1).join('/'))
}

/**
 * The absolute path of `relative`, after making sure that every folder between the root and it is, right now, a real folder: no
 * name on the way may be a symbolic link, inside or outside (R55). Call it just before each act.
 * Returns `undefined` when a folder on the way is gone, and with it the path.
 * @param root real path of the root
 * @throws FenceError when a folder on the way is a link; system errors
 */
export function insideRoot(root: string, relative: string): string | undefined {
  const path = joinSafe(root, relative)
  // Looking at each folder costs a third of asking for the real path, and the root is its own.
  for (const folder of foldersAbove(relative)) {
    const at = join(root, folder)
    const status = folderStatus(at)
    if (status?.isSymbolicLink() === true) throw linkOnTheWay(at, relative)
    if (status?.isDirectory() !== true) return undefined
  }
  return path
}

function folderStatus(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch (error) {
    if (systemErrorCode(error) === 'ENOTDIR') return undefined
    throw error
  }
}

function linkOnTheWay(folder: string, relative: string): FenceError {
  const message = `${folder} leads to ${readlinkSync(folder)}: a folder on the way to ${relative} is a link; it was left alone`
  return new FenceError(message, { hint: 'replace the link by the folder it stands for, or remove it, then run again' })
}

/**
 * Makes sure that a root is its own real path.
 * @throws FenceError when it is gone, is a link, or lies behind one
 */
export function assertRealRoot(root: string): void {
  let real: string
  try {
    real = realpathSync.native(root)
  } catch (error) {
    const why = systemErrorCode(error) ?? 'unknown error'
    throw new FenceError(`the store ${root} cannot be reached (${why}); nothing was changed`, { cause: error })
  }
  if (real !== root) throw new FenceError(`the store ${root} is now ${real}; nothing was changed`, { hint: 'make the plan again' })
}
