import type { Store } from '../../formats/format.js'
import { ExitCode, worstExit } from '../../model/exit-code.js'
import type { Finding } from '../../model/finding.js'
import type { ErrorItem, Json, KeptItem, PlanItem, Report } from '../../model/report.js'
import { stoppedBy } from '../../plan/outcome.js'
import { newToken } from '../../plan/run-id.js'
import { lockStore } from '../../plan/sidecar.js'
import { errorWords } from '../error-words.js'
import { recordHistory } from '../history.js'
import { fingerprint } from '../verify/options.js'
import { reasonToLeaveOut } from './conditions.js'
import { forgetFailure, heldBack, holdFinding, holding, noteFailure, type Failure } from './hold.js'
import { isRemoving, type Job, type JobStep, type StepName } from './job.js'
import { namesOnce } from './names-once.js'
import { statusFile, writeStatus } from './status-file.js'
import { steps, unfinished, type JobContext, type StepResult, type StoreState } from './steps.js'

/** One step of a job on one store, as it went. */
interface StepRow {
  readonly step: StepName
  readonly root: string
  readonly state: 'done' | 'failed' | 'left out'
  readonly exitCode: ExitCode
  readonly durationMs: number
  readonly summary: Readonly<Record<string, Json>>
  readonly message?: string
}

interface Gathered {
  readonly rows: StepRow[]
  readonly findings: Finding[]
  readonly plan: PlanItem[]
  readonly kept: KeptItem[]
  readonly errors: ErrorItem[]
  readonly codes: ExitCode[]
}

/**
 * Runs a job on stores, one after the other, step by step. A failed step does not stop the next one unless the next one
 * rests on it; a store that fails does not stop the others (design section 3, promise 9). Without `apply` nothing is
 * written anywhere, the sidecar included. With it the store's lock is held, and the result is left in its status file; a failure
 * that has to be looked at holds back what later runs would remove, see `heldBack`. A signal ends the job after the item in
 * work; stores that come later are not begun.
 */
export async function runJob(stores: readonly Store[], job: Job, context: JobContext): Promise<Report> {
  const gathered: Gathered = { rows: [], findings: [], plan: [], kept: [], errors: [], codes: [] }
  for (const store of stores) {
    if (context.signal?.aborted === true) break
    await runOnStore(store, job, context, gathered)
  }
  if (context.signal?.aborted === true) gathered.codes.push(stoppedBy(context.signal))
  const bytes = gathered.plan.reduce((sum, item) => sum + item.bytes, 0)
  return {
    command: 'run',
    roots: stores.map((store) => store.root),
    applied: context.apply,
    ...(context.apply ? { runId: context.runId } : {}),
    summary: { job: job.name, stores: stores.length, steps: gathered.rows.length, failed: gathered.rows.filter((row) => row.state === 'failed').length, actions: gathered.plan.length, bytes },
    findings: gathered.findings,
    plan: gathered.plan,
    kept: gathered.kept,
    errors: gathered.errors,
    exitCode: worstExit(gathered.codes),
    extra: { job: job.name, steps: gathered.rows.map((row) => ({ ...row })) },
    ...(gathered.plan.length === 0 ? {} : { next: context.apply ? `rewind-admin trash restore ${context.runId}` : 'Run it again with --apply to act.' }),
  }
}

async function runOnStore(store: Store, job: Job, context: JobContext, gathered: Gathered): Promise<void> {
  const start = context.monotonic()
  const before = { rows: gathered.rows.length, plan: gathered.plan.length }
  const held = context.apply ? await takeLock(store, job, context, gathered) : undefined
  if (context.apply && held === undefined) return
  try {
    const failures: Failure[] = []
    const hold = heldBack(store, context.now)
    if (hold !== undefined && job.steps.some(({ step }) => isRemoving(step))) gathered.findings.push(holdFinding(store, hold))
    const names = namesOnce(store, () => context.monotonic())
    const state: StoreState = {
      protectedSessions: new Map(),
      parts: 0,
      unsafe: undefined,
      unverified: undefined,
      held: hold?.why,
      errorsFound: undefined,
      failed: false,
      forgetNames: names.forget,
    }
    for (const step of job.steps) {
      if (context.signal?.aborted === true) break
      const failure = await runStep(names.store, job, step, state, context, gathered)
      if (failure === undefined) continue
      state.failed = true
      failures.push(failure)
    }
    if (context.apply) {
      const done = { rows: gathered.rows.slice(before.rows), plan: gathered.plan.slice(before.plan) }
      leaveResult(store, job, done, failures, context.monotonic() - start, context, gathered)
    }
  } finally {
    held?.release()
  }
}

