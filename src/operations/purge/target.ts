import { posix, win32 } from 'node:path'
import type { PathProbe } from '../../fs/path-probe.js'
import { UsageError } from '../../model/errors.js'
import { isAbsolutePath, isAtOrBelow, isBelow, isNearMatch, isSameProject, isWindowsShaped } from '../../model/project-path.js'

/** How a recorded folder is the project that was asked for. */
export type MatchRule = 'text' | 'below' | 'case' | 'link'

/** A project that shall be purged, checked. */
export interface PurgeTarget {
  /** As it was given, made absolute. */
  readonly path: string
  /** The same free of links, when it exists. */
  readonly real: string | undefined
}

export interface TargetPlace {
  /** What relative paths are relative to. */
  readonly cwd: string
  readonly home: string
  /** Real path of the store. */
  readonly root: string
  readonly probe: PathProbe
}

/**
 * Checks what was given as a project. In no spelling may it be the home folder, a root, the store, or a folder that holds
 * one of them: trailing separators, `..` and links do not help, and neither does the case of a Windows path.
 * @throws UsageError
 */
export function purgeTarget(given: string, place: TargetPlace): PurgeTarget {
  if (given.trim() === '') throw new UsageError('purge needs the path of a project')
  const joined = isAbsolutePath(given) ? given : posix.join(place.cwd, given)
  const path = isWindowsShaped(joined) ? win32.normalize(joined) : posix.resolve(joined)
  const real = place.probe.realPath(joined)
  // `..` behind a link leads elsewhere than the text says: both places count.
  const spellings = [path, real, place.probe.realPath(path)].filter((spelling) => spelling !== undefined)
  const homes = [place.home, place.probe.realPath(place.home) ?? place.home]
  for (const spelling of spellings) {
    if (isRoot(spelling)) refuse(given, 'it is the root of a file system')
    if (homes.some((home) => isSameProject(spelling, home))) refuse(given, 'it is your home folder')
    if (isSameProject(spelling, place.root)) refuse(given, 'it is the store itself')
    if (isBelow(place.root, spelling)) refuse(given, 'it contains the store')
    if (homes.some((home) => isBelow(home, spelling))) refuse(given, 'it contains your home folder')
  }
  return { path, real }
}

/**
 * By which rule a recorded folder belongs to the project, `undefined` when it does not. `case` and `link` are matches by
 * what the disk says (R95, R96); `near` is one that the disk says nothing about and that is never acted on.
 */
export function matchRule(recorded: string, target: PurgeTarget, recursive: boolean, probe: PathProbe): MatchRule | 'near' | undefined {
  if (isSameProject(recorded, target.path)) return 'text'
  if (recursive && isBelow(recorded, target.path)) return 'below'
  if (isNearMatch(recorded, target.path)) {
    const folds = probe.foldsCase(target.path)
    return folds === undefined ? 'near' : folds ? 'case' : undefined
  }
  if (target.real === undefined) return undefined
  const real = probe.realPath(recorded)
  if (real === undefined) return undefined
  return isSameProject(real, target.real) || (recursive && isAtOrBelow(real, target.real)) ? 'link' : undefined
}

function isRoot(path: string): boolean {
  if (!isWindowsShaped(path)) return posix.resolve(path) === '/'
  // The root of a share ends in a separator after its two names.
  const { root } = win32.parse(win32.resolve(path))
  return isSameProject(path, root) || /^\\\\[^\\]*\\?[^\\]*\\?$/.test(win32.normalize(path))
}

function refuse(given: string, why: string): never {
  throw new UsageError(`purge refuses ${JSON.stringify(given)}: ${why}; nothing was removed`, { hint: 'name the folder of one project' })
}
