import { CronTime, validateCronExpression } from 'cron'
import { UsageError } from '../model/errors.js'

/** When a job is due: every moment whose parts are all in these lists. Lists are sorted and never empty. */
export interface Calendar {
  /** The same as a cron expression of plain numbers: five fields, or six when the seconds are not just 0. */
  readonly expression: string
  readonly seconds: readonly number[]
  readonly minutes: readonly number[]
  readonly hours: readonly number[]
  readonly days: readonly number[]
  readonly months: readonly number[]
  /** 0 is Sunday. */
  readonly weekdays: readonly number[]
}

interface Field {
  readonly name: keyof Omit<Calendar, 'expression'>
  readonly low: number
  readonly high: number
  readonly names?: readonly string[]
}

const fields: readonly Field[] = [
  { name: 'seconds', low: 0, high: 59 },
  { name: 'minutes', low: 0, high: 59 },
  { name: 'hours', low: 0, high: 23 },
  { name: 'days', low: 1, high: 31 },
  { name: 'months', low: 1, high: 12, names: ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'] },
  { name: 'weekdays', low: 0, high: 7, names: ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] },
]

const presets: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@hourly': '0 * * * *',
}

const examples = 'give it as 03:00, as five cron fields such as "0 3 * * *", or as @daily'

/**
 * Reads `HH:MM`, a cron expression of five fields (six: seconds first), or `@daily` and its like. What counts is what the cron
 * package makes of it; its fields are spelt out here, because the schedulers of the systems differ in what they understand.
 * @throws UsageError for anything else, and for a date that never comes
 */
export function parseCalendar(text: string): Calendar {
  const clock = /^([01]?[0-9]|2[0-3]):([0-5][0-9])$/.exec(text.trim())
  const cron = clock === null ? (presets[text.trim().toLowerCase()] ?? text.trim()) : `${String(Number(clock[2]))} ${String(Number(clock[1]))} * * *`
  const words = cron.split(/\s+/)
  const { valid, error } = validateCronExpression(cron)
  if (!valid || words.length < 5) throw new UsageError(`this is no time to run at: ${text} (${error?.message ?? 'too few fields'})`, { hint: examples })
  const six = words.length === 5 ? ['0', ...words] : words
  const lists = fields.map((field, index) => expand(six[index] ?? '', field, text))
  const [seconds = [], minutes = [], hours = [], days = [], months = [], weekdays = []] = lists
  const spelt = lists.map((list, index) => (isEvery(list, fields[index]) ? '*' : list.join(',')))
  const calendar = { expression: spelt.slice(spelt[0] === '0' ? 1 : 0).join(' '), seconds, minutes, hours, days, months, weekdays }
  if (!comes(calendar)) throw new UsageError(`this day never comes: ${text}`, { hint: examples })
  return calendar
}

/** The same for the schedulers of the system, which count in minutes. @throws UsageError */
export function parseSystemCalendar(text: string): Calendar {
  const calendar = parseCalendar(text)
  if (calendar.expression.split(' ').length === 5) return calendar
  throw new UsageError(`the scheduler of the system counts in minutes: ${text}`, { hint: 'give five fields, or use rewind-admin daemon' })
}

/** True when a part of a calendar leaves nothing out. */
export function isAny(calendar: Calendar, name: Field['name']): boolean {
  return isEvery(calendar[name], fields.find((field) => field.name === name))
}

/** Both a day of the month and a day of the week are named: cron then takes either. */
export function isEitherDay(calendar: Calendar): boolean {
  return !isAny(calendar, 'days') && !isAny(calendar, 'weekdays')
}

/**
 * The first moment after another one, both in milliseconds since 1970.
 * @param zone a name of the time zone database; that of the system unless given
 */
export function nextTime(calendar: Calendar, after: number, zone?: string): number {
  const time = new CronTime(calendar.expression, zone ?? null)
  // Around a change of the clocks the package may answer with the moment it was given.
  for (let from = after; ; from += 60_000) {
    const found = time.getNextDateFrom(new Date(from), zone).toMillis()
    if (found > after) return found
  }
}

/** A minute of the hour that is always the same for the same text, so that many machines do not all begin at once. */
export function minuteOf(digest: Uint8Array): number {
  return (((digest[0] ?? 0) << 8) | (digest[1] ?? 0)) % 60
}

function isEvery(list: readonly number[], field: Field | undefined): boolean {
  return field !== undefined && list.length === field.high - field.low + (field.name === 'weekdays' ? 0 : 1)
}

function expand(word: string, field: Field, whole: string): number[] {
  const found = new Set<number>()
  for (const part of word.toLowerCase().split(',')) {
    const [, range = '', step] = /^([^/]+)(?:\/([0-9]+))?$/.exec(part) ?? []
    const [from, to] = range === '*' ? [field.low, field.high] : range.split('-').map((value) => numberOf(value, field))
    const last = to ?? (step === undefined ? from : field.high)
    if (from === undefined || last === undefined || Number.isNaN(from) || Number.isNaN(last)) throw new UsageError(`this is no time to run at: ${whole}`, { hint: examples })
    for (let value = from; value <= last; value += Number(step ?? 1)) found.add(field.name === 'weekdays' && value === 7 ? 0 : value)
  }
  return [...found].sort((a, b) => a - b)
}

function numberOf(value: string, { names, low }: Field): number {
  const index = names?.indexOf(value) ?? -1
  if (index >= 0) return index + low
  return /^[0-9]+$/.test(value) ? Number(value) : Number.NaN
}

const longest = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** A day of the month may be one that none of the months has; a day of the week that is named comes all the same. */
function comes(calendar: Calendar): boolean {
  return isEitherDay(calendar) || calendar.months.some((month) => calendar.days.some((day) => day <= (longest[month - 1] ?? 0)))
}
