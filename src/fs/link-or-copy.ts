import { closeSync, constants, copyFileSync, fchmodSync, fchownSync, fstatSync, futimesSync, linkSync, openSync, readSync, unlinkSync } from 'node:fs'
import { systemErrorCode } from '../model/errors.js'
import { writeWhole } from './atomic-write.js'
import { NotRegularError } from './blocks.js'

const blockSize = 1024 * 1024

/** How a second file with the same bytes is made. */
export type TransferMethod = 'link' | 'copy' | 'reflink'

/** The three ways to make one, so that a test can make each of them fail. `to` does not exist before. */
export interface TransferActs {
  link(from: string, to: string): void
  /** Shares the blocks of the file system; fails where that cannot be done. */
  clone(from: string, to: string): void
  /** Copies bytes, mode and times. */
  copy(from: string, to: string): void
}

/** Codes that say "not between these two places": a copy is what is left (R65). Any other code is an error. */
const cannotLink: ReadonlySet<string> = new Set(['EXDEV', 'EPERM', 'EISDIR', 'EMLINK', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'])
const cannotClone: ReadonlySet<string> = new Set([...cannotLink, 'EINVAL', 'ENOTTY'])

const systemActs: TransferActs = {
  link: linkSync,
  clone: (from, to) => { cloneFile(from, to) },
  copy: (from, to) => { copyWhole(from, to) },
}

export interface TransferOptions {
  readonly method: TransferMethod
  readonly acts?: Partial<TransferActs> | undefined
  /** Called once, before the first byte is copied; it may throw, and then nothing is. */
  readonly beforeCopying?: () => void
}

/**
 * Gives files a second name, or copies them where the file system has no way to do that. Which of the two it is, is
 * decided by the first file that cannot be linked, once for each pair of devices (R65). After an error nothing is left at
 * the new name.
 */
export class Transfer {
  readonly #method: TransferMethod
  readonly #acts: TransferActs
  readonly #beforeCopying: () => void
  readonly #copying = new Set<string>()
  #told = false

  constructor(options: TransferOptions) {
    this.#method = options.method
    this.#acts = { ...systemActs, ...options.acts }
    this.#beforeCopying = options.beforeCopying ?? ((): void => undefined)
  }

  /**
   * Makes `to` from the plain file `from`; neither is followed. `devices` names the pair of file systems.
   * @throws system errors other than "cannot be linked here"; EEXIST when something stands at `to`, which stays as it is
   */
  take(from: string, to: string, devices: string): 'linked' | 'copied' {
    if (this.#method === 'link' && !this.#copying.has(devices) && this.#attempt(() => { this.#acts.link(from, to) }, to, cannotLink)) return 'linked'
    if (this.#method === 'link') this.#copying.add(devices)
    if (this.#method === 'reflink' && !this.#copying.has(devices)) {
      if (this.#attempt(() => { this.#acts.clone(from, to) }, to, cannotClone)) return 'copied'
      this.#copying.add(devices)
    }
    this.#announce()
    this.#attempt(() => { this.#acts.copy(from, to) }, to, new Set())
    return 'copied'
  }

  #announce(): void {
    if (this.#told) return
    this.#told = true
    this.#beforeCopying()
  }

  /** False when the act failed with a code of `passed`. */
  #attempt(act: () => void, to: string, passed: ReadonlySet<string>): boolean {
    try {
      act()
      return true
    } catch (error) {
      const code = systemErrorCode(error)
      if (code !== 'EEXIST') discard(to)
      if (code === undefined || !passed.has(code)) throw error
      return false
    }
  }
}

/** @throws system errors; `NotRegularError` when the source is no plain file */
function copyWhole(from: string, to: string): void {
  withSource(from, (source) => {
    const target = openSync(to, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600)
    try {
      const block = Buffer.allocUnsafe(Math.min(blockSize, fstatSync(source).size + 1))
      for (let count = readSync(source, block); count > 0; count = readSync(source, block)) writeWhole(target, block.subarray(0, count))
      likeSource(source, target)
    } finally {
      closeSync(target)
    }
  })
}

function cloneFile(from: string, to: string): void {
  withSource(from, (source) => {
    // The open file itself where the system can name it: the path could lead elsewhere by now.
    const path = process.platform === 'linux' ? `/proc/self/fd/${String(source)}` : from
    copyFileSync(path, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE)
    const target = openSync(to, constants.O_RDONLY | constants.O_NOFOLLOW)
    try {
      likeSource(source, target)
    } finally {
      closeSync(target)
    }
  })
}

function withSource(from: string, act: (source: number) => void): void {
  const source = openSync(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    if (!fstatSync(source).isFile()) throw new NotRegularError(from, 'not a plain file')
    act(source)
  } finally {
    closeSync(source)
  }
}

/** Owner, mode and times of a new file after those of its source; private until then (R54). */
function likeSource(source: number, target: number): void {
  const wanted = fstatSync(source)
  const made = fstatSync(target)
  if (made.uid !== wanted.uid || made.gid !== wanted.gid) {
    try {
      fchownSync(target, wanted.uid, wanted.gid)
    } catch {
      // Only a privileged user may give files away; then it stays ours.
    }
  }
  fchmodSync(target, wanted.mode & 0o7777)
  futimesSync(target, wanted.atimeMs / 1000, wanted.mtimeMs / 1000)
}

function discard(path: string): void {
  try {
    unlinkSync(path)
  } catch {
    // It was never made.
  }
}
