import type { Finding, Severity } from '../../model/finding.js'
import type { Report } from '../../model/report.js'
import type { TextParts } from '../commands/command.js'
import type { Style } from '../text/style.js'

export type ReporterName = 'text' | 'json' | 'ndjson' | 'sarif' | 'junit' | 'github'

/** What a reporter needs to know of the run besides its report. */
export interface ReportMeta {
  readonly version: string
  /** Milliseconds since 1970. */
  readonly startedAt: number
  readonly durationMs: number
  readonly style: Style
  readonly quiet: boolean
  readonly verbose: boolean
  /** What the command itself writes into a text report. */
  readonly text?: TextParts
}

/** Turns a report into the text for stdout, line end included. Pure. */
export interface Reporter {
  write(report: Report, meta: ReportMeta): string
}

/** The findings of a report without those whose severity is `ignore`. */
export function shownFindings(report: Report): Finding[] {
  return report.findings.filter((item) => item.severity !== 'ignore')
}

/** How many of `findings` have this severity. */
export function countOf(findings: readonly Finding[], severity: Severity): number {
  return findings.reduce((count, item) => (item.severity === severity ? count + 1 : count), 0)
}
