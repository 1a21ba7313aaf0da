import { BrakeError, type RewindAdminError } from '../../model/errors.js'
import { ExitCode, worstExit } from '../../model/exit-code.js'
import type { Finding } from '../../model/finding.js'
import type { ErrorItem, Json, KeptItem, PlanItem, Report } from '../../model/report.js'
import type { Store } from '../../formats/format.js'
import { pathOf, planSchemaVersion, sessionsRemoved, type Action, type Plan } from '../../plan/action.js'
import type { ApplyResult } from '../../plan/apply.js'
import { brakeCount, brakePercent, checkBrake, type BrakeLimit } from '../../plan/brake.js'
import type { Config } from '../../settings/config.js'

/** What a command would remove from one store, and all there is to say about it. */
export interface Removal {
  readonly plan: Plan
  readonly findings: readonly Finding[]
  /** Items that could not be looked at. The others are planned. */
  readonly errors: readonly ErrorItem[]
  readonly summary: Readonly<Record<string, Json>>
  /** Why the plan must not be applied as it is; a preview shows it all the same. */
  readonly refusal?: RewindAdminError
  /** What is done beyond the plan, for a preview: it can only be made ready at the moment of the act. */
  readonly also?: readonly PlanItem[]
  /** First activity of sessions that go, milliseconds since 1970, for tombstones. */
  readonly firstActivity: ReadonlyMap<string, number>
}

/** The parts of a report that one store contributes to. */
export type RemovalRows = Pick<Report, 'summary' | 'findings' | 'plan' | 'kept' | 'errors' | 'exitCode'>

/** An empty plan for a store. */
export function planFor(
  store: Store,
  command: string,
  now: number,
  parts: { readonly storeSessions: number; readonly actions: readonly Action[]; readonly kept: readonly KeptItem[] },
): Plan {
  const { format, root, sidecar } = store
  return { schemaVersion: planSchemaVersion, format, root, sidecar, createdAt: now, command, ...parts }
}

/**
 * How many sessions of a store may go at once: what the flag says, or the larger of the two that the configuration says
 * (design section 3, promise 5).
 */
export function brakeFor(total: number, limit: BrakeLimit | undefined, config?: Pick<Config, 'brake'>): BrakeLimit {
  if (limit !== undefined) return limit
  const { sessions, percent } = config?.brake ?? { sessions: brakeCount, percent: brakePercent }
  return { count: Math.max(sessions, Math.floor((total * percent) / 100)) }
}

/** The brake as a value, so that a preview can show the plan that it stops. */
export function brakeRefusal(plan: Plan, limit: BrakeLimit): BrakeError | undefined {
  try {
    checkBrake(sessionsRemoved(plan), plan.storeSessions, limit)
    return undefined
  } catch (error) {
    if (error instanceof BrakeError) return error
    throw error
  }
}

/** What a store contributes to a report: the plan, or what came of it when it was applied. */
export function removalRows(removal: Removal, result?: ApplyResult): RemovalRows {
  const { plan, findings, refusal } = removal
  const refused = refusal === undefined ? [] : [{ code: refusal.code, path: plan.root, message: messageOf(refusal) }]
  const errors = distinct([...removal.errors, ...(result === undefined ? refused : result.errors)])
  const items = result?.done ?? [...plan.actions.map(planItemOf), ...(removal.also ?? [])]
  const bytes = items.reduce((sum, item) => sum + item.bytes, 0)
  const done = result === undefined ? {} : { removedBytes: bytes }
  return {
    summary: { ...removal.summary, actions: items.length, bytes, ...done },
    findings,
    plan: items,
    kept: result?.kept ?? plan.kept,
    errors,
    exitCode: exitCodeOf(removal, result),
  }
}

/** One report for a command that was planned, or applied, on several stores. */
export function toReport(
  command: string,
  stores: readonly { readonly removal: Removal; readonly result?: ApplyResult }[],
  extra: { readonly runId?: string; readonly next?: string } = {},
): Report {
  const rows = stores.map(({ removal, result }) => removalRows(removal, result))
  const applied = stores.length > 0 && stores.every(({ result }) => result !== undefined)
  return {
    command,
    roots: stores.map(({ removal }) => removal.plan.root),
    applied,
    ...(extra.runId === undefined ? {} : { runId: extra.runId }),
    summary: rows.length === 1 ? (rows[0]?.summary ?? {}) : { stores: rows.map((row, index) => ({ root: stores[index]?.removal.plan.root ?? '', ...row.summary })) },
    findings: rows.flatMap((row) => row.findings),
    plan: rows.flatMap((row) => row.plan),
    kept: rows.flatMap((row) => row.kept),
    errors: rows.flatMap((row) => row.errors),
    exitCode: worstExit(rows.map((row) => row.exitCode)),
    ...(extra.next === undefined ? {} : { next: extra.next }),
  }
}

function planItemOf(action: Action): PlanItem {
  const session = action.session === undefined ? {} : { session: action.session }
  return { action: action.kind, path: pathOf(action), ...session, bytes: action.bytes, reason: action.reason }
}

function exitCodeOf({ errors, findings, refusal }: Removal, result: ApplyResult | undefined): ExitCode {
  const codes: ExitCode[] = [result?.exitCode ?? refusal?.exitCode ?? ExitCode.done]
  if (errors.length > 0) codes.push(ExitCode.partial)
  if (findings.some((found) => found.severity === 'error' && found.id === 'clock-looks-wrong')) codes.push(ExitCode.findings)
  return worstExit(codes)
}

/** What was seen when the plan was made may be said again when it is applied. */
function distinct(errors: readonly ErrorItem[]): ErrorItem[] {
  return [...new Map(errors.map((error) => [`${error.code} ${error.path ?? ''} ${error.message}`, error])).values()]
}

function messageOf(error: RewindAdminError): string {
  return error.hint === undefined ? error.message : `${error.message}; ${error.hint}`
}
