/**
 * Comparing recorded project paths as text. Folder names of the store are never decoded (R25, R28); only what a line
 * recorded counts. POSIX paths compare exactly; Windows-shaped ones without case and separator, on every host (R94).
 */

/** True for `X:\…`, `X:/…` and `\\server\share`. */
export function isWindowsShaped(path: string): boolean {
  return /^[A-Za-z]:[\\/]/.test(path) || path.startsWith('\\\\')
}

/** True for a path that names a place on its own: POSIX absolute, or Windows-shaped. */
export function isAbsolutePath(path: string): boolean {
  return path.startsWith('/') || isWindowsShaped(path)
}

/** True when two recorded paths name the same project: trailing and doubled separators do not count. */
export function isSameProject(a: string, b: string): boolean {
  const windows = comparesAsWindows(a, b)
  return isAbsolutePath(a) && isAbsolutePath(b) && key(a, windows) === key(b, windows)
}

/**
 * True when `path` lies below `ancestor`, by whole names: `/r-extra` is not below `/r` (R23, R100), and no path is below
 * itself. A path with a `..` in it is below nothing: where it leads depends on links.
 */
export function isBelow(path: string, ancestor: string): boolean {
  if (!isAbsolutePath(path) || !isAbsolutePath(ancestor)) return false
  const windows = comparesAsWindows(path, ancestor)
  const inner = key(path, windows)
  const outer = key(ancestor, windows)
  if (inner === outer || inner.split('/').includes('..')) return false
  return inner.startsWith(outer.endsWith('/') ? outer : `${outer}/`)
}

/** True when the path is the same project or lies below it. */
export function isAtOrBelow(path: string, ancestor: string): boolean {
  return isSameProject(path, ancestor) || isBelow(path, ancestor)
}

/**
 * True when two different paths differ in case or Unicode normal form only: worth telling the user, never acted on
 * without knowing the file system (R95).
 */
export function isNearMatch(a: string, b: string): boolean {
  if (isSameProject(a, b)) return false
  const loosen = (path: string): string => path.normalize('NFC').toLowerCase()
  return isSameProject(loosen(a), loosen(b))
}

/**
 * True when a pattern of the configuration selects the path: an exact project path, or `<path>/**` for the folder and
 * everything below it.
 */
export function matchesProject(pattern: string, path: string): boolean {
  const below = /^(.*)[\\/]\*\*$/s.exec(pattern)
  if (below === null) return isSameProject(pattern, path)
  const [, folder = ''] = below
  return isAtOrBelow(path, isAbsolutePath(folder) ? folder : `${folder}/`)
}

function comparesAsWindows(a: string, b: string): boolean {
  return isWindowsShaped(a) || isWindowsShaped(b)
}

/** The text to compare; for Windows-shaped paths `//server/share` is the same as `\\server\share`. */
function key(path: string, windows: boolean): string {
  if (!windows) return tidy(path, '')
  if (!isWindowsShaped(path) && !/^\/\/[^/]/.test(path)) return tidy(path, '')
  const plain = path.replaceAll('\\', '/').replace(/^\/\/\?\/UNC\//i, '//').replace(/^\/\/\?\//, '')
  return foldCase(plain.startsWith('//') ? tidy(plain, 'unc:') : tidy(`/${plain}`, 'drive:'))
}

function tidy(path: string, prefix: string): string {
  const names = path.split('/').filter((name) => name !== '' && name !== '.')
  return `${prefix}/${names.join('/')}`
}

/** Folds one character at a time and only where it can be undone, so that no two names fold together by accident. */
function foldCase(text: string): string {
  let folded = ''
  for (const character of text) {
    const upper = character.toUpperCase()
    folded += upper.length === character.length && upper.toLowerCase() === character.toLowerCase() ? upper : character
  }
  return folded
}
