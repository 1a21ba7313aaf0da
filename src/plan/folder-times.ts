import { closeSync, constants, fstatSync, futimesSync, openSync } from 'node:fs'
import { statusOf } from '../fs/identity.js'

/**
 * Sets the modification time of a path to the nanosecond, which Node itself cannot: it ends at microseconds.
 * @param mtimeNs nanoseconds since 1970
 */
export type ExactTime = (path: string, mtimeNs: bigint) => void

/** An `ExactTime` that runs `touch` of GNU or busybox; where it is missing or refuses, the microseconds stay. */
export function touchTime(run: (file: string, args: readonly string[]) => unknown): ExactTime {
  return (path, mtimeNs) => {
    const fraction = (mtimeNs % 1_000_000_000n).toString().padStart(9, '0')
    run('touch', ['-c', '-m', '-d', `@${(mtimeNs / 1_000_000_000n).toString()}.${fraction}`, path])
  }
}

interface Times {
  /** What the folder shall have in the end. */
  original: bigint
  /** What it had when we last looked; another time says that somebody else changed it. */
  seen: bigint
  ino: bigint
  /** We changed what it holds. */
  touched: boolean
}

/**
 * Keeps the modification times of folders that things are moved out of and into, so that our work does not make a store look
 * recently used and a restore gives back the same tree. A change that somebody else makes meanwhile keeps its own time.
 */
export class FolderTimes {
  readonly #times = new Map<string, Times>()
  readonly #exact: ExactTime | undefined

  constructor(exact?: ExactTime) {
    this.#exact = exact
  }

  /**
   * Call before changing what a folder holds.
   * @param recorded the time that an earlier receipt has for the folder: it wins where it says the same more exactly
   * @param status the folder's status, when the caller has just looked
   * @returns the time that the folder will get back, nanoseconds since 1970; `undefined` when it is gone
   */
  before(folder: string, recorded?: bigint, status = statusOf(folder)): bigint | undefined {
    if (status === undefined) return undefined
    const known = this.#times.get(folder)
    if (known?.ino === status.ino && known.seen === status.mtimeNs) return known.original
    const exacter = recorded !== undefined && recorded > status.mtimeNs && recorded / 1000n === status.mtimeNs / 1000n
    const original = exacter ? recorded : status.mtimeNs
    this.#times.set(folder, { original, seen: status.mtimeNs, ino: status.ino, touched: exacter })
    return original
  }

  /** Call after changing what a folder holds. */
  after(folder: string): void {
    const known = this.#times.get(folder)
    const status = known === undefined ? undefined : statusOf(folder)
    if (known === undefined || status === undefined) return
    known.seen = status.mtimeNs
    known.touched = true
  }

  /** A folder that was changed or made anew and shall have this time in the end, nanoseconds since 1970. */
  adopt(folder: string, original: bigint): void {
    const status = statusOf(folder)
    if (status !== undefined) this.#times.set(folder, { original, seen: status.mtimeNs, ino: status.ino, touched: true })
  }

  /** Sets every folder back that we changed and nobody else did. A folder that cannot be set keeps its new time. */
  putBack(): void {
    for (const [folder, { original, seen, ino, touched }] of this.#times) {
      const status = touched ? statusOf(folder) : undefined
      if (status?.ino === ino && status.mtimeNs === seen && seen !== original) setFolderTime(folder, original, ino, this.#exact)
    }
    this.#times.clear()
  }
}

/** Sets the time of a folder through an open handle, so that no link put in its place is followed. */
export function setFolderTime(folder: string, mtimeNs: bigint, ino: bigint, exact?: ExactTime): void {
  let fd: number | undefined
  try {
    fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
    const status = fstatSync(fd, { bigint: true })
    if (status.ino !== ino || !status.isDirectory()) return
    // Half a microsecond more, so that cutting the binary fraction ends on the right microsecond.
    futimesSync(fd, Number(status.atimeNs / 1000n) / 1e6, (Number(mtimeNs / 1000n) + 0.5) / 1e6)
    if (exact === undefined || mtimeNs % 1000n === 0n) return
    const handle = `/proc/${String(process.pid)}/fd/${String(fd)}`
    exact(statusOf(handle) === undefined ? folder : handle, mtimeNs)
  } catch {
    // A time is no reason to fail: nothing is lost by it.
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}