async function takeLock(store: Store, job: Job, context: JobContext, gathered: Gathered): Promise<{ release(): void } | undefined> {
  try {
    return await lockStore(store, { ...context.lock, command: `run ${job.name}`, now: context.now, token: newToken() })
  } catch (error) {
    fail(store, job.steps[0]?.step ?? 'recover', error, 0, gathered)
    return undefined
  }
}

/** Carries a step out, unless something is in its way, and gives its failure back if it failed. */
async function runStep(store: Store, job: Job, wanted: JobStep, state: StoreState, context: JobContext, gathered: Gathered): Promise<Failure | undefined> {
  const { step } = wanted
  const start = context.monotonic()
  const reason = reasonToLeaveOut(store, job, wanted, state, context.now)
  if (reason !== undefined) {
    gathered.rows.push({ step, root: store.root, state: 'left out', exitCode: ExitCode.done, durationMs: 0, summary: {}, message: reason })
    return undefined
  }
  try {
    return take(store, step, await steps[step](store, state, context, wanted), context.monotonic() - start, gathered)
  } catch (error) {
    if (step === 'recover') state.unsafe = unfinished
    // Nobody knows which sessions had to be protected.
    if (step === 'verify' || step === 'verify-quick') state.unverified = 'left out, because the store could not be verified'
    return fail(store, step, error, context.monotonic() - start, gathered)
  }
}

function take(store: Store, step: StepName, result: StepResult, durationMs: number, gathered: Gathered): Failure | undefined {
  const { exitCode, summary, note, errors } = result
  const row = { step, root: store.root, exitCode, durationMs: Math.round(durationMs), summary, ...(note === undefined ? {} : { message: note }) }
  gathered.rows.push({ ...row, state: errors.length > 0 ? 'failed' : 'done' })
  // Two steps may come across the same thing.
  const known = new Set(gathered.findings.map(fingerprint))
  gathered.findings.push(...result.findings.filter((found) => !known.has(fingerprint(found))))
  gathered.plan.push(...result.plan)
  gathered.kept.push(...result.kept)
  gathered.errors.push(...errors)
  gathered.codes.push(exitCode)
  const [first] = errors
  return first === undefined ? undefined : { step, exitCode, message: first.message }
}

function fail(store: Store, step: StepName, error: unknown, durationMs: number, gathered: Gathered): Failure {
  const { code, exitCode, message } = errorWords(error)
  gathered.rows.push({ step, root: store.root, state: 'failed', exitCode, durationMs: Math.round(durationMs), summary: {}, message })
  gathered.errors.push({ code, path: store.root, message: `${step}: ${message}` })
  gathered.codes.push(exitCode)
  return { step, exitCode, message }
}

/**
 * Leaves the result for `status` and `doctor`, and a failure for later runs. The work is done all the same when that cannot be:
 * then it is an error of the run.
 */
function leaveResult(
  store: Store,
  job: Job,
  done: Pick<Gathered, 'rows' | 'plan'>,
  failures: readonly Failure[],
  elapsedMs: number,
  context: JobContext,
  gathered: Gathered,
): void {
  const { now, runId, signal } = context
  const codes = done.rows.map((row) => row.exitCode)
  const exitCode = worstExit(signal?.aborted === true ? [...codes, stoppedBy(signal)] : codes)
  try {
    const failure = holding(failures)
    if (failure !== undefined) noteFailure(store, { job: job.name, runId, now }, failure)
    // One that no longer holds.
    else if (heldBack(store, now) === undefined) forgetFailure(store)
    writeStatus(store, {
      job: job.name,
      runId,
      startedAt: new Date(now).toISOString(),
      finishedAt: new Date(now + Math.round(elapsedMs)).toISOString(),
      exitCode,
      actions: done.plan.length,
      bytes: done.plan.reduce((sum, item) => sum + item.bytes, 0),
      steps: done.rows.map(({ step, state, exitCode, summary, message }) => ({ step, state, exitCode, summary, ...(message === undefined ? {} : { message }) })),
    })
    recordHistory(store, { now, job: job.name, runId, exitCode, done: done.plan })
  } catch (error) {
    const { code, exitCode: failed, message } = errorWords(error)
    gathered.errors.push({ code, path: statusFile(store), message: `the result of the job could not be left there: ${message}` })
    gathered.codes.push(failed)
  }
}
