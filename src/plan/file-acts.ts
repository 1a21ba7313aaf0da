import { chmodSync, chownSync, closeSync, linkSync, mkdirSync, openSync, renameSync, rmdirSync, unlinkSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { writeWhole } from '../fs/atomic-write.js'
import { systemErrorCode } from '../model/errors.js'

/** Every change that the core makes to a disk, so that a test can make each of them fail. */
export interface FileActs {
  rename(from: string, to: string): void
  link(from: string, to: string): void
  /** A name that is not valid UTF-8 comes as bytes. */
  unlink(path: string | Buffer): void
  rmdir(path: string | Buffer): void
  mkdir(path: string, mode: number): void
  chmod(path: string, mode: number): void
  chown(path: string, uid: number, gid: number): void
  /** Makes a new file with these bytes and mode 0600; fails when something stands there. */
  create(path: string, data: Uint8Array): void
}

const systemActs: FileActs = {
  rename: renameSync,
  link: linkSync,
  unlink: unlinkSync,
  rmdir: rmdirSync,
  mkdir: (path, mode) => {
    mkdirSync(path, { mode })
  },
  chmod: chmodSync,
  chown: chownSync,
  create: (path, data) => {
    const fd = openSync(path, 'wx', 0o600)
    try {
      writeWhole(fd, data)
    } finally {
      closeSync(fd)
    }
  },
}

export interface ActsOptions {
  /** `process.platform` of the machine; on `win32` files that another process holds are tried again (R107). */
  readonly platform?: string
  readonly sleep?: (ms: number) => Promise<unknown>
  /** Stand in for single acts, to inject faults. */
  readonly faults?: Partial<FileActs>
}

/** Codes that Windows gives while another process has a file open. */
const heldCodes = new Set(['EPERM', 'EBUSY', 'EACCES', 'ENOTEMPTY'])
const backOffMs = [20, 50, 100, 250, 500]

/** The acts with the patience that the platform needs. */
export class Acts {
  readonly direct: FileActs
  readonly #patient: boolean
  readonly #sleep: (ms: number) => Promise<unknown>

  constructor(options: ActsOptions = {}) {
    this.direct = { ...systemActs, ...options.faults }
    this.#patient = options.platform === 'win32'
    this.#sleep = options.sleep ?? pause
  }

  /** Does one act, again after a short while when Windows says that the file is held. @throws what the last try threw */
  async try(act: (acts: FileActs) => void): Promise<void> {
    for (let round = 0; ; round += 1) {
      try {
        act(this.direct)
        return
      } catch (error) {
        const wait = backOffMs[round]
        if (!this.#patient || wait === undefined || !heldCodes.has(systemErrorCode(error) ?? '')) throw error
        await this.#sleep(wait)
      }
    }
  }
}
