import { isFields } from '../../model/fields.js'
import type { Report } from '../../model/report.js'
import { printable } from '../text/printable.js'
import { table } from '../text/table.js'
import { bytesText } from '../text/units.js'
import { fieldsOf, wordOf } from './session-table.js'

const untitled = [{ title: '' }, { title: '' }] as const
const layerColumns = [{ title: 'settings' }, { title: 'file' }, { title: 'says' }, { title: '' }] as const
const gateColumns = [{ title: 'gate' }, { title: 'value' }, { title: 'effect' }] as const

/** The text of `doctor`: the environment, then each store with its retention layers, gates, and our own folder. */
export function doctorText(report: Report): string {
  const head = table(untitled, Object.entries(report.summary).map(([name, value]) => [name, wordOf(value)]))
  return [head, ...fieldsOf(report.extra?.stores).map(storeText)].join('\n')
}

function storeText(store: Readonly<Record<string, unknown>>): string {
  const retention = isFields(store.retention) ? store.retention : {}
  const sidecar = isFields(store.sidecar) ? store.sidecar : {}
  const days = retention.days === null ? 'unknowable: nothing expires until the settings are mended' : `${periodText(retention.days)}, from ${wordOf(retention.source)}`
  const facts: string[][] = [
    ['format', wordOf(store.format)],
    ['sessions', wordOf(store.sessions)],
    ['newest activity', wordOf(store.newestActivity)],
    ['retention', days],
    ['running sessions', String(fieldsOf(store.live).length)],
    ['our folder', sidecar.exists === true ? `${wordOf(sidecar.path)}, mode ${wordOf(sidecar.mode)}` : 'none yet'],
    ['last run', lastRunText(sidecar.lastRun)],
  ]
  const layers = fieldsOf(retention.layers).map((layer) => [wordOf(layer.layer), wordOf(layer.file), saysText(layer), layer.wins === true ? 'counts' : ''])
  const gates = fieldsOf(store.gates).map((gate) => [wordOf(gate.gate), wordOf(gate.value), wordOf(gate.effect)])
  return `${printable(wordOf(store.root))}\n${table(untitled, facts, '  ')}\n${table(layerColumns, layers, '  ')}\n${table(gateColumns, gates, '  ')}`
}

function saysText(layer: Readonly<Record<string, unknown>>): string {
  if (layer.state === 'days') return periodText(layer.days)
  if (layer.state === 'unusable') return `cannot be used: ${wordOf(layer.reason)}`
  return layer.state === 'missing' ? 'no such file' : 'nothing'
}

/** One line on the last scheduled run, as its status file has it. */
export function lastRunText(status: unknown): string {
  if (!isFields(status)) return 'none'
  const removed = typeof status.bytes === 'number' ? `, ${bytesText(status.bytes)} removed` : ''
  return `${wordOf(status.job)} at ${wordOf(status.finishedAt)}, exit code ${wordOf(status.exitCode)}${removed}`
}

/** A retention period of a report: days, or that nothing expires. */
export function periodText(days: unknown): string {
  return days === 'never' ? 'kept for ever' : `${wordOf(days)} days`
}
