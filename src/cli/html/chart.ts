import type { HistoryEntry } from '../../operations/history.js'
import { bytesText, countText, durationText } from '../text/units.js'
import { html, type Markup } from './markup.js'
import { dataTable, dayText, timeOf } from './table.js'

const width = 720
const height = 240
const edge = { left: 96, right: 8, top: 24, bottom: 36 }

/** Runs that are drawn; the table beside the chart has them too. */
const mostBars = 60

/** How a store grew over the last runs: bars, their meaning in words, and the same numbers as a table. */
export function growthChart(history: readonly HistoryEntry[], id: string): Markup {
  const shown = history.slice(-mostBars)
  const [first] = shown
  const last = shown.at(-1)
  if (first === undefined || last === undefined) {
    return html`<p class="soft">No run was recorded yet. Each <code>rewind-admin run nightly --apply</code> adds one.</p>`
  }
  const words = growthWords(first, last, shown.length)
  return html`<figure>
<svg class="chart" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="${id}-title ${id}-words">
<title id="${id}-title">Size after each run</title><desc id="${id}-words">${words}</desc>
${axis(scaleOf(shown))}${bars(shown, scaleOf(shown))}
<text x="${edge.left}" y="${height - 10}">${dayText(first.time)}</text>
${shown.length > 1 ? html`<text x="${width - edge.right}" y="${height - 10}" text-anchor="end">${dayText(last.time)}</text>` : undefined}
</svg>
<figcaption><span class="key store"></span>sessions <span class="key own"></span>our own folder with the trash<br>${words}</figcaption>
</figure>
<details><summary>The same as a table</summary>${historyTable(shown, `${id}-table`)}</details>`
}

/** What the chart shows, for those who do not see it. */
export function growthWords(first: HistoryEntry, last: HistoryEntry, runs: number): string {
  const now = `${bytesText(last.bytes)} in ${countText(last.sessions, 'session')}, and ${bytesText(last.ownBytes)} in our own folder`
  if (runs < 2) return `After the only recorded run: ${now}.`
  const change = last.bytes - first.bytes
  const way = change === 0 ? 'unchanged' : `${change > 0 ? 'up' : 'down'} ${bytesText(Math.abs(change))}`
  const over = durationText(Date.parse(last.time) - Date.parse(first.time))
  return `Over the last ${String(runs)} recorded runs (${over}): sessions ${way}, from ${bytesText(first.bytes)}. After the last one: ${now}.`
}

function historyTable(shown: readonly HistoryEntry[], id: string): Markup {
  const columns = [
    { title: 'run', kind: 'time' },
    { title: 'job' },
    { title: 'exit code', kind: 'number' },
    { title: 'sessions', kind: 'number' },
    { title: 'backups', kind: 'number' },
    { title: 'bytes', kind: 'bytes' },
    { title: 'own folder', kind: 'bytes' },
    { title: 'removed sessions', kind: 'number' },
    { title: 'removed', kind: 'bytes' },
  ] as const
  const rows = shown
    .toReversed()
    .map((run) => [timeOf(run.time), run.job, run.exitCode, run.sessions, run.backups, run.bytes, run.ownBytes, run.removedSessions, run.removedBytes])
  return dataTable({ id, label: 'Size after each run', columns, rows })
}

interface Scale {
  readonly step: number
  readonly top: number
}

/** Three to five even steps of 1, 2 or 5 times a power of ten, so that the marks are round numbers of decimal units. */
function scaleOf(shown: readonly HistoryEntry[]): Scale {
  const most = Math.max(1, ...shown.map(({ bytes, ownBytes }) => bytes + ownBytes))
  const power = 10 ** Math.floor(Math.log10(most / 5))
  const step = Math.max(1, [1, 2, 5, 10].map((factor) => factor * power).find((size) => most / size <= 5) ?? power * 10)
  return { step, top: Math.ceil(most / step) * step }
}

function axis({ step, top }: Scale): Markup[] {
  return Array.from({ length: Math.round(top / step) + 1 }, (_, index) => {
    const y = yOf(index * step, top)
    return html`<line x1="${edge.left}" x2="${width - edge.right}" y1="${y}" y2="${y}"/><text x="${edge.left - 8}" y="${Number(y) + 4}" text-anchor="end">${bytesText(index * step)}</text>`
  })
}

function bars(shown: readonly HistoryEntry[], { top }: Scale): Markup[] {
  const room = (width - edge.left - edge.right) / Math.max(shown.length, 12)
  const wide = (room * 0.72).toFixed(2)
  return shown.map((run, index) => {
    const x = (edge.left + room * (index + 0.14)).toFixed(2)
    const base = Number(yOf(0, top))
    const middle = Number(yOf(run.bytes, top))
    const high = Number(yOf(run.bytes + run.ownBytes, top))
    return html`<g><title>${dayText(run.time)}: ${bytesText(run.bytes)}, own folder ${bytesText(run.ownBytes)}</title><rect class="store" x="${x}" y="${middle}" width="${wide}" height="${(base - middle).toFixed(2)}"/><rect class="own" x="${x}" y="${high}" width="${wide}" height="${(middle - high).toFixed(2)}"/></g>`
  })
}

function yOf(bytes: number, top: number): string {
  return (height - edge.bottom - ((height - edge.top - edge.bottom) * bytes) / top).toFixed(2)
}
