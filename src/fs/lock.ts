import { chownSync, closeSync, linkSync, lstatSync, openSync, readFileSync, readlinkSync, symlinkSync, unlinkSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { LockedError, systemErrorCode } from '../model/errors.js'
import { isNoSpace, writeWhole } from './atomic-write.js'

/** What a lock must know of the processes of this machine. */
export interface ProcessTable {
  processExists(pid: number): boolean
  /** Start time of a process in any unit that tells two processes with one pid apart, `undefined` when unknown. */
  processStart(pid: number): string | undefined
}

/** Who holds a lock. */
export interface LockHolder {
  readonly pid: number
  readonly startTime?: string
  /** Machine and pid namespace: two holders with the same text see the same pids. */
  readonly host: string
  readonly command?: string
  /** ISO 8601. */
  readonly acquiredAt?: string
  /** Hex digits, new for each lock. */
  readonly token: string
}

export interface LockOptions {
  readonly pid: number
  /** Host name together with the pid namespace, so that containers are not taken for one another. */
  readonly host: string
  readonly command: string
  /** Milliseconds since 1970. */
  readonly now: number
  /** Hex digits, new for each call. */
  readonly token: string
  /** How long to wait for another holder, in milliseconds. */
  readonly waitMs: number
  /** How long to wait between two looks, in milliseconds; 100. */
  readonly stepMs?: number
  readonly processes: ProcessTable
  /** Owner of the lock file, when a privileged user works on another one's store. */
  readonly owner?: { readonly uid: number; readonly gid: number }
  readonly sleep?: (ms: number) => Promise<unknown>
  /** Ends the wait when it is aborted: what is free is still taken then. */
  readonly signal?: AbortSignal
}

export interface HeldLock {
  readonly token: string
  /** Gives the lock back. A lock that is no longer ours is left alone (R103). */
  release(): void
}

const defaultStepMs = 100
/** A lock without readable content is none that a running program wrote: contents appear at once with the name. */
const unreadableForMs = 60_000

/**
 * Takes the one lock of a store (promise 6, R103). The file appears with its whole content or not at all. A lock whose process
 * is gone from this host, or whose pid now belongs to a process with another start time, is taken over; two that try it at
 * once cannot both win. A holder on another host, or one that lives, is waited for.
 * @param path the lock file, in a folder that exists
 * @throws LockedError when the wait is over, or something that is not a lock stands at the path
 */
export async function acquireLock(path: string, options: LockOptions): Promise<HeldLock> {
  const sleep = options.sleep ?? pause
  const own: LockHolder = {
    pid: options.pid,
    host: options.host,
    token: options.token,
    ...startOf(options),
    command: options.command,
    acquiredAt: new Date(options.now).toISOString(),
  }
  const stepMs = options.stepMs ?? defaultStepMs
  for (let waited = 0; ; waited += stepMs) {
    // A lock that went away or was cleared is tried again at once; each round takes at least one stale lock away.
    for (let found = tryCreate(path, own, options); ; found = tryCreate(path, own, options)) {
      if (found === 'made') return { token: own.token, release: () => { release(path, own.token) } }
      if (found !== 'gone' && !(isStale(found, options) && clear(path, path, found.token, own, options))) break
    }
    if (waited >= options.waitMs || options.signal?.aborted === true) throw busy(path)
    await sleep(stepMs)
  }
}

/** The holder of a lock, `undefined` when nothing is locked. */
export function readLock(path: string): LockHolder | undefined {
  const found = look(path)
  return found === 'gone' ? undefined : found
}

function startOf(options: LockOptions): { startTime?: string } {
  const startTime = options.processes.processStart(options.pid)
  return startTime === undefined ? {} : { startTime }
}

function tryCreate(path: string, own: LockHolder, options: LockOptions): 'made' | 'gone' | LockHolder {
  const temporary = `${path}.${own.token}.new`
  try {
    const fd = openSync(temporary, 'wx', 0o600)
    try {
      writeWhole(fd, Buffer.from(`${JSON.stringify(own)}\n`))
    } finally {
      closeSync(fd)
    }
    if (options.owner !== undefined) chownSync(temporary, options.owner.uid, options.owner.gid)
    linkSync(temporary, path)
    return 'made'
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'EEXIST') return look(path)
    // A link needs no space for its text, and file systems without hard links mostly have it: exclusive and whole as well.
    if (isNoSpace(error) || code === 'EPERM' || code === 'ENOTSUP' || code === 'EOPNOTSUPP') return tryLink(path, own)
    throw error
  } finally {
    forget(temporary)
  }
}

