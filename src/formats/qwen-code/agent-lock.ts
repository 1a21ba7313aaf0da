import { closeSync, fstatSync, lstatSync, openSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { nodeWord } from '../../fs/blocks.js'
import { LockedError, systemErrorCode } from '../../model/errors.js'
import { cleanupLock } from './layout.js'

/** A lock older than this, in milliseconds, was left behind (formats/qwen-code section 8). */
const staleAfter = 3_600_000

/**
 * Takes the lock of the agent's own housekeeping in its way: an empty file, made exclusively, stale after an hour, removed at
 * the end (section 8, R105).
 * @param now milliseconds since 1970
 * @throws LockedError while the agent holds it
 */
export function takeCleanupLock(root: string, now: number): { release(): void } {
  const path = join(root, cleanupLock)
  for (let attempt = 0; ; attempt += 1) {
    try {
      const fd = openSync(path, 'wx', 0o600)
      const { dev, ino } = fstatSync(fd)
      closeSync(fd)
      return { release: () => { forget(path, { dev, ino }) } }
    } catch (error) {
      if (systemErrorCode(error) !== 'EEXIST') throw error
      if (attempt > 0 || !clearStale(path, now)) throw held(path)
    }
  }
}

/** Removes a lock that was left behind; false when somebody may still hold it. */
function clearStale(path: string, now: number): boolean {
  const there = lstatSync(path, { throwIfNoEntry: false })
  if (there === undefined) return true
  if (!there.isFile() || now - there.mtimeMs <= staleAfter) return false
  forget(path, there)
  return true
}

/** Removes the lock, unless it is another one by now. */
function forget(path: string, lock: { readonly dev: number; readonly ino: number }): void {
  try {
    const there = lstatSync(path, { throwIfNoEntry: false })
    if (there?.ino === lock.ino && there.dev === lock.dev) unlinkSync(path)
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw error
  }
}

function held(path: string): LockedError {
  const there = lstatSync(path, { throwIfNoEntry: false })
  if (there !== undefined && !there.isFile()) {
    return new LockedError(`${path} is ${nodeWord(there)}, not the lock of the agent's housekeeping; nothing was removed`, { hint: `look at ${path}, then remove it` })
  }
  return new LockedError("the agent's own housekeeping is going on; nothing was removed", { hint: `run again later; ${path} is stale after an hour` })
}
