import { lstatSync, rmSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { isFields } from '../model/fields.js'
import { labelledEntries, type ScheduledEntry } from './entry.js'
import { ownFilesIn, putInPlace, takeBack } from './own-files.js'
import { programTimeout, saidBy, SchedulerError, type ProgramEnd } from './program.js'
import type { RenderedFile, ScheduleHost, Scheduler } from './scheduler.js'
import { serviceUnit, timerUnit, unitName } from './systemd-units.js'

const unitFile = /^rewind-admin-[a-z0-9-]+\.(?:service|timer)$/

/** Timers of the user's own systemd. */
export const systemd: Scheduler = {
  name: 'systemd',

  async unavailable(host) {
    if (host.platform !== 'linux') return 'systemd is for Linux'
    const end = await systemctl(host, 'list-timers')
    return end.code === 0 ? undefined : `systemd of the user does not answer (${saidBy(end)})`
  },

  async installed(host) {
    if (host.platform !== 'linux') return []
    const timers = ownFilesIn(folderOf(host), unitFile).filter(({ name }) => name.endsWith('.timer'))
    const found = timers.flatMap(({ path, text }) => labelledEntries(text).slice(0, 1).map((entry) => ({ path, entry })))
    if (found.length === 0) return []
    const times = await nextTimes(host)
    return Promise.all(
      found.map(async ({ path, entry }) => {
        const unit = `${unitName(entry.job)}.timer`
        const next = times?.get(unit)
        const active = times === undefined ? undefined : (await systemctl(host, 'is-active', unit)).code === 0
        return { scheduler: 'systemd', entry, where: path, active, changed: isChanged(entry, host), ...(next === undefined ? {} : { next }) }
      }),
    )
  },

  async write(entries, host) {
    if (host.platform !== 'linux') return
    const folder = folderOf(host)
    const files = systemd.render(entries, host)
    const gone = ownFilesIn(folder, unitFile).filter(({ path }) => !files.some((file) => file.path === path))
    const retired = gone.filter(({ name }) => name.endsWith('.timer')).map(({ name }) => name)
    for (const timer of retired) await systemctl(host, 'disable', '--now', timer)
    // Where systemd does not answer nobody else takes the link away.
    for (const timer of retired) removeLink(join(folder, 'timers.target.wants', timer))
    const before = putInPlace(files, gone.map(({ path }) => path), () => host.token())
    if (entries.length > 0) await adopt(entries, retired, before, host)
    else if (gone.length > 0) await systemctl(host, 'daemon-reload')
  },

  render: (entries, host) =>
    entries.flatMap((entry): RenderedFile[] => [
      { path: join(folderOf(host), `${unitName(entry.job)}.service`), text: serviceUnit(entry) },
      { path: join(folderOf(host), `${unitName(entry.job)}.timer`), text: timerUnit(entry) },
    ]),
}

/** Makes systemd take the new files, or takes them back. */
async function adopt(entries: readonly ScheduledEntry[], retired: readonly string[], before: ReturnType<typeof putInPlace>, host: ScheduleHost): Promise<void> {
  const timers = entries.map(({ job }) => `${unitName(job)}.timer`)
  const steps = [['daemon-reload'], ['enable', ...timers], ['restart', ...timers]]
  for (const step of steps) {
    const end = await systemctl(host, ...step)
    if (end.code === 0) continue
    const known = (timer: string): boolean => before.get(join(folderOf(host), timer)) !== undefined
    for (const timer of timers.filter((one) => !known(one))) {
      await systemctl(host, 'disable', '--now', timer)
      removeLink(join(folderOf(host), 'timers.target.wants', timer))
    }
    takeBack(before, () => host.token())
    await systemctl(host, 'daemon-reload')
    const old = [...timers.filter(known), ...retired]
    if (old.length > 0) await systemctl(host, 'enable', '--now', ...old)
    throw new SchedulerError(`systemd refused ${step.join(' ')} (${saidBy(end)}); its files are as they were`, {
      hint: 'systemctl --user status shows more; --scheduler cron uses the crontab instead',
    })
  }
}

/** Where units of the user are (systemd.unit(5)). */
function folderOf({ env, home }: ScheduleHost): string {
  const config = env.XDG_CONFIG_HOME
  return join(config !== undefined && isAbsolute(config) ? config : join(home, '.config'), 'systemd', 'user')
}

function isChanged(entry: ScheduledEntry, host: ScheduleHost): boolean {
  const own = ownFilesIn(folderOf(host), unitFile)
  return systemd.render([entry], host).some(({ path, text }) => own.find((file) => file.path === path)?.text !== text)
}

/** Next times by unit, in milliseconds since 1970; `undefined` when systemd does not answer. */
async function nextTimes(host: ScheduleHost): Promise<ReadonlyMap<string, number> | undefined> {
  const end = await systemctl(host, 'list-timers', '--all', '--output=json')
  if (end.code !== 0) return (await systemctl(host, 'list-timers')).code === 0 ? new Map() : undefined
  const times = new Map<string, number>()
  for (const row of rowsIn(end.stdout.toString('utf8'))) {
    if (typeof row.unit === 'string' && typeof row.next === 'number' && row.next > 0) times.set(row.unit, Math.floor(row.next / 1000))
  }
  return times
}

function rowsIn(text: string): Readonly<Record<string, unknown>>[] {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value.filter(isFields) : []
  } catch {
    // An older systemd prints a table; then the calendar says when.
    return []
  }
}

function removeLink(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true) rmSync(path, { force: true })
}

function systemctl(host: ScheduleHost, ...words: string[]): Promise<ProgramEnd> {
  return host.run('systemctl', ['--user', '--no-pager', ...words], { timeoutMs: programTimeout })
}
