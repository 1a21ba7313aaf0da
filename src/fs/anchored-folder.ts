import { closeSync, constants, fstatSync, lstatSync, mkdirSync, openSync, readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { FenceError, systemErrorCode } from '../model/errors.js'

/**
 * A folder held open, so that what is done in it stays in it (R55): where the system offers `/proc/self/fd`, names are
 * looked up from the open folder itself, and swapping a folder on the way for a link changes nothing. Elsewhere paths
 * are used, and `isInPlace` just before each act is what there is.
 */
export class AnchoredFolder {
  /** Real path the folder was opened by. */
  readonly path: string
  /** Device number of its file system. */
  readonly device: number
  readonly #inode: number
  readonly #fd: number
  readonly #prefix: string | undefined

  private constructor(path: string, fd: number, prefix: string | undefined) {
    const { dev, ino } = fstatSync(fd)
    this.path = path
    this.device = dev
    this.#inode = ino
    this.#fd = fd
    this.#prefix = prefix
  }

  /**
   * Opens a folder by its real path.
   * @throws FenceError when it is a link, no folder, or lies behind a link
   * @throws the system error when it cannot be opened
   */
  static open(path: string): AnchoredFolder {
    const fd = openFolder(path, path)
    try {
      const prefix = anchorOf(fd)
      const real = prefix === undefined ? realpathSync.native(path) : readlinkSync(prefix)
      if (real !== path) throw refusal(path, `leads to ${real}`)
      return new AnchoredFolder(path, fd, prefix)
    } catch (error) {
      closeSync(fd)
      throw error
    }
  }

  /** A path for a name in this folder, to be used now and not kept. */
  at(name: string): string {
    return this.#prefix === undefined ? join(this.path, name) : `${this.#prefix}/${name}`
  }

  /** True while the path still leads to this very folder. */
  isInPlace(): boolean {
    try {
      const there = lstatSync(this.path)
      return there.dev === this.device && there.ino === this.#inode
    } catch {
      return false
    }
  }

  /** Makes a folder in this one, unless it is there. `made` is false when it was there. */
  makeFolder(name: string, mode: number): { folder: AnchoredFolder; made: boolean } {
    let made = true
    try {
      mkdirSync(this.at(name), mode)
    } catch (error) {
      if (systemErrorCode(error) !== 'EEXIST') throw error
      made = false
    }
    const path = join(this.path, name)
    const fd = openFolder(this.at(name), path)
    return { folder: new AnchoredFolder(path, fd, anchorOf(fd)), made }
  }

  close(): void {
    closeSync(this.#fd)
  }
}

function openFolder(at: string, path: string): number {
  try {
    return openSync(at, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOTDIR' || code === 'ELOOP') throw refusal(path, 'is a link or no folder')
    throw error
  }
}

function anchorOf(fd: number): string | undefined {
  const prefix = `/proc/self/fd/${String(fd)}`
  try {
    readlinkSync(prefix)
    return prefix
  } catch {
    return undefined
  }
}

function refusal(path: string, why: string): FenceError {
  const hint = 'replace the link by the folder it stands for, then run again'
  return new FenceError(`${path} ${why}; nothing in it was touched`, { hint })
}
