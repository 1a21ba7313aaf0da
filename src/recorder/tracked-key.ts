import { realpathSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path'
import { systemErrorCode } from '../model/errors.js'

/**
 * The path that a file is tracked by: relative inside the working folder, else absolute (formats/pi-candy-undo section 3). Links
 * among its folders are resolved first, so that one file has one key (section 15, 18); the last name is never followed.
 * @param given as a tool was given it, relative to `cwd` or absolute
 * @param cwd absolute and free of links
 * @throws system errors of folders that cannot be looked at
 */
export function trackedKey(given: string, cwd: string): string {
  const path = resolve(cwd, given)
  const real = join(realFolder(dirname(path)), basename(path))
  const inside = relative(cwd, real)
  // A name that begins with two dots counts as outside, as it does for the plugin.
  return inside === '' || inside.startsWith('..') || isAbsolute(inside) ? real : inside
}

/** A folder with its links resolved, as far down as it exists. */
function realFolder(folder: string): string {
  try {
    return realpathSync(folder)
  } catch (error) {
    const code = systemErrorCode(error)
    if ((code !== 'ENOENT' && code !== 'ENOTDIR') || dirname(folder) === folder) throw error
    return join(realFolder(dirname(folder)), basename(folder))
  }
}
