import { isAbsolute, join } from 'node:path'
import pLimit from 'p-limit'
import { ExitCode, worstExit } from '../../model/exit-code.js'
import { durationText } from '../../model/expiry.js'
import type { ErrorItem, Report } from '../../model/report.js'
import { stoppedBy } from '../../plan/outcome.js'
import { errorWords } from '../error-words.js'
import type { Job } from '../run/job.js'
import { openHome, type Home } from './home.js'
import type { FleetRoot } from './roots.js'
import type { Shard } from './shard.js'

/** The code of a home whose time was over. */
const timeLimit = 'TIME_LIMIT'

/** One home, as it went. */
interface HomeRow {
  readonly root: string
  readonly state: 'done' | 'failed' | 'left out'
  readonly exitCode: ExitCode
  readonly durationMs: number
  /** The name under which `trash restore` brings back what was removed there. */
  readonly runId?: string
  readonly actions: number
  readonly bytes: number
  readonly findings: number
  readonly kept: number
  readonly message?: string
}

/** A home with all that is reported of it. */
interface HomeResult {
  readonly row: HomeRow
  readonly report?: Report
  readonly errors: readonly ErrorItem[]
}

export interface FleetContext {
  readonly apply: boolean
  /** Homes that are worked on at the same time. */
  readonly parallel: number
  /** How long one home may take, in milliseconds; then it is stopped after the item in work. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal
  /** The part of the fleet that the roots are, for the report. */
  readonly shard?: Shard | undefined
  /** Milliseconds since any fixed moment. */
  monotonic(): number
  progress?(done: number, total: number): void
  /** Runs the job in one home. It must settle soon after `stop` is aborted. */
  run(home: Home, stop: AbortSignal): Promise<Report>
}

/**
 * Runs a job in many homes, each with its own lock, settings, result and time limit. One that fails never stops the others. A home
 * has failed when its job ended with anything but 0 or 1 (findings); what a pattern found and is no store is left out. The report
 * has a row for each home, and findings, actions and errors of all with absolute paths. Exit code 3 when a home failed, 1 when
 * there are findings, that of the signal when one stopped the run.
 */
export async function runFleet(roots: readonly FleetRoot[], job: Job, context: FleetContext): Promise<Report> {
  let done = 0
  const results = await pLimit(context.parallel).map(roots, async (root) => {
    const result = await runRoot(root, context)
    done += 1
    context.progress?.(done, roots.length)
    return result
  })
  const rows = results.map(({ row }) => row)
  const reports = results.flatMap(({ report }) => (report === undefined ? [] : [absolute(report)]))
  // What was previewed is never listed among what was done.
  const plan = reports.filter((report) => !isFirstRun(report)).flatMap((report) => report.plan)
  const previewed = reports.filter(isFirstRun)
  const count = (state: HomeRow['state']): number => rows.filter((row) => row.state === state).length
  const { shard, signal } = context
  const codes: ExitCode[] = rows.map((row) => (row.state === 'failed' ? ExitCode.partial : row.exitCode))
  return {
    command: 'run',
    roots: rows.map(({ root }) => root),
    applied: context.apply,
    summary: {
      job: job.name,
      homes: rows.length,
      done: count('done'),
      failed: count('failed'),
      leftOut: count('left out'),
      ...(previewed.length === 0 ? {} : { previewed: previewed.length }),
      actions: plan.length,
      bytes: plan.reduce((sum, item) => sum + item.bytes, 0),
    },
    findings: reports.flatMap((report) => report.findings),
    plan,
    kept: [],
    errors: results.flatMap(({ errors }) => errors),
    exitCode: worstExit(signal?.aborted === true ? [...codes, stoppedBy(signal)] : codes),
    extra: {
      job: job.name,
      ...(shard === undefined ? {} : { shard: `${String(shard.number)}/${String(shard.of)}` }),
      homes: rows.map((row) => ({ ...row })),
      ...(previewed.length === 0 ? {} : { firstRun: { roots: previewed.flatMap((report) => report.roots), plan: previewed.flatMap((report) => report.plan.map((item) => ({ ...item }))) } }),
    },
    ...(previewed.length === 0 ? {} : { next: `The first scheduled run on a home is a preview; the next one acts on ${String(previewed.length)} more.` }),
  }
}

