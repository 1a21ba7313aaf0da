import { posix, win32 } from 'node:path'

/** The absolute path that a tracked key stands for, or why it stands for none that may be touched. */
export type TrackedTarget = { readonly path: string } | { readonly refused: string }

const windowsAbsolute = /^(?:[A-Za-z]:[\\/]|\\\\)/
const loneSurrogate = /\p{Cs}/u

/**
 * Absolute path of a tracked key (formats/claude-code section 2, PATH; R102): absolute keys as they are, relative ones
 * joined to the folder the session was started in, `..` resolved as text. Keys are data: any name is good, but one that
 * cannot name a file on this machine (NUL, half a surrogate pair, the shape of another system's paths) is refused.
 */
export function trackedTarget(key: string, start: string | undefined, windows = false): TrackedTarget {
  const flavour = windows ? win32 : posix
  if (key === '') return { refused: 'the tracked path is empty' }
  if (key.includes('\0')) return { refused: 'the tracked path holds a NUL' }
  if (loneSurrogate.test(key)) return { refused: 'the tracked path holds half a surrogate pair, which no file name can hold' }
  if (!windows && windowsAbsolute.test(key)) return { refused: 'the tracked path is a Windows path; this is another system' }
  if (windows && key.replace(/^[A-Za-z]:/, '').includes(':')) return { refused: 'the tracked path names a stream of a file' }
  const last = (windows ? key.split(/[\\/]/) : key.split('/')).at(-1)
  if (last === '' || last === '.' || last === '..') return { refused: 'the tracked path names a folder' }
  if (flavour.isAbsolute(key)) return { path: flavour.normalize(key) }
  if (start === undefined) return { refused: 'the tracked path is relative, and no record says where the session was started' }
  if (!flavour.isAbsolute(start)) return { refused: `the tracked path is relative to ${start}, which is not absolute on this system` }
  return { path: flavour.join(start, key) }
}

/** True when `path` lies below `folder`; both absolute and normalised, compared whole name by whole name. */
export function isBelow(path: string, folder: string, windows = false): boolean {
  const separator = windows ? win32.sep : posix.sep
  return path.startsWith(folder.endsWith(separator) ? folder : folder + separator)
}

/**
 * The folder below which no link may stand among the parents of `path` when its record has no real parent to compare
 * with (formats/claude-code section 4, rule 2): the start folder, else the home folder. For a file outside both it is
 * the first folder of the path, since systems link only those (`/tmp`, `/var`) themselves.
 */
export function linkFence(path: string, start: string | undefined, home: string, windows = false): string {
  const flavour = windows ? win32 : posix
  for (const folder of [start, home]) {
    if (folder === undefined || !flavour.isAbsolute(folder)) continue
    const normal = withoutTail(flavour.normalize(folder), flavour)
    if (isBelow(path, normal, windows)) return normal
  }
  const { root } = flavour.parse(path)
  const [first, ...others] = path.slice(root.length).split(flavour.sep)
  return first === undefined || others.length === 0 ? root : root + first
}

function withoutTail(folder: string, flavour: typeof posix): string {
  return folder.endsWith(flavour.sep) && flavour.parse(folder).root !== folder ? folder.slice(0, -1) : folder
}
