import { closeSync, existsSync, fsyncSync, linkSync, lstatSync, openSync, readdirSync, renameSync, rmSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError, systemErrorCode } from '../model/errors.js'
import { writeWhole } from './atomic-write.js'
import { readSmallFile } from './read-small.js'

const temporaryName = /^\.rewind-admin-([0-9]+)-[0-9a-f]+$/
/** A folder of a process that seems to live is left for this long: its pid may have been given to another one. Milliseconds. */
const oldAge = 24 * 3_600_000

/** The run that makes temporary names, told from all others. */
export interface Run {
  readonly pid: number
  /** Hex digits, new for each run. */
  readonly token: string
}

/** Name of a temporary folder beside what is made: `.rewind-admin-<pid>-<token>`. */
export function temporaryNameOf({ pid, token }: Run): string {
  return `.rewind-admin-${String(pid)}-${token}`
}

/**
 * Removes temporary folders that killed runs left in a folder (R87): those whose process is gone, those of an earlier
 * process with our own pid, and those older than a day. Hold the store's lock. Returns the paths that were removed.
 */
export function sweepTemporary(folder: string, run: Run, processExists: (pid: number) => boolean, now: number): string[] {
  return names(folder).flatMap((name) => {
    const pid = Number(temporaryName.exec(name)?.[1] ?? Number.NaN)
    if (Number.isNaN(pid) || name === temporaryNameOf(run)) return []
    const path = join(folder, name)
    const status = lstatSync(path, { throwIfNoEntry: false })
    if (status === undefined || (pid !== run.pid && processExists(pid) && now - status.mtimeMs < oldAge)) return []
    rmSync(path, { recursive: true, force: true })
    return [path]
  })
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/**
 * Gives a finished file its name; what stands there is never overwritten.
 * @throws EEXIST when something stands at `to`; other system errors. The staged file is then still in place.
 */
export function publishFile(staged: string, to: string): void {
  try {
    linkSync(staged, to)
  } catch (error) {
    const code = systemErrorCode(error)
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EOPNOTSUPP' && code !== 'ENOSYS' && code !== 'EMLINK') throw error
    if (existsSync(to)) throw Object.assign(new Error(`${to} exists`), { code: 'EEXIST' })
    renameSync(staged, to)
    return
  }
  unlinkSync(staged)
}

/**
 * Gives a finished folder its name. Returns false when a folder with something in it stands there.
 * @throws system errors
 */
export function publishFolder(staged: string, to: string): boolean {
  if (lstatSync(to, { throwIfNoEntry: false })?.isDirectory() === true) return false
  try {
    renameSync(staged, to)
    return true
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return false
    throw error
  }
}

/**
 * Writes a new file that only its owner can read. False when a plain file with these bytes stands there already.
 * @throws UsageError when something else stands there; system errors, and then nothing is left
 */
export function publishBytes(path: string, bytes: Buffer): boolean {
  let fd: number
  try {
    fd = openSync(path, 'wx', 0o600)
  } catch (error) {
    if (systemErrorCode(error) !== 'EEXIST') throw error
    const found = readSmallFile(path, { follow: false, limit: bytes.length + 1 })
    if (found.kind === 'bytes' && found.bytes.equals(bytes)) return false
    throw new UsageError(`${path} exists and was not overwritten`, { hint: 'name another folder, or move the file away' })
  }
  try {
    writeWhole(fd, bytes)
    fsyncSync(fd)
  } catch (error) {
    rmSync(path, { force: true })
    throw error
  } finally {
    closeSync(fd)
  }
  return true
}
