import { join } from 'node:path'
import { isAny, isEitherDay, type Calendar } from './calendar.js'
import { labelledEntries, labelOf, type ScheduledEntry } from './entry.js'
import { ownFilesIn, putInPlace, takeBack } from './own-files.js'
import { programTimeout, saidBy, SchedulerError, type ProgramEnd } from './program.js'
import type { ScheduleHost, Scheduler } from './scheduler.js'
import { UsageError } from '../model/errors.js'
import { xmlText } from './xml.js'

const plistFile = /^io\.rewind-admin\.[a-z0-9-]+\.plist$/
/** Single moments that one plist may name. */
const mostMoments = 400
/** How often launchd is asked whether the old job has gone. */
const mostLooks = 20

/** Agents of the user in launchd. */
export const launchd: Scheduler = {
  name: 'launchd',

  async unavailable(host) {
    if (host.platform !== 'darwin') return 'launchd is for macOS'
    const end = await launchctl(host, 'print', domainOf(host))
    return end.code === 0 ? undefined : `launchd does not answer for this user (${saidBy(end)})`
  },

  async installed(host) {
    if (host.platform !== 'darwin') return []
    const found = ownFilesIn(folderOf(host), plistFile)
    return Promise.all(
      found.flatMap(({ path, text }) =>
        labelledEntries(text)
          .slice(0, 1)
          .map(async (entry) => {
            const { code } = await launchctl(host, 'print', serviceOf(entry.job, host))
            return { scheduler: 'launchd' as const, entry, where: path, active: code === 0, changed: text !== plistOf(entry) }
          }),
      ),
    )
  },

  async write(entries, host) {
    if (host.platform !== 'darwin') return
    const files = launchd.render(entries, host)
    const gone = ownFilesIn(folderOf(host), plistFile).filter(({ path }) => !files.some((file) => file.path === path))
    const retired = gone.map(({ name }) => name.slice('io.rewind-admin.'.length, -'.plist'.length))
    const before = putInPlace(files, gone.map(({ path }) => path), () => host.token())
    for (const job of retired) await bootout(job, host)
    for (const { job } of entries) {
      await bootout(job, host)
      const end = await launchctl(host, 'bootstrap', domainOf(host), fileOf(job, host))
      if (end.code === 0) continue
      takeBack(before, () => host.token())
      const old = [...before].flatMap(([path, bytes]) => (bytes === undefined ? [] : [path]))
      for (const one of entries) await bootout(one.job, host)
      for (const path of old) await launchctl(host, 'bootstrap', domainOf(host), path)
      throw new SchedulerError(`launchd refused ${labelFor(job)} (${saidBy(end)}); its files are as they were`, {
        hint: `launchctl print ${domainOf(host)} shows more`,
      })
    }
  },

  render: (entries, host) => entries.map((entry) => ({ path: fileOf(entry.job, host), text: plistOf(entry) })),
}

/** The property list of an entry (launchd.plist(5)). */
export function plistOf(entry: ScheduledEntry): string {
  const { command, environment, calendar, job } = entry
  const variables = Object.entries(environment).map(([name, value]) => `    <key>${xmlText(name)}</key>\n    <string>${xmlText(value)}</string>\n`)
  const moments = momentsOf(calendar).map(
    (moment) => `    <dict>\n${moment.map(([key, value]) => `      <key>${key}</key>\n      <integer>${String(value)}</integer>\n`).join('')}    </dict>\n`,
  )
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Written by "rewind-admin schedule install" and written anew by it. -->
<!-- ${labelOf(entry)} -->
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${labelFor(job)}</string>
  <key>ProgramArguments</key>
  <array>
${command.map((word) => `    <string>${xmlText(word)}</string>\n`).join('')}  </array>
${variables.length === 0 ? '' : `  <key>EnvironmentVariables</key>\n  <dict>\n${variables.join('')}  </dict>\n`}  <key>StartCalendarInterval</key>
  <array>
${moments.join('')}  </array>
  <key>ProcessType</key>
  <string>Background</string>
  <key>LowPriorityIO</key>
  <true/>
  <key>Nice</key>
  <integer>19</integer>
  <key>ExitTimeOut</key>
  <integer>300</integer>
</dict>
</plist>
`
}

/** What is left out of a moment is any. Where cron takes either day, moments by the month and moments by the week do. */
function momentsOf(calendar: Calendar): (readonly [string, number])[][] {
  const keys = { minutes: 'Minute', hours: 'Hour', days: 'Day', months: 'Month', weekdays: 'Weekday' } as const
  const product = (names: readonly (keyof typeof keys)[]): (readonly [string, number])[][] =>
    names
      .filter((name) => !isAny(calendar, name))
      .reduce<(readonly [string, number])[][]>((made, name) => made.flatMap((moment) => calendar[name].map((value) => [...moment, [keys[name], value] as const])), [[]])
  const size = (['minutes', 'hours', 'days', 'months', 'weekdays'] as const).reduce((count, name) => count * (isAny(calendar, name) ? 1 : calendar[name].length), 1)
  if (size > mostMoments) throw new UsageError(`this is too much for launchd: ${calendar.expression} names ${String(size)} single moments`, { hint: 'name fewer' })
  if (!isEitherDay(calendar)) return product(['months', 'days', 'weekdays', 'hours', 'minutes'])
  return [...product(['months', 'days', 'hours', 'minutes']), ...product(['months', 'weekdays', 'hours', 'minutes'])]
}

function labelFor(job: string): string {
  return `io.rewind-admin.${job}`
}

function folderOf({ home }: ScheduleHost): string {
  return join(home, 'Library', 'LaunchAgents')
}

function fileOf(job: string, host: ScheduleHost): string {
  return join(folderOf(host), `${labelFor(job)}.plist`)
}

function domainOf({ uid }: ScheduleHost): string {
  return `gui/${String(uid ?? 0)}`
}

function serviceOf(job: string, host: ScheduleHost): string {
  return `${domainOf(host)}/${labelFor(job)}`
}

/** Takes a job out of launchd, which may go on for a moment after the call; one that is not there is no error. */
async function bootout(job: string, host: ScheduleHost): Promise<void> {
  const { code } = await launchctl(host, 'bootout', serviceOf(job, host))
  if (code !== 0 && code !== 36) return
  for (let looks = 0; looks < mostLooks; looks += 1) {
    if ((await launchctl(host, 'print', serviceOf(job, host))).code !== 0) return
  }
}

function launchctl(host: ScheduleHost, ...words: string[]): Promise<ProgramEnd> {
  return host.run('launchctl', words, { timeoutMs: programTimeout })
}
