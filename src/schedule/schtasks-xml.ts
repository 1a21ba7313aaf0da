import { UsageError } from '../model/errors.js'
import { isAny, isEitherDay, type Calendar } from './calendar.js'
import { labelOf, type ScheduledEntry } from './entry.js'
import { xmlText } from './xml.js'

/** Triggers that one task may have. */
const mostTriggers = 48

const weekdayNames = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
const monthNames = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December']

/** The definition of the task of an entry (Task Scheduler schema 1.2), as text; schtasks wants it in UTF-16. */
export function taskXml(entry: ScheduledEntry): string {
  const [program = '', ...words] = entry.command
  return `<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>rewind-admin ${entry.job}. Written by "rewind-admin schedule install". ${labelOf(entry)}</Description>
  </RegistrationInfo>
  <Triggers>
${triggers(entry.calendar).join('')}  </Triggers>
  <Principals>
    <Principal id="Author">
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>true</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <StartWhenAvailable>true</StartWhenAvailable>
    <Enabled>true</Enabled>
    <ExecutionTimeLimit>PT12H</ExecutionTimeLimit>
    <Priority>9</Priority>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>${xmlText(program)}</Command>
      <Arguments>${xmlText(words.map(windowsQuoted).join(' '))}</Arguments>
    </Exec>
  </Actions>
</Task>
`
}

/** A word of a command line as the C runtime of Windows reads it: backslashes are doubled only before a quote. */
export function windowsQuoted(word: string): string {
  if (/^[^\s"]+$/.test(word)) return word
  return `"${word.replace(/(\\*)"/g, '$1$1\\"').replace(/\\+$/, '$&$&')}"`
}

function triggers(calendar: Calendar): string[] {
  const days = daysOf(calendar)
  const times = calendar.hours.flatMap((hour) => calendar.minutes.map((minute) => `${two(hour)}:${two(minute)}:00`))
  if (times.length * days.length > mostTriggers) {
    throw new UsageError(`this is too much for one task: ${calendar.expression} names ${String(times.length)} times of the day`, { hint: 'name fewer' })
  }
  return times.flatMap((time) =>
    days.map(
      (day) => `    <CalendarTrigger>
      <StartBoundary>2026-01-01T${time}</StartBoundary>
      <Enabled>true</Enabled>
      <RandomDelay>PT5M</RandomDelay>
${day}    </CalendarTrigger>
`,
    ),
  )
}

/** The days a trigger is for. Where cron takes either day, two triggers do. */
function daysOf(calendar: Calendar): string[] {
  const byWeek = isAny(calendar, 'months') ? weekly(calendar) : weeklyInMonths(calendar)
  if (isEitherDay(calendar)) return [monthly(calendar), byWeek]
  if (!isAny(calendar, 'weekdays')) return [byWeek]
  if (!isAny(calendar, 'days') || !isAny(calendar, 'months')) return [monthly(calendar)]
  return ['      <ScheduleByDay>\n        <DaysInterval>1</DaysInterval>\n      </ScheduleByDay>\n']
}

function weekly(calendar: Calendar): string {
  return `      <ScheduleByWeek>\n        <WeeksInterval>1</WeeksInterval>\n${weekdays(calendar)}      </ScheduleByWeek>\n`
}

function weeklyInMonths(calendar: Calendar): string {
  const weeks = ['1', '2', '3', '4', 'Last'].map((week) => `          <Week>${week}</Week>\n`).join('')
  return `      <ScheduleByMonthDayOfWeek>\n        <Weeks>\n${weeks}        </Weeks>\n${weekdays(calendar)}${months(calendar)}      </ScheduleByMonthDayOfWeek>\n`
}

function monthly(calendar: Calendar): string {
  const days = calendar.days.map((day) => `          <Day>${String(day)}</Day>\n`).join('')
  return `      <ScheduleByMonth>\n        <DaysOfMonth>\n${days}        </DaysOfMonth>\n${months(calendar)}      </ScheduleByMonth>\n`
}

function weekdays(calendar: Calendar): string {
  return `        <DaysOfWeek>\n${calendar.weekdays.map((day) => `          <${weekdayNames[day] ?? ''} />\n`).join('')}        </DaysOfWeek>\n`
}

function months(calendar: Calendar): string {
  return `        <Months>\n${calendar.months.map((month) => `          <${monthNames[month - 1] ?? ''} />\n`).join('')}        </Months>\n`
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}