async function runRoot(root: FleetRoot, context: FleetContext): Promise<HomeResult> {
  const start = context.monotonic()
  const elapsed = (): number => Math.round(context.monotonic() - start)
  if (context.signal?.aborted === true) return leftOut(root, 'the run was stopped before', 0)
  if (root.problem !== undefined) return failed(root.path, root.problem, ExitCode.partial, 0)
  const limit = new AbortController()
  const timer = setTimeout(() => {
    limit.abort()
  }, context.timeoutMs)
  const tooLong = `it took longer than ${durationText(context.timeoutMs)}`
  try {
    const stop = context.signal === undefined ? limit.signal : AbortSignal.any([limit.signal, context.signal])
    const report = await context.run(openHome(root), stop)
    if (!limit.signal.aborted) return ended(root.path, report, elapsed())
    const message = `${tooLong}, and was stopped after the item in work`
    return failed(root.path, { code: timeLimit, message }, ExitCode.partial, elapsed(), report)
  } catch (error) {
    const { code, exitCode, message } = errorWords(error)
    if (limit.signal.aborted) return failed(root.path, { code: timeLimit, message: `${tooLong}: ${message}` }, ExitCode.partial, elapsed())
    return code === 'NO_STORE' && !root.named ? leftOut(root, message, elapsed()) : failed(root.path, { code, message }, exitCode, elapsed())
  } finally {
    clearTimeout(timer)
  }
}

function ended(root: string, report: Report, durationMs: number): HomeResult {
  const { exitCode, errors } = report
  const good = exitCode === ExitCode.done || exitCode === ExitCode.findings
  const [first] = errors
  const would = isFirstRun(report) ? { message: `a preview, as it is the first scheduled run here: ${String(report.plan.length)} actions would have been taken` } : {}
  const message = good || first === undefined ? would : { message: first.message }
  const row: HomeRow = { root, state: good ? 'done' : 'failed', exitCode, durationMs, ...countsOf(report), ...message }
  // A home that failed is named, also when nothing says why.
  const unexplained = good || errors.length > 0 ? [] : [{ code: 'FAILED', path: root, message: `ended with exit code ${String(exitCode)}` }]
  return { row, report, errors: [...errors.map((error) => ({ ...error, path: pathIn(root, error.path) })), ...unexplained] }
}

function failed(root: string, { code, message }: { readonly code: string; readonly message: string }, exitCode: ExitCode, durationMs: number, report?: Report): HomeResult {
  const row: HomeRow = { root, state: 'failed', exitCode, durationMs, ...countsOf(report), message }
  return { row, ...(report === undefined ? {} : { report }), errors: [{ code, path: root, message }] }
}

function leftOut({ path }: FleetRoot, message: string, durationMs: number): HomeResult {
  return { row: { root: path, state: 'left out', exitCode: ExitCode.done, durationMs, ...countsOf(undefined), message }, errors: [] }
}

/** True for a home on which a schedule did not act, since it had not been there before. */
function isFirstRun(report: Report): boolean {
  return report.extra?.firstRun !== undefined
}

function countsOf(report: Report | undefined): Pick<HomeRow, 'runId' | 'actions' | 'bytes' | 'findings' | 'kept'> {
  const { runId, findings = [], kept = [] } = report ?? {}
  const plan = report === undefined || isFirstRun(report) ? [] : report.plan
  const bytes = plan.reduce((sum, item) => sum + item.bytes, 0)
  return { ...(runId === undefined ? {} : { runId }), actions: plan.length, bytes, findings: findings.length, kept: kept.length }
}

/** The report of one home, whose paths are relative to its root, for a report of many. */
function absolute(report: Report): Report {
  const [root = ''] = report.roots
  return {
    ...report,
    findings: report.findings.map((found) => (found.place === undefined ? found : { ...found, place: { ...found.place, path: pathIn(root, found.place.path) } })),
    plan: report.plan.map((item) => ({ ...item, path: pathIn(root, item.path) })),
  }
}

function pathIn(root: string, path: string | undefined): string {
  if (path === undefined) return root
  return isAbsolute(path) ? path : join(root, path)
}
