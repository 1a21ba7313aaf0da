import { isFields } from '../../model/fields.js'
import type { Report } from '../../model/report.js'
import { printable } from '../text/printable.js'
import { table } from '../text/table.js'
import { bytesText, countText, durationText } from '../text/units.js'
import { fieldsOf, wordOf } from './session-table.js'

const stepColumns = [{ title: 'step' }, { title: 'result' }, { title: 'time', align: 'right' }, { title: '' }] as const
const homeColumns = [{ title: 'root' }, { title: 'result' }, { title: 'exit', align: 'right' }, { title: 'time', align: 'right' }, { title: 'actions', align: 'right' }, { title: 'size', align: 'right' }, { title: '' }] as const
const jobColumns = [{ title: 'step' }, { title: 'does' }, { title: 'when' }] as const

/** The steps of a job, store by store. */
export function stepsText(report: Report): string {
  const rows = fieldsOf(report.extra?.steps)
  return report.roots
    .map((root) => {
      const own = rows.filter((row) => row.root === root)
      const cells = own.map((row) => [wordOf(row.step), wordOf(row.state), durationText(Number(row.durationMs)), detailText(row)])
      return `${printable(root)}\n${table(stepColumns, cells, '  ')}`
    })
    .join('\n')
}

function detailText({ message, summary }: Readonly<Record<string, unknown>>): string {
  const numbers = Object.entries(isFields(summary) ? summary : {})
    .filter(([, value]) => typeof value === 'number' && value > 0)
    .map(([name, value]) => `${name} ${wordOf(value)}`)
  return [...(typeof message === 'string' ? [message] : []), ...numbers].join(', ')
}

/** A row for each home of a fleet, and how many there are of each kind. */
export function homesText(report: Report): string {
  const rows = fieldsOf(report.extra?.homes)
  const cells = rows.map((row) => [
    wordOf(row.root),
    wordOf(row.state),
    wordOf(row.exitCode),
    durationText(Number(row.durationMs)),
    wordOf(row.actions),
    bytesText(Number(row.bytes)),
    typeof row.message === 'string' ? row.message : '',
  ])
  const { done, failed, leftOut } = report.summary
  const shard = report.extra?.shard === undefined ? '' : `, part ${wordOf(report.extra.shard)} of the fleet`
  return `${table(homeColumns, cells)}\n${countText(rows.length, 'home')}${shard}: ${wordOf(done)} done, ${wordOf(failed)} failed, ${wordOf(leftOut)} left out\n`
}

/** Every job with its steps and their conditions. */
export function jobsText(report: Report): string {
  return fieldsOf(report.extra?.jobs)
    .map((job) => {
      const cells = fieldsOf(job.steps).map((step) => [wordOf(step.step), wordOf(step.does), typeof step.when === 'string' ? step.when : 'always'])
      return `${printable(wordOf(job.name))}: ${wordOf(job.describe)}\n${table(jobColumns, cells, '  ')}`
    })
    .join('\n')
}
