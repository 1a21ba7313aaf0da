import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { assertRealRoot, foldersAbove, unsafePathReason } from '../fs/safe-path.js'
import { deviceOf } from '../fs/same-device.js'
import { statusOf } from '../fs/identity.js'
import { syncFolder } from '../fs/sync-folder.js'
import { FenceError, UsageError } from '../model/errors.js'
import type { ExitCode } from '../model/exit-code.js'
import type { ErrorItem, KeptItem, PlanItem } from '../model/report.js'
import type { Writable } from '../model/writable.js'
import type { Action, Plan, ReplaceAction } from './action.js'
import { subjectOf } from './action.js'
import type { ActsOptions } from './file-acts.js'
import { Acts } from './file-acts.js'
import { FolderTimes } from './folder-times.js'
import type { FolderTime, Method } from './journal.js'
import { Journal } from './journal.js'
import { Changed } from './move.js'
import type { Outcome } from './outcome.js'
import { errorItem } from './outcome.js'
import { Outcomes } from './outcomes.js'
import { FreedBytes } from './planned-item.js'
import { receiptFor } from './receipt.js'
import { removeSession } from './remove-session.js'
import type { RunContext, StillAllowed } from './remove-session.js'
import { removeTree } from './remove-tree.js'
import { publish, stageContent } from './replace.js'
import { isRunId } from './run-id.js'
import { Sidecar } from './sidecar.js'
import { Slot, slotName } from './slot.js'

export interface ApplyOptions extends ActsOptions {
  /** Milliseconds since 1970; what receipts say as `trashedAt`. */
  readonly now: number
  /** See `newRunId`. */
  readonly runId: string
  /** Removes for good instead of moving into the trash. */
  readonly noTrash?: boolean
  /** When aborted, the action in work is finished and the run ends; reason `SIGINT` gives exit code 130, else 143. */
  readonly signal?: AbortSignal
  /** Asked before each session and once more before its transcript. */
  readonly stillAllowed?: StillAllowed
  /** Told after each action. */
  readonly onItem?: (progress: ApplyProgress) => void
}

interface ApplyProgress {
  readonly index: number
  readonly total: number
  readonly action: Action
  readonly outcome: Outcome
}

export interface ApplyResult {
  readonly runId: string
  /** What was done, with the bytes that became free or will when the trash is emptied. */
  readonly done: readonly PlanItem[]
  readonly kept: readonly KeptItem[]
  readonly errors: readonly ErrorItem[]
  readonly bytes: number
  readonly notes: readonly string[]
  /** A signal ended the run before the plan was done. */
  readonly interrupted: boolean
  readonly exitCode: ExitCode
}

/**
 * Does what a plan says: the only code that removes or replaces anything in a store (design section 3, promises 2, 3, 5, 6). Hold
 * the store's lock, and let `recoverRuns` complete earlier runs before. The plan is journalled before the first act, every path
 * is compared with the plan just before its act, and every action is done whole or not at all. Errors of one action do not end the run.
 * @throws FenceError when the root is not what it was, or the trash lies on another file system and `noTrash` is not set;
 *   NoSpaceError when not even an empty file can be made; UsageError for a bad run id. Nothing was moved then.
 */
export async function applyPlan(plan: Plan, options: ApplyOptions): Promise<ApplyResult> {
  if (!isRunId(options.runId)) throw new UsageError(`"${options.runId}" is not the name of a run`)
  const outcomes = new Outcomes(options)
  if (plan.actions.length === 0) return outcomes.result(plan, false)
  assertRealRoot(plan.root)
  const acts = new Acts(options)
  const sidecar = new Sidecar(plan, acts.direct)
  const method = methodFor(plan, options.noTrash === true)
  sidecar.prepare()
  const run: RunContext = {
    root: plan.root,
    sidecar,
    acts,
    times: new FolderTimes(),
    facts: { runId: options.runId, command: plan.command, now: options.now },
    method,
    freed: freedBy(method),
    stillAllowed: options.stillAllowed ?? (() => true),
    published: new Map(),
  }
  const slots = slotNames(plan.actions)
  const journal = begin(run, plan, slots)
  const late: (() => void)[] = []
  let interrupted = false
  try {
    for (const [index, action] of plan.actions.entries()) {
      // Lets a signal be heard between two actions.
      await turn()
      interrupted = options.signal?.aborted === true
      if (interrupted) break
      const slot = new Slot(sidecar, options.runId, slots[index] ?? String(index))
      journal.started(slot.name)
      const outcome = action.kind === 'replace' ? await replace(run, action, slot, late) : await removeSession(run, action, slot)
      journal.done(slot.name, outcome.state)
      outcomes.add(action, outcome, index, plan.actions.length)
    }
    outcomes.check(late)
    run.times.putBack()
    journal.finish(options.now)
  } finally {
    journal.close()
    run.times.putBack()
    dropIfEmpty(run)
  }
  sidecar.fillReserve()
  return outcomes.result(plan, interrupted)
}