function tryLink(path: string, own: LockHolder): 'made' | 'gone' | LockHolder {
  const short: LockHolder = {
    pid: own.pid,
    host: own.host,
    token: own.token,
    ...(own.startTime === undefined ? {} : { startTime: own.startTime }),
  }
  try {
    symlinkSync(JSON.stringify(short), path)
    return 'made'
  } catch (error) {
    if (systemErrorCode(error) === 'EEXIST') return look(path)
    throw error
  }
}

/**
 * Removes a stale lock. The right to remove the lock with this token is itself an exclusive name, so that one who read the
 * stale lock long ago cannot remove a newer one. A right whose owner died is stale in turn and cleared the same way.
 */
function clear(lock: string, stale: string, token: string, own: LockHolder, options: LockOptions): boolean {
  const right = `${lock}.${token}.taken`
  const found = tryCreate(right, own, options)
  if (found === 'gone') return true
  if (found !== 'made') return isStale(found, options) && clear(lock, right, found.token, own, options)
  const now = look(stale)
  if (now !== 'gone' && now.token === token) forget(stale)
  forget(right)
  return true
}

function look(path: string): 'gone' | LockHolder {
  try {
    const status = lstatSync(path)
    if (status.isDirectory()) {
      throw new LockedError(`${path} is a folder, not a lock; nothing was changed`, { hint: `look at what is in it, then remove ${path}` })
    }
    const text = status.isSymbolicLink() ? readlinkSync(path) : status.isFile() ? readFileSync(path, 'utf8') : ''
    const unreadable = { pid: 0, host: '', token: `0${status.ino.toString(16)}${Math.floor(status.mtimeMs).toString(16)}` }
    return parseHolder(text) ?? { ...unreadable, acquiredAt: new Date(status.mtimeMs).toISOString() }
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return 'gone'
    throw error
  }
}

function parseHolder(text: string): LockHolder | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { pid, host, token, startTime, command, acquiredAt } = value as Record<string, unknown>
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid < 1 || typeof host !== 'string') return undefined
  if (typeof token !== 'string' || !/^[0-9a-f]{1,64}$/.test(token)) return undefined
  return {
    pid,
    host,
    token,
    ...(typeof startTime === 'string' ? { startTime } : {}),
    ...(typeof command === 'string' ? { command } : {}),
    ...(typeof acquiredAt === 'string' ? { acquiredAt } : {}),
  }
}

function isStale(holder: LockHolder, options: LockOptions): boolean {
  if (holder.pid === 0) return options.now - Date.parse(holder.acquiredAt ?? '') > unreadableForMs
  if (holder.host !== options.host) return false
  if (!options.processes.processExists(holder.pid)) return true
  const start = options.processes.processStart(holder.pid)
  return start !== undefined && holder.startTime !== undefined && start !== holder.startTime
}

function busy(path: string): LockedError {
  const found = look(path)
  const holder = found === 'gone' || found.pid === 0 ? undefined : found
  const who = holder === undefined ? 'another run' : `process ${String(holder.pid)} on ${holder.host}`
  const what = holder?.command === undefined ? '' : ` (${holder.command}, since ${holder.acquiredAt ?? 'an unknown time'})`
  return new LockedError(`the store is locked by ${who}${what}; nothing was changed`, {
    hint: `run again when it has ended; if that process is gone from its machine, remove ${path}`,
  })
}

function release(path: string, token: string): void {
  const found = look(path)
  if (found !== 'gone' && found.token === token) forget(path)
}

function forget(path: string): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw error
  }
}
