import { NoMatchError } from '../../model/errors.js'
import { ExitCode } from '../../model/exit-code.js'
import { noItems, type ErrorItem, type Report } from '../../model/report.js'
import { schedulers } from '../../schedule/choose.js'
import type { ScheduleHost } from '../../schedule/scheduler.js'
import { errorItem, findInstalled, withScheduleLock, type ScheduleContext } from './installed.js'

/**
 * Takes one job, or all of ours, out of every scheduler. Nothing else in them changes; stores, trash and seals stay.
 * @throws NoMatchError when there is no such job; LockedError
 */
export async function removeSchedule(job: string | undefined, host: ScheduleHost, context: ScheduleContext): Promise<Report> {
  return withScheduleLock(host, context, 'schedule remove', async () => {
    const before = await findInstalled(host)
    const going = before.entries.filter(({ entry }) => job === undefined || entry.job === job)
    const errors: ErrorItem[] = [...before.errors]
    for (const scheduler of schedulers) {
      const own = before.entries.filter((one) => one.scheduler === scheduler.name).map(({ entry }) => entry)
      const staying = job === undefined ? [] : own.filter((entry) => entry.job !== job)
      // Without a job what is left of a broken block goes as well.
      if (job !== undefined && staying.length === own.length) continue
      if (before.errors.some(({ message }) => message.startsWith(`${scheduler.name}:`))) continue
      try {
        await scheduler.write(staying, host)
      } catch (error) {
        errors.push(errorItem(error, scheduler.name))
      }
    }
    if (going.length === 0 && errors.length === 0) {
      throw new NoMatchError(job === undefined ? 'nothing is scheduled' : `the job ${job} is not scheduled`, { hint: 'rewind-admin schedule status' })
    }
    return {
      command: 'schedule',
      roots: [],
      applied: true,
      summary: { removed: going.length },
      ...noItems,
      errors,
      exitCode: errors.length > 0 ? ExitCode.partial : ExitCode.done,
      extra: { removed: going.map(({ entry, scheduler, where }) => ({ job: entry.job, scheduler, where })) },
    }
  })
}
