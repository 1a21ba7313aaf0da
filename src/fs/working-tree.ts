import { lstatSync, realpathSync, statSync, type Stats } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { systemErrorCode } from '../model/errors.js'
import type { FileNode, ParentState, TargetNode } from '../model/restore-plan.js'
import { nodeWord } from './blocks.js'

interface RealFolder {
  readonly real?: string
  readonly missing: number
  readonly trouble?: string
  readonly blockedBy?: string
}

/**
 * Looks at the files of a working tree without following or opening any of them. Folders are looked at once: one view
 * serves one plan, and what it saw is checked again before anything is done.
 */
export class WorkingTree {
  readonly #real = new Map<string, RealFolder>()
  readonly #links = new Map<string, string | undefined>()

  /** The folders above `path`; `fence` asks for links among those below it (see `linkFence`). */
  parentOf(path: string, fence: string | undefined): ParentState {
    const folder = dirname(path)
    const found = this.#realOf(folder)
    if (fence === undefined || folder === fence) return found
    const link = this.#linkBelow(fence, folder)
    return link === undefined ? found : { ...found, link }
  }

  #realOf(folder: string): RealFolder {
    const known = this.#real.get(folder)
    if (known !== undefined) return known
    const found = this.#resolve(folder)
    this.#real.set(folder, found)
    return found
  }

  #resolve(folder: string): RealFolder {
    const name = basename(folder)
    try {
      const real = realpathSync.native(folder)
      if (statSync(real).isDirectory()) return { real, missing: 0 }
      const above = this.#realOf(dirname(folder))
      return above.real === undefined ? above : { real: join(above.real, name), missing: above.missing + 1, blockedBy: folder }
    } catch (error) {
      const code = systemErrorCode(error)
      if (code !== 'ENOENT' && code !== 'ENOTDIR') {
        return { missing: 0, trouble: `${folder} cannot be followed (${code ?? 'unknown error'})` }
      }
      if (code === 'ENOENT' && lstatSync(folder, { throwIfNoEntry: false }) !== undefined) {
        return { missing: 0, trouble: `${folder} is a link to something that is not there` }
      }
      const above = this.#realOf(dirname(folder))
      return above.real === undefined ? above : { ...above, real: join(above.real, name), missing: above.missing + 1 }
    }
  }

  #linkBelow(fence: string, folder: string): string | undefined {
    if (folder === fence || folder === dirname(folder)) return undefined
    const key = `${fence}\0${folder}`
    if (this.#links.has(key)) return this.#links.get(key)
    const link = this.#linkBelow(fence, dirname(folder)) ?? (isLink(folder) ? folder : undefined)
    this.#links.set(key, link)
    return link
  }
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true
  } catch {
    // What cannot be looked at cannot be reached either; the target itself says why.
    return false
  }
}

/** What stands at a path, its last name not followed. */
export function nodeAt(path: string): TargetNode {
  try {
    const status = lstatSync(path, { throwIfNoEntry: false })
    return status === undefined ? { kind: 'absent' } : nodeOf(status)
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'absent' }
    return { kind: 'unreachable', reason: `it cannot be looked at (${code ?? 'unknown error'})` }
  }
}

/** A status as a node. */
export function nodeOf(status: Stats): TargetNode {
  if (status.isFile()) {
    const { size, nlink, uid, gid, dev, ino, mtimeMs, ctimeMs } = status
    return { kind: 'file', mode: status.mode & 0o7777, size, nlink, uid, gid, dev, ino, mtimeMs, ctimeMs }
  }
  if (status.isSymbolicLink()) return { kind: 'link' }
  if (status.isDirectory()) return { kind: 'folder' }
  return { kind: 'special', what: nodeWord(status).replace(/^an? /, '') }
}

/** True when both are the same file and nobody wrote to it, renamed it or changed its mode between them. */
function isSameFile(a: FileNode, b: FileNode): boolean {
  return (
    a.dev === b.dev &&
    a.ino === b.ino &&
    a.size === b.size &&
    a.mode === b.mode &&
    a.nlink === b.nlink &&
    a.mtimeMs === b.mtimeMs &&
    a.ctimeMs === b.ctimeMs
  )
}

/** True when what stands there now is what was seen. */
export function isAsSeen(seen: TargetNode, now: TargetNode): boolean {
  if (seen.kind === 'file' && now.kind === 'file') return isSameFile(seen, now)
  return seen.kind === 'absent' && now.kind === 'absent'
}
