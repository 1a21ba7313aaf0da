import { isAny, isEitherDay, type Calendar } from './calendar.js'
import { labelOf, type ScheduledEntry } from './entry.js'

/** Name of the units of a job, without their ending. */
export function unitName(job: string): string {
  return `rewind-admin-${job}`
}

const header = (entry: ScheduledEntry, ending: string): string => `# Written by "rewind-admin schedule install" and written anew by it.
# Put changes of your own into a drop-in: systemctl --user edit ${unitName(entry.job)}.${ending}
# ${labelOf(entry)}
`

/** The service of an entry: one run, at the lowest priority, ended gently. */
export function serviceUnit(entry: ScheduledEntry): string {
  const variables = Object.entries(entry.environment).map(([name, value]) => `Environment=${quoted(`${name}=${value}`)}\n`)
  return `${header(entry, 'service')}
[Unit]
Description=rewind-admin ${entry.job}

[Service]
Type=oneshot
ExecStart=${execLine(entry.command)}
${variables.join('')}Nice=19
IOSchedulingClass=idle
# SIGTERM ends the run after the item in work.
TimeoutStopSec=5min
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
SystemCallArchitectures=native
# Memory must stay writable and executable at once: node compiles while it runs.
`
}

/** The timer of an entry: catches up on what was missed while the machine was off, and spreads the machines a little. */
export function timerUnit(entry: ScheduledEntry): string {
  return `${header(entry, 'timer')}
[Unit]
Description=rewind-admin ${entry.job}: when it runs

[Timer]
${onCalendar(entry.calendar)
  .map((line) => `OnCalendar=${line}\n`)
  .join('')}Persistent=true
RandomizedDelaySec=5min

[Install]
WantedBy=timers.target
`
}

/**
 * The command as systemd reads it (systemd.service(5), "Command lines"): words in double quotes with C escapes, `%` and `$`
 * doubled. The path of the program may hold no quotes and no backslash, and `$` is no variable in it: then a shell starts it.
 */
function execLine(command: readonly string[]): string {
  const [program = '', ...words] = command
  const rest = words.map((word) => quoted(word.replaceAll('$', '$$$$'))).join(' ')
  if (/["'\\$]/.test(program)) return `/bin/sh -c ${quoted('exec "$$0" "$$@"')} ${quoted(program.replaceAll('$', '$$$$'))} ${rest}`
  return `${quoted(program)} ${rest}`
}

function quoted(word: string): string {
  return `"${word.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%')}"`
}

const weekdayNames = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']

/** Lines of `OnCalendar=` (systemd.time(7)). Where cron takes either day, two lines do. */
function onCalendar(calendar: Calendar): string[] {
  const list = (name: 'minutes' | 'hours' | 'days' | 'months'): string => (isAny(calendar, name) ? '*' : calendar[name].map((value) => String(value).padStart(2, '0')).join(','))
  const time = `${list('hours')}:${list('minutes')}:00`
  const weekdays = isAny(calendar, 'weekdays') ? '' : `${calendar.weekdays.map((day) => weekdayNames[day] ?? '').join(',')} `
  if (isEitherDay(calendar)) return [`*-${list('months')}-${list('days')} ${time}`, `${weekdays}*-${list('months')}-* ${time}`]
  return [`${weekdays}*-${list('months')}-${list('days')} ${time}`]
}