function methodFor(plan: Plan, noTrash: boolean): Method {
  const device = deviceOf(plan.sidecar)
  const elsewhere = plan.actions
    .flatMap((action) => (action.kind === 'replace' ? (action.old === undefined ? [] : [action.old]) : action.items))
    .find((item) => item.identity.dev !== device && currentDevice(plan.root, item.path) !== device)
  if (elsewhere === undefined) return noTrash ? 'remove' : 'trash'
  if (noTrash) return 'remove-in-place'
  throw new FenceError(`${plan.sidecar} lies on another file system than ${elsewhere.path}; nothing was moved`, {
    hint: 'remove for good with --no-trash',
  })
}

/** A plan from a file may be older than the last mount, which can give a file system another number. */
function currentDevice(root: string, path: string): string | undefined {
  return unsafePathReason(path) === undefined ? (statusOf(join(root, path))?.dev.toString() ?? deviceOf(root)) : undefined
}

/**
 * In the trash every name still counts as one of its inode, so names are counted over the whole run. What is removed for good
 * lowers the link count of the next one by itself.
 */
function freedBy(method: Method): RunContext['freed'] {
  const all = new FreedBytes()
  return (inodes) => (method === 'trash' ? all : new FreedBytes()).take(inodes)
}

function slotNames(actions: readonly Action[]): string[] {
  const seen = new Map<string, number>()
  return actions.map((action) => {
    const subject = subjectOf(action)
    const nth = seen.get(subject) ?? 0
    seen.set(subject, nth + 1)
    return slotName(subject, nth)
  })
}

function begin(run: RunContext, plan: Plan, slots: readonly string[]): Journal {
  const { sidecar, facts, method } = run
  const header = { runId: facts.runId, command: facts.command, root: plan.root, method, startedAt: new Date(facts.now).toISOString() }
  const entries = plan.actions.map((action, index) => ({ action: withoutContent(action), slot: slots[index] ?? String(index) }))
  try {
    const journal = Journal.begin(sidecar, header, entries, folderTimes(plan))
    if (method !== 'remove-in-place') sidecar.makeFolder(join(sidecar.trash, facts.runId))
    syncFolder(sidecar.trash)
    return journal
  } catch (error) {
    throw sidecar.explain(error)
  }
}

/** A replacement is settled by what stands at the path and by its receipt: the bytes are not needed for it. */
function withoutContent(action: Action): Action {
  if (action.kind !== 'replace' || action.content === undefined) return action
  const bare: Writable<ReplaceAction> = { ...action }
  delete bare.content
  return bare
}

function folderTimes(plan: Plan): FolderTime[] {
  const paths = plan.actions.flatMap((action) => (action.kind === 'replace' ? (action.beside === true ? [] : [action.path]) : action.items.map((item) => item.path)))
  const folders = new Set(paths.flatMap((path) => (path.includes('/') ? foldersAbove(path) : [])))
  return [...folders].flatMap((folder): FolderTime[] => {
    const status = statusOf(join(plan.root, folder))
    return status?.isDirectory() === true ? [[folder, status.mtimeNs.toString()]] : []
  })
}

async function replace(run: RunContext, asked: ReplaceAction, slot: Slot, late: (() => void)[]): Promise<Outcome> {
  const stagedName = `${run.facts.runId}-${slot.name}`
  try {
    if (run.method === 'remove-in-place') {
      throw new FenceError(`${asked.path} lies on another file system than its new file; it was left as it is`)
    }
    const action = run.sidecar.withRoom(() => stageContent(run, asked, stagedName))
    slot.open()
    const receipt = receiptFor(action, action.old === undefined ? [] : [action.old], run.root, run.facts, run.times)
    run.sidecar.withRoom(() => {
      run.sidecar.writeFile(slot.receipt, JSON.stringify(receipt))
    })
    const check = await publish(run, slot, action)
    await run.acts.try(() => { slot.commit() })
    if (run.method === 'trash') late.push(check)
    else {
      check()
      await run.acts.try(() => { slot.condemn() })
      await removeTree(run.acts, slot.folder)
    }
    run.published.set(action.path, action.stagedIdentity)
    return { state: 'done', bytes: action.bytes, already: false, notes: [] }
  } catch (error) {
    slot.discard()
    if (asked.content !== undefined) rmSync(join(run.sidecar.staging, stagedName), { force: true })
    if (error instanceof Changed) return { state: 'kept', reason: error.message }
    return { state: 'failed', errors: [errorItem(error, asked.path)] }
  }
}

/** A run that put nothing into the trash leaves no folder there. */
function dropIfEmpty(run: RunContext): void {
  try {
    run.acts.direct.rmdir(join(run.sidecar.trash, run.facts.runId))
  } catch {
    // It holds something, as it should.
  }
}
