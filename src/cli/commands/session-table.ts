import { isFields } from '../../model/fields.js'
import type { Report } from '../../model/report.js'
import type { Column } from '../text/table.js'
import { bytesText } from '../text/units.js'

export const sessionColumns: readonly Column[] = [
  { title: 'session' },
  { title: 'last activity' },
  { title: 'checkpoints', align: 'right' },
  { title: 'backups', align: 'right' },
  { title: 'bytes', align: 'right' },
  { title: '' },
  { title: 'project' },
]

/** Rows of a table of the sessions in `report.extra.sessions`. */
export function sessionRows(report: Report): string[][] {
  return fieldsOf(report.extra?.sessions).map((row) => [
    wordOf(row.id),
    wordOf(row.lastActivity).slice(0, 16).replace('T', ' '),
    wordOf(row.checkpoints),
    wordOf(row.backups),
    bytesText(Number(row.bytes)),
    row.live === true ? 'live' : '',
    wordOf(row.project),
  ])
}

/** The objects of a JSON list. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isFields) : []
}

/** A JSON value in a table cell: null is a dash. */
export function wordOf(value: unknown): string {
  if (value === null || value === undefined) return '-'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
