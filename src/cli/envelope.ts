import { type Finding, placeText } from '../model/finding.js'
import type { ErrorItem, Json, KeptItem, PlanItem, Report } from '../model/report.js'
import { shownFindings, type ReportMeta } from './reporters/reporter.js'

/** A finding in the JSON contract; its place is one string, `path` or `path#offset`. */
interface FindingJson {
  readonly id: string
  readonly severity: string
  readonly session?: string
  readonly place?: string
  readonly message: string
  readonly remedy?: string
}

/** The one JSON object of a run (design section 5). A command's own fields follow after `exitCode`. */
export interface Envelope {
  readonly schemaVersion: 1
  readonly tool: 'rewind-admin'
  readonly version: string
  readonly command: string
  /** ISO 8601, UTC. */
  readonly startedAt: string
  readonly durationMs: number
  /** The root when there is one, else all of them. */
  readonly root: string | readonly string[]
  readonly applied: boolean
  readonly runId?: string
  readonly summary: Readonly<Record<string, Json>>
  readonly findings: readonly FindingJson[]
  readonly plan: readonly PlanItem[]
  readonly kept: readonly KeptItem[]
  readonly errors: readonly ErrorItem[]
  readonly exitCode: number
  readonly [extra: string]: unknown
}

/** Puts a report into the JSON contract. Throws when a command's own field has the name of a common one. */
export function envelopeOf(report: Report, meta: Pick<ReportMeta, 'version' | 'startedAt' | 'durationMs'>): Envelope {
  const [root] = report.roots
  const envelope: Envelope = {
    schemaVersion: 1,
    tool: 'rewind-admin',
    version: meta.version,
    command: report.command,
    startedAt: new Date(meta.startedAt).toISOString(),
    durationMs: meta.durationMs,
    root: root !== undefined && report.roots.length === 1 ? root : report.roots,
    applied: report.applied,
    ...(report.runId === undefined ? {} : { runId: report.runId }),
    summary: report.summary,
    findings: shownFindings(report).map(findingJson),
    plan: report.plan.map(planJson),
    kept: report.kept.map(({ session, reason }) => ({ session, reason })),
    errors: report.errors.map(errorJson),
    exitCode: report.exitCode,
  }
  for (const name of Object.keys(report.extra ?? {})) {
    if (name in envelope || name === 'runId') throw new Error(`the field ${name} of ${report.command} has the name of a common one`)
  }
  return { ...envelope, ...report.extra }
}

/** A finding with its keys in the order of the contract. */
function findingJson(item: Finding): FindingJson {
  return {
    id: item.id,
    severity: item.severity,
    ...(item.session === undefined ? {} : { session: item.session }),
    ...(item.place === undefined ? {} : { place: placeText(item.place) }),
    message: item.message,
    ...(item.remedy === undefined ? {} : { remedy: item.remedy }),
  }
}

function planJson(item: PlanItem): PlanItem {
  return {
    action: item.action,
    path: item.path,
    ...(item.session === undefined ? {} : { session: item.session }),
    bytes: item.bytes,
    reason: item.reason,
  }
}

function errorJson(item: ErrorItem): ErrorItem {
  return { code: item.code, ...(item.path === undefined ? {} : { path: item.path }), message: item.message }
}
