import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { acquireLock, type LockOptions } from '../../fs/lock.js'
import type { ErrorItem } from '../../model/report.js'
import { schedulers } from '../../schedule/choose.js'
import { SchedulerError } from '../../schedule/program.js'
import type { InstalledEntry, ScheduleHost } from '../../schedule/scheduler.js'
import { stateFolder } from '../../schedule/state-folder.js'

export interface ScheduleContext {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly lock: Pick<LockOptions, 'pid' | 'host' | 'processes' | 'waitMs'>
  /** A name of the time zone database for the next time; that of the system unless given. */
  readonly zone?: string
}

/** What every scheduler holds of ours, and those that are there and could not be asked. */
export interface Installed {
  readonly entries: readonly InstalledEntry[]
  readonly errors: readonly ErrorItem[]
}

/** Asks all schedulers of this system. Never throws for what one of them says. */
export async function findInstalled(host: ScheduleHost): Promise<Installed> {
  const entries: InstalledEntry[] = []
  const errors: ErrorItem[] = []
  for (const scheduler of schedulers) {
    try {
      entries.push(...(await scheduler.installed(host)))
    } catch (error) {
      errors.push(errorItem(error, scheduler.name))
    }
  }
  return { entries, errors }
}

/** A scheduler that failed as an item of the report. Anything else is thrown on. */
export function errorItem(error: unknown, scheduler: string): ErrorItem {
  if (error instanceof SchedulerError) return { code: error.code, message: `${scheduler}: ${error.message}` }
  throw error
}

/** Changes schedules one at a time: two at once could lose lines of a crontab. @throws LockedError */
export async function withScheduleLock<T>(host: ScheduleHost, context: ScheduleContext, command: string, act: () => Promise<T>): Promise<T> {
  const folder = stateFolder(host)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const held = await acquireLock(join(folder, 'schedule.lock'), { ...context.lock, command, now: context.now, token: host.token() })
  try {
    return await act()
  } finally {
    held.release()
  }
}
