import type { Store } from '../../formats/format.js'
import { ExitCode } from '../../model/exit-code.js'
import type { Finding } from '../../model/finding.js'
import { isAtLeast } from '../../model/finding.js'
import type { ErrorItem, Json, KeptItem, PlanItem } from '../../model/report.js'
import type { LockOptions } from '../../fs/lock.js'
import { isFinished, journalledRuns } from '../../plan/journal.js'
import { recoverRuns } from '../../plan/recover.js'
import { newToken, partRunId } from '../../plan/run-id.js'
import { Sidecar } from '../../plan/sidecar.js'
import { dueEntries, emptyTrash, listTrash } from '../../plan/trash.js'
import { configLayers, type Config } from '../../settings/config.js'
import { planCap } from '../cap.js'
import { planExpire } from '../expire.js'
import { carryOut } from '../removal/carry-out.js'
import { notLive } from '../removal/live.js'
import { removalRows, type Removal } from '../removal/removal.js'
import { sweepRedo } from '../restore/sweep-redo.js'
import { status } from '../status.js'
import type { VerifyOptions } from '../verify/options.js'
import { verify, type VerifyContext } from '../verify/verify.js'
import { bucketOf } from './bucket.js'
import type { JobStep, StepName } from './job.js'
import { nextNight } from './next-night.js'

/** What a job needs of the machine; everything is passed in. */
export interface JobContext extends VerifyContext {
  readonly apply: boolean
  /** See `newRunId`. What a step removes waits in the trash under a part of it. */
  readonly runId: string
  readonly config: Config
  readonly lock: Pick<LockOptions, 'pid' | 'host' | 'processes' | 'waitMs'>
  /** Milliseconds since any fixed moment. */
  monotonic(): number
}

/** What earlier steps of the job say to later ones about a store. */
export interface StoreState {
  /** Sessions that must be left alone, with the reason. */
  readonly protectedSessions: Map<string, string>
  /** Plans of this run that were carried out so far. */
  parts: number
  /** Why nothing may be removed from the store in this run. */
  unsafe: string | undefined
  /** Why no session may be removed: those that must be protected are not known. */
  unverified: string | undefined
  /** Why nothing is removed that waits to be: a job failed, and nobody has looked yet. */
  readonly held: string | undefined
  /** Errors that verify steps of this run found; `undefined` when none was carried out. */
  errorsFound: number | undefined
  /** A step of this run failed. */
  failed: boolean
  /** Call it when names in the store have changed. */
  readonly forgetNames: () => void
}

/** What is half done must be finished or rolled back before anything else is removed. */
export const unfinished = 'left out, because an interrupted run could not be finished'

/** What one step did, or would do. */
export interface StepResult {
  readonly summary: Readonly<Record<string, Json>>
  readonly findings: readonly Finding[]
  readonly plan: readonly PlanItem[]
  readonly kept: readonly KeptItem[]
  readonly errors: readonly ErrorItem[]
  readonly exitCode: ExitCode
  /** What it says besides numbers. */
  readonly note?: string
}

type Step = (store: Store, state: StoreState, context: JobContext, step: JobStep) => Promise<StepResult>

const nothing: StepResult = { summary: {}, findings: [], plan: [], kept: [], errors: [], exitCode: ExitCode.done }

/** Every step by its name. Without `apply` a step only says what it would do. */
export const steps: Readonly<Record<StepName, Step>> = {
  'recover': recover,
  'verify-quick': (store, state, context) => check(store, state, context, { quick: true, seal: context.apply }),
  'verify': (store, state, context, { buckets }) =>
    check(store, state, context, { seal: context.apply, ...(buckets === undefined ? {} : { sample: bucketOf(context.now, buckets) }) }),
  'cap': cap,
  'expire': expire,
  'empty-trash': empty,
  'status': count,
  'next-night': foresee,
}

/** Completes or rolls back what interrupted runs left. */
async function recover(store: Store, state: StoreState, context: JobContext): Promise<StepResult> {
  const sidecar = new Sidecar(store)
  const open = sidecar.exists() ? journalledRuns(sidecar).filter((run) => !isFinished(sidecar, run)) : []
  if (!context.apply) return { ...nothing, summary: { unfinished: open.length } }
  const runs = await recoverRuns(store, { now: context.now, stillAllowed: notLive(store, context.machine, context.now) }).finally(state.forgetNames)
  const errors = runs.flatMap((run) => run.errors)
  if (errors.length > 0) state.unsafe = unfinished
  const count = (of: (run: (typeof runs)[number]) => readonly string[]): number => runs.reduce((sum, run) => sum + of(run).length, 0)
  return {
    ...nothing,
    summary: { unfinished: open.length, completed: count((run) => run.completed), rolledBack: count((run) => run.rolledBack) },
    errors,
    exitCode: errors.length > 0 ? ExitCode.partial : ExitCode.done,
  }
}

