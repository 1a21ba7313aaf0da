import { UsageError } from '../model/errors.js'
import { isFields } from '../model/fields.js'
import { parseSystemCalendar, type Calendar } from './calendar.js'

/** One job as a scheduler has it. */
export interface ScheduledEntry {
  readonly job: string
  readonly calendar: Calendar
  /** Full path of node, full path of our script, then its words. */
  readonly command: readonly string[]
  /** Variables that decide which stores and settings are found; schedulers start programs with hardly any. */
  readonly environment: Readonly<Record<string, string>>
  /** Hex digits, new for each installation: what has not been previewed under this name is previewed first. */
  readonly installation: string
}

/** Jobs become parts of file names, task names and labels of four systems. */
export function checkJobName(job: string): void {
  if (/^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$/.test(job)) return
  throw new UsageError(`a job with this name cannot be scheduled: ${job}`, { hint: 'use small letters, digits and dashes, at most 40' })
}

/** @throws UsageError for a word that no scheduler could hold: one with a line end or another control character */
export function checkWords(entry: ScheduledEntry): void {
  const words = [...entry.command, ...Object.entries(entry.environment).flat()]
  const bad = words.find((word) => /[\u0000-\u001f\u007f]/.test(word))
  if (bad !== undefined) throw new UsageError(`a path with control characters cannot be scheduled: ${JSON.stringify(bad)}`, { hint: 'rename it' })
}

const labelStart = 'rewind-admin-entry:'

/**
 * An entry as one word of plain letters, to be kept beside what a scheduler was given: from it we know again what is ours and
 * what was installed, whatever the scheduler makes of the rest. Safe inside every comment: it has no dash, quote or percent sign.
 */
export function labelOf(entry: ScheduledEntry): string {
  const { job, calendar, command, environment, installation } = entry
  const json = JSON.stringify({ job, at: calendar.expression, command, environment, installation })
  return `${labelStart}${Buffer.from(json).toString('base64')}`
}

/** Every entry whose label stands in a text, in order. A label that cannot be read, or of no shape we write, is passed over. */
export function labelledEntries(text: string): ScheduledEntry[] {
  return [...text.matchAll(/rewind-admin-entry:([A-Za-z0-9+/=]+)/g)].flatMap(([, code = '']) => {
    try {
      return [entryOf(JSON.parse(Buffer.from(code, 'base64').toString('utf8')))]
    } catch {
      return []
    }
  })
}

function entryOf(value: unknown): ScheduledEntry {
  if (!isFields(value)) throw new TypeError('no entry')
  const { job, at, command, environment, installation } = value
  if (typeof job !== 'string' || typeof at !== 'string' || typeof installation !== 'string') throw new TypeError('no entry')
  if (!isTexts(command) || !isFields(environment) || !isTexts(Object.values(environment))) throw new TypeError('no entry')
  checkJobName(job)
  return { job, calendar: parseSystemCalendar(at), command, environment: environment as Record<string, string>, installation }
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((word) => typeof word === 'string')
}
