import { worstExit } from '../model/exit-code.js'
import type { Json, Report } from '../model/report.js'

/** One report for a command that ran on several stores, each with a report of its own. Numbers of summaries are added up. */
export function mergeReports(command: string, reports: readonly Report[]): Report {
  const [only] = reports
  if (only !== undefined && reports.length === 1) return only
  const summary: Record<string, Json> = {}
  for (const report of reports) {
    for (const [name, value] of Object.entries(report.summary)) {
      const known = summary[name]
      summary[name] = typeof known === 'number' && typeof value === 'number' ? known + value : (known ?? value)
    }
  }
  return {
    command,
    roots: reports.flatMap((report) => report.roots),
    applied: reports.some((report) => report.applied),
    summary,
    findings: reports.flatMap((report) => report.findings),
    plan: reports.flatMap((report) => report.plan),
    kept: reports.flatMap((report) => report.kept),
    errors: reports.flatMap((report) => report.errors),
    exitCode: worstExit(reports.map((report) => report.exitCode)),
  }
}
