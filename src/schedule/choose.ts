import { crontab } from './crontab.js'
import { launchd } from './launchd.js'
import { SchedulerError } from './program.js'
import type { ScheduleHost, Scheduler, SchedulerName } from './scheduler.js'
import { schtasks } from './schtasks.js'
import { systemd } from './systemd.js'

/** Every scheduler there is, in the order in which `auto` tries them; each knows the systems it is for. */
export const schedulers: readonly Scheduler[] = [launchd, schtasks, systemd, crontab]

/**
 * The scheduler to use: the named one, or the first that answers.
 * @throws SchedulerError when it does not, saying why for each that was asked
 */
export async function chooseScheduler(asked: SchedulerName | 'auto', host: ScheduleHost): Promise<Scheduler> {
  const reasons: string[] = []
  for (const scheduler of schedulers) {
    if (asked !== 'auto' && scheduler.name !== asked) continue
    const reason = await scheduler.unavailable(host)
    if (reason === undefined) return scheduler
    reasons.push(`${scheduler.name}: ${reason}`)
  }
  throw new SchedulerError(`no scheduler can be used (${reasons.join('; ')}); nothing was changed`, {
    hint: 'rewind-admin daemon runs a job in the foreground, as containers want it',
  })
}