/** Verifies, and protects every session with an error from the steps that remove. */
async function check(store: Store, state: StoreState, context: JobContext, options: VerifyOptions): Promise<StepResult> {
  const report = await verify([store], options, context)
  state.errorsFound = (state.errorsFound ?? 0) + report.findings.filter(({ severity }) => severity === 'error').length
  for (const { session, severity, id } of report.findings) {
    if (session !== undefined && severity === 'error') state.protectedSessions.set(session, `verify found ${id}`)
  }
  const shown = report.findings.filter((found) => isAtLeast(found.severity, 'warn'))
  const { sample } = options
  const note = sample?.kind === 'bucket' ? { note: `bucket ${String(sample.number)} of ${String(sample.of)}` } : {}
  return { ...nothing, summary: report.summary, findings: shown, exitCode: report.exitCode, ...note }
}

/** Removes backups that no checkpoint within the cap needs. */
function cap(store: Store, state: StoreState, context: JobContext): Promise<StepResult> {
  const { cap: max, quietPeriodMs } = context.config
  const { protectedSessions } = state
  const removal = planCap(store, { ...(max === undefined ? {} : { max }), quietPeriodMs, protectedSessions }, context)
  return remove(store, removal, state, context)
}

/** Removes sessions older than their period. */
async function expire(store: Store, state: StoreState, context: JobContext): Promise<StepResult> {
  const { config } = context
  const { protectedSessions } = state
  const removal = planExpire(store, { config, floorMs: config.floorMs, quietPeriodMs: config.quietPeriodMs, protectedSessions }, context)
  const result = await remove(store, removal, state, context)
  if (context.apply) removal.writeLedger(newToken())
  return result
}

/** What the brake refuses is reported and left; the next step goes on. */
async function remove(store: Store, removal: Removal, state: StoreState, context: JobContext): Promise<StepResult> {
  const planned = removalRows(removal)
  if (!context.apply) return planned
  if (removal.refusal !== undefined) return { ...planned, summary: { ...planned.summary, actions: 0, bytes: 0 }, plan: [] }
  const { now, machine, signal } = context
  state.parts += 1
  const runId = partRunId(context.runId, state.parts)
  try {
    return removalRows(removal, await carryOut(store, removal, { now, runId, machine, ...(signal === undefined ? {} : { signal }) }))
  } finally {
    if (removal.plan.actions.length > 0) state.forgetNames()
  }
}

/** Removes for good what has waited in the trash for longer than the grace period. */
async function empty(store: Store, state: StoreState, context: JobContext): Promise<StepResult> {
  const { graceMs } = context.config
  if (!context.apply) {
    const due = dueEntries(listTrash(store), graceMs, context.now)
    return { ...nothing, summary: { due: due.length, bytes: due.reduce((sum, entry) => sum + entry.bytes, 0) } }
  }
  const { removed, bytes, errors } = await emptyTrash(store, { olderThan: graceMs, now: context.now })
  // What is decided by the names here goes for good: they are looked at anew.
  state.forgetNames()
  const redoPoints = sweepRedo(store).length
  return { ...nothing, summary: { removed: removed.length, bytes, redoPoints }, errors, exitCode: errors.length > 0 ? ExitCode.partial : ExitCode.done }
}

/** Counts what there is. */
function count(store: Store, _state: StoreState, context: JobContext): Promise<StepResult> {
  const report = status(
    [store],
    { top: 0, configLayers: (project) => configLayers(context.config, project), nextNight: () => null, lastRun: () => null },
    context,
  )
  // It is one store.
  const summary = Object.fromEntries(Object.entries(report.summary).filter(([name]) => name !== 'stores'))
  return Promise.resolve({ ...nothing, summary, findings: report.findings })
}

/** Says what a night would remove, and changes nothing. */
function foresee(store: Store, _state: StoreState, context: JobContext): Promise<StepResult> {
  const { held, expire: sessions, cap: backups } = nextNight(store, context.config, context)
  const due = dueEntries(listTrash(store), context.config.graceMs, context.now)
  const refused = [held, sessions.refused, backups.refused].filter((reason) => reason !== undefined)
  const summary = {
    expire: sessions.actions,
    expireBytes: sessions.bytes,
    cap: backups.actions,
    capBytes: backups.bytes,
    emptyTrash: due.length,
    emptyTrashBytes: due.reduce((sum, entry) => sum + entry.bytes, 0),
  }
  return Promise.resolve({ ...nothing, summary, ...(refused.length === 0 ? {} : { note: refused.join('; ') }) })
}
