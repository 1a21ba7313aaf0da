import type { Store } from '../../formats/format.js'
import { atomicWrite, isNoSpace } from '../../fs/atomic-write.js'
import { RewindAdminError, systemErrorCode } from '../../model/errors.js'
import { ExitCode, worstExit } from '../../model/exit-code.js'
import type { Finding } from '../../model/finding.js'
import type { ErrorItem, Json, KeptItem, PlanItem, Report } from '../../model/report.js'
import { stoppedBy } from '../../plan/outcome.js'
import { newToken } from '../../plan/run-id.js'
import { lockStore, Sidecar } from '../../plan/sidecar.js'
import type { Job, StepName } from './job.js'
import { statusFile } from './status-file.js'
import { fingerprint } from '../verify/options.js'
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
 * written anywhere, the sidecar included. With it the store's lock is held, and the result is left in its status file. A signal
 * ends the job after the item in work; stores that come later are not begun.
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
    const state: StoreState = { protectedSessions: new Map(), parts: 0, unsafe: undefined, unverified: undefined }
    for (const step of job.steps) {
      if (context.signal?.aborted === true) break
      await runStep(store, step, state, context, gathered)
    }
    if (context.apply) {
      const done = { rows: gathered.rows.slice(before.rows), plan: gathered.plan.slice(before.plan) }
      leaveStatus(store, job, done, context.monotonic() - start, context, gathered)
    }
  } finally {
    held?.release()
  }
}

async function takeLock(store: Store, job: Job, context: JobContext, gathered: Gathered): Promise<{ release(): void } | undefined> {
  try {
    return await lockStore(store, { ...context.lock, command: `run ${job.name}`, now: context.now, token: newToken() })
  } catch (error) {
    fail(store, 'recover', error, 0, gathered)
    return undefined
  }
}

async function runStep(store: Store, step: StepName, state: StoreState, context: JobContext, gathered: Gathered): Promise<void> {
  const start = context.monotonic()
  const reason = reasonToLeaveOut(step, state)
  if (reason !== undefined) {
    gathered.rows.push({ step, root: store.root, state: 'left out', exitCode: ExitCode.done, durationMs: 0, summary: {}, message: reason })
    return
  }
  try {
    const result = await steps[step](store, state, context)
    take(store, step, result, context.monotonic() - start, gathered)
  } catch (error) {
    fail(store, step, error, context.monotonic() - start, gathered)
    if (step === 'recover') state.unsafe = unfinished
    // Nobody knows which sessions had to be protected.
    if (step === 'verify' || step === 'verify-quick') state.unverified = 'left out, because the store could not be verified'
  }
}

function reasonToLeaveOut(step: StepName, { unsafe, unverified }: StoreState): string | undefined {
  if (step === 'cap' || step === 'expire') return unsafe ?? unverified
  return step === 'empty-trash' ? unsafe : undefined
}

function take(store: Store, step: StepName, result: StepResult, durationMs: number, gathered: Gathered): void {
  gathered.rows.push({ step, root: store.root, state: result.errors.length > 0 ? 'failed' : 'done', exitCode: result.exitCode, durationMs: Math.round(durationMs), summary: result.summary })
  // Two steps may come across the same thing.
  const known = new Set(gathered.findings.map(fingerprint))
  gathered.findings.push(...result.findings.filter((found) => !known.has(fingerprint(found))))
  gathered.plan.push(...result.plan)
  gathered.kept.push(...result.kept)
  gathered.errors.push(...result.errors)
  gathered.codes.push(result.exitCode)
}

function fail(store: Store, step: StepName, error: unknown, durationMs: number, gathered: Gathered): void {
  const { code, exitCode, message } = wordsOf(error)
  gathered.rows.push({ step, root: store.root, state: 'failed', exitCode, durationMs: Math.round(durationMs), summary: {}, message })
  gathered.errors.push({ code, path: store.root, message: `${step}: ${message}` })
  gathered.codes.push(exitCode)
}

/** Leaves the result for `status` and `doctor`. The work is done all the same when that cannot be: then it is an error of the run. */
function leaveStatus(store: Store, job: Job, done: Pick<Gathered, 'rows' | 'plan'>, elapsedMs: number, context: JobContext, gathered: Gathered): void {
  const { now, runId, signal } = context
  const codes = done.rows.map((row) => row.exitCode)
  const status = {
    schemaVersion: 1,
    job: job.name,
    runId,
    startedAt: new Date(now).toISOString(),
    finishedAt: new Date(now + Math.round(elapsedMs)).toISOString(),
    exitCode: worstExit(signal?.aborted === true ? [...codes, stoppedBy(signal)] : codes),
    actions: done.plan.length,
    bytes: done.plan.reduce((sum, item) => sum + item.bytes, 0),
    steps: done.rows.map(({ step, state, exitCode, summary, message }) => ({ step, state, exitCode, summary, ...(message === undefined ? {} : { message }) })),
  }
  const file = statusFile(store)
  try {
    const sidecar = new Sidecar(store)
    sidecar.prepare()
    sidecar.withRoom(() => {
      atomicWrite(file, Buffer.from(`${JSON.stringify(status, undefined, 2)}\n`), { token: newToken() })
    })
    sidecar.own(file)
  } catch (error) {
    const { code, exitCode, message } = wordsOf(error)
    gathered.errors.push({ code, path: file, message: `the result of the job could not be left there: ${message}` })
    gathered.codes.push(exitCode)
  }
}

function wordsOf(error: unknown): { readonly code: string; readonly exitCode: ExitCode; readonly message: string } {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof RewindAdminError) return { code: error.code, exitCode: error.exitCode, message }
  if (isNoSpace(error)) return { code: 'NO_SPACE', exitCode: ExitCode.noSpace, message }
  const code = systemErrorCode(error)
  return { code: code ?? 'INTERNAL', exitCode: code === undefined ? ExitCode.usage : ExitCode.partial, message }
}
