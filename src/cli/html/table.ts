import { bytesText, groupDigits } from '../text/units.js'
import { html, type Markup } from './markup.js'

/** How the cells of a column are shown, and what they are sorted by. Times are milliseconds since 1970. */
interface HtmlColumn {
  readonly title: string
  /** `name`: the head of its row; `words`: long text; left out: short text. */
  readonly kind?: 'name' | 'words' | 'bytes' | 'share' | 'number' | 'time' | 'severity'
}

type HtmlCell = string | number | undefined

export interface HtmlTable {
  readonly id: string
  /** What the table holds, for those who do not see it. */
  readonly label: string
  readonly columns: readonly HtmlColumn[]
  readonly rows: readonly (readonly HtmlCell[])[]
  /** The most rows that are shown; the rest is counted. */
  readonly most?: number
}

const usualMost = 500

/** A table that can be sorted, in a box of its own that scrolls sideways where the page is narrow, with the keyboard too. */
export function dataTable({ id, label, columns, rows, most = usualMost }: HtmlTable): Markup {
  const shown = rows.slice(0, most)
  const largest = columns.map((_, index) => Math.max(1, ...shown.map((row) => Number(row[index] ?? 0))))
  const body = shown.map(
    (row) => html`<tr>${columns.map((column, index) => cell(column, row[index], largest[index] ?? 1))}</tr>
`,
  )
  const more = rows.length > shown.length ? html`<p class="soft">and ${groupDigits(rows.length - shown.length)} more; <code>rewind-admin report --json</code> has all of them</p>` : undefined
  return html`<div class="scroll" role="group" aria-label="${label}" tabindex="0"><table id="${id}" data-sortable><caption class="unseen">${label}</caption>
<thead><tr>${columns.map(({ title, kind }) => html`<th scope="col"${isRight(kind) ? html` class="number"` : undefined}>${title}</th>`)}</tr></thead>
<tbody>
${body}</tbody></table></div>${more}`
}

function cell({ kind }: HtmlColumn, value: HtmlCell, largest: number): Markup {
  switch (kind) {
    case 'name':
      return html`<th scope="row"><code>${value ?? '(unknown)'}</code></th>`
    case 'bytes':
      return html`<td class="number" data-value="${Number(value ?? 0)}">${bytesText(Number(value ?? 0))}</td>`
    case 'share':
      return html`<td class="number" data-value="${Number(value ?? 0)}">${bytesText(Number(value ?? 0))}${shareBar(Number(value ?? 0) / largest)}</td>`
    case 'number':
      return html`<td class="number" data-value="${Number(value ?? 0)}">${groupDigits(Number(value ?? 0))}</td>`
    case 'time':
      return html`<td class="time" data-value="${Number(value ?? 0)}">${timeMarkup(Number(value ?? 0))}</td>`
    case 'severity':
      return html`<td class="${value}">${value}</td>`
    case 'words':
      return html`<td class="words">${value}</td>`
    case undefined:
    default:
      return html`<td>${value}</td>`
  }
}

function isRight(kind: HtmlColumn['kind']): boolean {
  return kind === 'bytes' || kind === 'share' || kind === 'number'
}

function shareBar(share: number): Markup {
  return html`<svg class="share" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="6"/><rect class="part" width="${(share * 100).toFixed(1)}" height="6"/></svg>`
}

/** A time in UTC, to the minute; a dash for none. */
export function timeMarkup(time: number): Markup {
  if (time === 0) return html`–`
  const iso = new Date(time).toISOString()
  return html`<time datetime="${iso}">${iso.slice(0, 16).replace('T', ' ')}</time>`
}

/** Milliseconds since 1970 of an ISO time, 0 for none. */
export function timeOf(iso: string | undefined): number {
  const time = Date.parse(iso ?? '')
  return Number.isNaN(time) ? 0 : time
}

/** The day of an ISO time. */
export function dayText(iso: string): string {
  return iso.slice(0, 10)
}
