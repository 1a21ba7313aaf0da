import { programTimeout } from './program.js'
import type { ScheduleHost } from './scheduler.js'

/** Whether timers of the user run while the user is logged out: true, false, or `undefined` when nobody could say. */
export async function lingers(host: ScheduleHost): Promise<boolean | undefined> {
  const words = ['show-user', String(host.uid ?? ''), '--property=Linger', '--value']
  const end = await host.run('loginctl', words, { timeoutMs: programTimeout })
  const said = end.stdout.toString('utf8').trim()
  return end.code === 0 && (said === 'yes' || said === 'no') ? said === 'yes' : undefined
}
