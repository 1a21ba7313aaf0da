import { closeSync, constants, fstatSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { writeWhole } from '../fs/atomic-write.js'

export interface LogFileOptions {
  /** Absolute path; only its owner can read a file that is made. */
  readonly path: string
  /** Bytes above which a new file is begun. */
  readonly limit: number
  /** Old files that are kept, as `path.1` (the newest) to `path.<keep>`. */
  readonly keep: number
  /** Told once when the log cannot be written: the run goes on without it. */
  failed(error: unknown): void
}

/**
 * A log file that is followed by a new one when it is full. Lines are written at once and whole. Several runs may share it: one
 * that finds its file renamed goes on in the new one. Pipes and devices are written to and never renamed.
 */
export class LogFile {
  readonly #options: LogFileOptions
  #fd: number
  #inode: bigint
  #plain: boolean
  #broken = false

  /** Throws the system error when the file cannot be opened. */
  constructor(options: LogFileOptions) {
    this.#options = options
    const { fd, inode, plain } = open(options.path)
    this.#fd = fd
    this.#inode = inode
    this.#plain = plain
  }

  write(text: string): void {
    if (this.#broken) return
    try {
      const line = Buffer.from(text)
      if (this.#plain) this.#makeRoom(line.length)
      writeWhole(this.#fd, line)
    } catch (error) {
      this.#broken = true
      this.#options.failed(error)
    }
  }

  #makeRoom(bytes: number): void {
    if (this.#wasMoved()) this.#reopen()
    const { path, keep, limit } = this.#options
    // Other runs write to it too.
    const { size } = fstatSync(this.#fd)
    if (size === 0 || size + bytes <= limit) return
    if (keep > 0) {
      for (let number = keep - 1; number >= 1; number -= 1) moveIfThere(`${path}.${String(number)}`, `${path}.${String(number + 1)}`)
      moveIfThere(path, `${path}.1`)
    } else {
      rmSync(path, { force: true })
    }
    this.#reopen()
  }

  #wasMoved(): boolean {
    return statSync(this.#options.path, { bigint: true, throwIfNoEntry: false })?.ino !== this.#inode
  }

  #reopen(): void {
    const { fd, inode, plain } = open(this.#options.path)
    closeSync(this.#fd)
    this.#fd = fd
    this.#inode = inode
    this.#plain = plain
  }
}

function open(path: string): { fd: number; inode: bigint; plain: boolean } {
  const fd = openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT, 0o600)
  const status = fstatSync(fd, { bigint: true })
  return { fd, inode: status.ino, plain: status.isFile() }
}

function moveIfThere(from: string, to: string): void {
  if (statSync(from, { throwIfNoEntry: false }) !== undefined) renameSync(from, to)
}
