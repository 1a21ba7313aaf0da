import { isAtLeast, placeText, type Finding } from '../../model/finding.js'
import type { ErrorItem, Json, KeptItem, Report } from '../../model/report.js'
import { groupBy } from '../text/group.js'
import { printable } from '../text/printable.js'
import { severityWord, type Style } from '../text/style.js'
import { table } from '../text/table.js'
import { bytesText, countText } from '../text/units.js'
import { shownFindings, type Reporter, type ReportMeta } from './reporter.js'

/**
 * Plain text for people: what the command says of itself, findings by session, plan, kept, errors, counts, and as the last
 * line the command that mends what was found. `--quiet` leaves out what is no problem.
 */
export const text: Reporter = {
  write(report, meta) {
    const findings = shownFindings(report).filter((item) => !meta.quiet || isAtLeast(item.severity, 'warn'))
    const { body = '', closing = '' } = meta.text ?? {}
    const summary = body === '' && closing === '' && !meta.quiet ? summaryText(report.summary) : ''
    const blocks = [
      body,
      findingsText(findings, meta.style),
      remediesText(findings),
      planText(report, meta),
      meta.quiet ? '' : keptText(report.kept, meta),
      errorsText(report.errors),
      summary,
      meta.quiet ? '' : closing,
      report.next === undefined ? '' : `${printable(report.next)}\n`,
    ]
    return blocks.filter((block) => block !== '').join('\n')
  },
}

const ranks = { error: 0, warn: 1, info: 2, ignore: 3 } as const

function findingsText(findings: readonly Finding[], style: Style): string {
  const sections: string[] = []
  for (const [session, items] of groupBy(findings, (item) => item.session)) {
    const lines = items
      .toSorted((one, other) => ranks[one.severity] - ranks[other.severity])
      .map((item) => {
        const word = `${severityWord(item.severity, style)}${' '.repeat(5 - item.severity.length)}`
        const place = item.place === undefined ? '' : `\n         at ${printable(placeText(item.place))}`
        return `  ${word}  ${item.id}: ${printable(item.message)}${place}\n`
      })
    sections.push(`${session === undefined ? 'store' : `session ${printable(session)}`}\n${lines.join('')}`)
  }
  return sections.join('\n')
}

function remediesText(findings: readonly Finding[]): string {
  const remedies = new Map<string, string[]>()
  for (const item of findings) {
    if (item.remedy === undefined) continue
    const ids = remedies.get(item.remedy) ?? []
    if (!ids.includes(item.id)) ids.push(item.id)
    remedies.set(item.remedy, ids)
  }
  const rows = [...remedies].map(([remedy, ids]) => [ids.join(', '), remedy])
  return rows.length === 0 ? '' : `What mends it\n${table([{ title: '' }, { title: '' }], rows, '  ')}`
}

/** Rows and reasons that are listed; the rest is counted, unless `--verbose`. JSON has all of them. */
const mostRows = 100
const mostReasons = 5

function planText(report: Report, meta: ReportMeta): string {
  const { plan, applied } = report
  if (plan.length === 0) return ''
  const bytes = plan.reduce((sum, item) => sum + item.bytes, 0)
  const count = `${countText(plan.length, 'action')}, ${bytesText(bytes)}`
  const head = applied ? `Done: ${count}` : `Plan: ${count}; a preview, nothing was changed`
  // Most paths name their session.
  const withSession = plan.some((item) => item.session !== undefined && !item.path.includes(item.session))
  const columns = [{ title: 'action' }, ...(withSession ? [{ title: 'session' }] : []), { title: 'size', align: 'right' as const }, { title: 'path' }, { title: 'reason' }]
  const shown = meta.verbose ? plan : plan.slice(0, mostRows)
  const rows = shown.map((item) => [item.action, ...(withSession ? [item.session ?? ''] : []), bytesText(item.bytes), item.path, item.reason])
  return `${head}\n${table(columns, rows, '  ')}${moreText(plan.length - shown.length)}`
}

/** Kept sessions by reason; more than three of one reason are only counted, unless `--verbose`. */
function keptText(kept: readonly KeptItem[], meta: ReportMeta): string {
  if (kept.length === 0) return ''
  const groups = [...groupBy(kept, (item) => item.reason)]
  const shown = meta.verbose ? groups : groups.slice(0, mostReasons)
  const lines = shown.map(([reason, items]) => {
    const named = meta.verbose ? items : items.slice(0, 3)
    const more = items.length > named.length ? ` and ${String(items.length - named.length)} more` : ''
    return `  ${printable(reason)}: ${named.map((item) => printable(item.session)).join(', ')}${more}\n`
  })
  const rest = groups.slice(shown.length).reduce((sum, [, items]) => sum + items.length, 0)
  return `Kept: ${countText(kept.length, 'session')}\n${lines.join('')}${moreText(rest)}`
}

function moreText(count: number): string {
  return count > 0 ? `  and ${String(count)} more; --verbose lists them\n` : ''
}

function errorsText(errors: readonly ErrorItem[]): string {
  const lines = errors.map(
    (item) => `  ${printable(item.message)}${item.path === undefined ? '' : `: ${printable(item.path)}`} (${printable(item.code)})\n`,
  )
  return lines.length === 0 ? '' : `Failed: ${countText(errors.length, 'item')}\n${lines.join('')}`
}

function summaryText(summary: Report['summary']): string {
  return table(
    [{ title: '' }, { title: '' }],
    Object.entries(summary).map(([name, value]) => [wordsOf(name), valueText(value)]),
  )
}

/** `damagedLines` → `damaged lines`. */
function wordsOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
}

function valueText(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
