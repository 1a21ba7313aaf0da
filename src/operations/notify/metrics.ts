import { join } from 'node:path'
import { atomicWrite } from '../../fs/atomic-write.js'
import { systemErrorCode } from '../../model/errors.js'
import type { Report } from '../../model/report.js'
import { newToken } from '../../plan/run-id.js'

/** When a job ran: milliseconds since 1970. */
export interface RunTimes {
  readonly startedAt: number
  readonly finishedAt: number
}

interface Metric {
  readonly name: string
  readonly help: string
  readonly value: number
  readonly labels?: Readonly<Record<string, string>>
}

/** The file of a job in the folder of the textfile collector: one for each, so that none overwrites another. */
function metricsFile(folder: string, job: string): string {
  return join(folder, `rewind_admin_${job.replace(/[^A-Za-z0-9_-]/g, '_')}.prom`)
}

/**
 * Writes the numbers of a run in the text format of Prometheus, for node_exporter's textfile collector: atomically, and readable
 * by all, since another user collects them. No names of sessions and no paths are in it. Gives back what went wrong.
 */
export function writeMetrics(folder: string, job: string, report: Report, times: RunTimes): string | undefined {
  const file = metricsFile(folder, job)
  try {
    atomicWrite(file, Buffer.from(metricsText(job, report, times)), { token: newToken(), mode: 0o644 })
    return undefined
  } catch (error) {
    return `the metrics could not be written to ${file} (${systemErrorCode(error) ?? 'unknown error'})`
  }
}

/** The text itself. Every metric is a gauge: it says how the last run went. */
export function metricsText(job: string, report: Report, { startedAt, finishedAt }: RunTimes): string {
  const count = (severity: string): number => report.findings.filter((found) => found.severity === severity).length
  const homes = (['done', 'failed', 'leftOut'] as const).flatMap((state): Metric[] => {
    const value = report.summary.homes === undefined ? undefined : report.summary[state]
    return typeof value === 'number' ? [{ name: 'last_run_homes', help: 'Homes that the last run worked on, by result.', value, labels: { result: state === 'leftOut' ? 'left_out' : state } }] : []
  })
  const metrics: Metric[] = [
    { name: 'last_run_start_timestamp_seconds', help: 'When the last run began.', value: startedAt / 1000 },
    { name: 'last_run_timestamp_seconds', help: 'When the last run ended.', value: finishedAt / 1000 },
    { name: 'last_run_duration_seconds', help: 'How long the last run took.', value: (finishedAt - startedAt) / 1000 },
    { name: 'last_run_exit_code', help: 'Exit code of the last run; see rewind-admin help exit-codes.', value: report.exitCode },
    { name: 'last_run_success', help: '1 when the last run ended with exit code 0, else 0.', value: report.exitCode === 0 ? 1 : 0 },
    { name: 'last_run_applied', help: '1 when the last run acted, 0 when it was a preview.', value: report.applied ? 1 : 0 },
    { name: 'last_run_actions', help: 'Removals that the last run did or planned.', value: report.plan.length },
    { name: 'last_run_bytes', help: 'Bytes that these removals free.', value: report.plan.reduce((sum, item) => sum + item.bytes, 0) },
    { name: 'last_run_errors', help: 'Items that failed in the last run.', value: report.errors.length },
    ...['error', 'warn', 'info'].map((severity) => ({ name: 'last_run_findings', help: 'Findings of the last run, by severity.', value: count(severity), labels: { severity } })),
    ...homes,
  ]
  const known = new Set<string>()
  return metrics
    .map((metric) => {
      const head = known.has(metric.name) ? '' : `# HELP rewind_admin_${metric.name} ${metric.help}\n# TYPE rewind_admin_${metric.name} gauge\n`
      known.add(metric.name)
      return `${head}rewind_admin_${metric.name}${labelsText({ job, ...metric.labels })} ${String(metric.value)}\n`
    })
    .join('')
}

function labelsText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return `{${pairs.join(',')}}`
}

/** As the text format wants label values. */
function escaped(value: string): string {
  return value.replaceAll('\\', String.raw`\\`).replaceAll('"', String.raw`\"`).replaceAll('\n', String.raw`\n`)
}
