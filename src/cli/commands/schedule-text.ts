import { isFields } from '../../model/fields.js'
import type { Report } from '../../model/report.js'
import { printable } from '../text/printable.js'
import { table } from '../text/table.js'
import { lastRunText } from './doctor-text.js'
import { fieldsOf, wordOf } from './session-table.js'

const untitled = [{ title: '' }, { title: '' }] as const

/** The text of `schedule install`. */
export function installText(report: Report): string {
  const { job, scheduler, where, at, next, installation } = report.summary
  const moved = Array.isArray(report.extra?.moved) ? report.extra.moved.map(wordOf) : []
  const facts = [
    ['job', wordOf(job)],
    ['scheduler', wordOf(scheduler)],
    ['where', wordOf(where)],
    ['at', wordOf(at)],
    ['next', wordOf(next)],
    ['command', commandText(report.extra?.commandLine)],
    ...(moved.length > 0 ? [['moved along', moved.join(', ')]] : []),
  ]
  const first = installation === 'new' ? 'The first run on each store is a preview; the next one acts.\n' : ''
  return `${table(untitled, facts)}${first}`
}

/** The text of `schedule status`. */
export function statusText(report: Report): string {
  const entries = fieldsOf(report.extra?.entries)
  if (entries.length === 0) return 'Nothing is scheduled.\n'
  const lasts = fieldsOf(report.extra?.lastRuns).map((row) => [wordOf(row.root), lastRunText(row.lastRun)])
  return [...entries.map((entry) => entryText(entry)), lasts.length === 0 ? '' : `Last runs\n${table(untitled, lasts, '  ')}`, lingerText(report)]
    .filter((part) => part !== '')
    .join('\n')
}

/** The text of `schedule remove`. */
export function removeText(report: Report): string {
  const rows = fieldsOf(report.extra?.removed).map((row) => [wordOf(row.job), wordOf(row.scheduler), wordOf(row.where)])
  return rows.length === 0 ? '' : `Removed\n${table([{ title: 'job' }, { title: 'scheduler' }, { title: 'where' }], rows, '  ')}`
}

function entryText(entry: Readonly<Record<string, unknown>>): string {
  const pending = Array.isArray(entry.firstRunPending) ? entry.firstRunPending.map(wordOf) : []
  const facts = [
    ['scheduler', `${wordOf(entry.scheduler)}, ${wordOf(entry.where)}`],
    ['at', wordOf(entry.at)],
    ['next', wordOf(entry.next)],
    ['active', entry.active === null ? 'unknown' : entry.active === true ? 'yes' : 'no'],
    ['command', commandText(entry.commandLine)],
    ...(pending.length > 0 ? [['next is a preview of', pending.join(', ')]] : []),
  ]
  return `${printable(wordOf(entry.job))}\n${table(untitled, facts, '  ')}`
}

function lingerText(report: Report): string {
  const lingering = isFields(report.extra) ? report.extra.lingering : undefined
  return lingering === true ? 'Lingering is on: timers run while you are logged out.\n' : ''
}

function commandText(words: unknown): string {
  return Array.isArray(words) ? words.map((word) => (/\s/.test(wordOf(word)) ? JSON.stringify(word) : wordOf(word))).join(' ') : ''
}
