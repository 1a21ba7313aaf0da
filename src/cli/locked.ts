import { execFileSync } from 'node:child_process'
import type { Store } from '../formats/format.js'
import type { SyncFileSystem } from '../fs/flush.js'
import { notLive } from '../operations/removal/live.js'
import type { RewindContext } from '../operations/rewind.js'
import { recoverRuns } from '../plan/recover.js'
import { newToken } from '../plan/run-id.js'
import { lockStore } from '../plan/sidecar.js'
import type { CommandContext } from './context.js'
import { lockOwner, sessionProgress, type Workplace } from './workplace.js'

/** Does something with the lock of a store held, after interrupted runs were completed. Throws `LockedError`. */
export async function withLock<T>(context: CommandContext, place: Workplace, store: Store, command: string, act: () => T | Promise<T>): Promise<T> {
  const now = context.now()
  const held = await lockStore(store, { ...lockOwner(place.machine), command, now, token: newToken() })
  try {
    await recoverRuns(store, { now, stillAllowed: notLive(store, place.machine, now) })
    return await act()
  } finally {
    held.release()
  }
}

/** The same with the locks of several stores held, taken in order. */
export function withLocks<T>(context: CommandContext, place: Workplace, command: string, act: () => T | Promise<T>): Promise<T> {
  const locked = place.stores.reduceRight<() => T | Promise<T>>((inner, store) => () => withLock(context, place, store, command, inner), act)
  return Promise.resolve(locked())
}

/** What rewind, redo and fork need of this machine. */
export function writingContext(context: CommandContext, place: Workplace, label: string): RewindContext {
  return {
    now: context.now(),
    pid: process.pid,
    token: newToken(),
    processExists: (pid) => place.machine.processExists(pid),
    signal: context.signal,
    progress: sessionProgress(context, label),
    home: context.home,
    windows: process.platform === 'win32',
    ...(process.platform === 'linux' ? { syncFileSystem } : {}),
  }
}

/** `sync -f` of coreutils: one call for the whole file system. */
const syncFileSystem: SyncFileSystem = (folder) => {
  execFileSync('sync', ['-f', folder], { stdio: 'ignore' })
}
