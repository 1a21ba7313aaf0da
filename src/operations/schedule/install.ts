import { createHash } from 'node:crypto'
import { ExitCode } from '../../model/exit-code.js'
import { noItems, type ErrorItem, type Report } from '../../model/report.js'
import { minuteOf, nextTime, parseSystemCalendar, type Calendar } from '../../schedule/calendar.js'
import { chooseScheduler, schedulers } from '../../schedule/choose.js'
import { checkJobName, checkWords, type ScheduledEntry } from '../../schedule/entry.js'
import type { InstalledEntry, ScheduleHost, SchedulerName } from '../../schedule/scheduler.js'
import { errorItem, findInstalled, withScheduleLock, type ScheduleContext } from './installed.js'

/** Where the hours of a night are fewest: no clock is set forward or back after it. */
const defaultHour = 3

export interface InstallOptions {
  readonly job: string
  /** `HH:MM` or a cron expression; `undefined`: at night, at a minute of this machine's own. */
  readonly at: string | undefined
  readonly scheduler: SchedulerName | 'auto'
  /** Full path of node and of our script. */
  readonly program: readonly [node: string, script: string]
  /** Options that the scheduled command line gets besides its own. */
  readonly words: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  /** Tells this user on this machine from all others, and is always the same. */
  readonly machineKey: string
  /** Hex digits, new for each call; used when the job is not installed yet. */
  readonly installation: string
}

/** When a job is due unless told otherwise: between three and four, at a minute that is the machine's own. */
export function defaultCalendar(machineKey: string): Calendar {
  const minute = minuteOf(createHash('sha256').update(machineKey).digest())
  return parseSystemCalendar(`${String(minute)} ${String(defaultHour)} * * *`)
}

/** The entry that a scheduler gets. @throws UsageError */
export function entryOf(options: InstallOptions): ScheduledEntry {
  const { job, at, program, words, environment, machineKey, installation } = options
  checkJobName(job)
  const calendar = at === undefined ? defaultCalendar(machineKey) : parseSystemCalendar(at)
  const command = [...program, 'run', job, '--apply', '--scheduled', installation, '--quiet', ...words]
  const entry = { job, calendar, command, environment, installation }
  checkWords(entry)
  return entry
}

/**
 * Puts a job into one scheduler of the system and takes what is ours out of all others; other jobs of ours move along. Installing
 * again changes time, paths and options and keeps the name of the installation, so that it is not previewed anew.
 * @throws UsageError, SchedulerError (nothing changed), LockedError
 */
export async function installSchedule(options: InstallOptions, host: ScheduleHost, context: ScheduleContext): Promise<Report> {
  entryOf(options)
  return withScheduleLock(host, context, 'schedule install', async () => {
    const chosen = await chooseScheduler(options.scheduler, host)
    const before = await findInstalled(host)
    const known = before.entries.filter(({ entry }) => entry.job === options.job)
    const old = known.find(({ scheduler }) => scheduler === chosen.name) ?? known[0]
    const entry = entryOf({ ...options, installation: old?.entry.installation ?? options.installation })
    const others = otherJobs(before.entries, options.job, chosen.name)
    await chosen.write([...others.map((one) => one.entry), entry], host)
    const errors = await clearOthers(chosen.name, host)
    const moved = others.filter(({ scheduler }) => scheduler !== chosen.name).map((one) => one.entry.job)
    const replaced = [...new Set(before.entries.map(({ scheduler }) => scheduler).filter((name) => name !== chosen.name))]
    const [own] = (await chosen.installed(host)).filter((one) => one.entry.job === options.job)
    return {
      command: 'schedule',
      roots: [],
      applied: true,
      summary: {
        job: entry.job,
        scheduler: chosen.name,
        where: own?.where ?? chosen.name,
        at: entry.calendar.expression,
        next: new Date(own?.next ?? nextTime(entry.calendar, context.now, context.zone)).toISOString(),
        installation: old === undefined ? 'new' : 'kept',
      },
      ...noItems,
      errors,
      exitCode: errors.length > 0 ? ExitCode.partial : ExitCode.done,
      extra: { commandLine: [...entry.command], environment: { ...entry.environment }, moved, replaced },
    }
  })
}

/** Each of the other jobs once; the chosen scheduler's own word counts. */
function otherJobs(entries: readonly InstalledEntry[], job: string, chosen: SchedulerName): InstalledEntry[] {
  const found = new Map<string, InstalledEntry>()
  for (const one of entries) {
    if (one.entry.job !== job && (!found.has(one.entry.job) || one.scheduler === chosen)) found.set(one.entry.job, one)
  }
  return [...found.values()]
}

async function clearOthers(chosen: SchedulerName, host: ScheduleHost): Promise<ErrorItem[]> {
  const errors: ErrorItem[] = []
  for (const scheduler of schedulers.filter(({ name }) => name !== chosen)) {
    try {
      await scheduler.write([], host)
    } catch (error) {
      errors.push(errorItem(error, scheduler.name))
    }
  }
  return errors
}
