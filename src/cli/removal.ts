import { randomBytes } from 'node:crypto'
import type { Store } from '../formats/format.js'
import { NoMatchError, UsageError } from '../model/errors.js'
import { ExitCode, worstExit } from '../model/exit-code.js'
import type { Report } from '../model/report.js'
import { carryOut } from '../operations/removal/carry-out.js'
import { toReport, type Removal } from '../operations/removal/removal.js'
import { writeRemovedOut } from '../operations/tombstones.js'
import type { ApplyResult } from '../plan/apply.js'
import { writePlan } from '../plan/plan-file.js'
import { newRunId, newToken } from '../plan/run-id.js'
import { filePath } from './commands/paths.js'
import type { CommandContext } from './context.js'
import { failureOf } from './errors.js'
import { withLock } from './locked.js'
import type { Workplace } from './workplace.js'

/** Options of every command that removes. */
export const removalOptions = {
  'apply': { type: 'boolean', describe: 'Act; without it the plan is only printed' },
  'no-trash': { type: 'boolean', describe: 'Remove for good instead of moving into the trash' },
  'plan-out': { type: 'string', describe: 'Write the plan to this file, for rewind-admin apply' },
} as const

export interface RemovalRequest {
  readonly command: string
  readonly apply: boolean
  readonly noTrash: boolean
  readonly planOut?: string | undefined
  /** Plans for one store; called again under the lock when the plan is to be applied. */
  plan(store: Store): Removal
  /** What belongs to an applied removal besides its plan; done under the lock. */
  applied?(store: Store, removal: Removal, result: ApplyResult, runId: string): ApplyResult | Promise<ApplyResult>
}

/**
 * Plans a removal for each store and, with `apply`, does it: under the store's lock, after interrupted runs were completed.
 * Of one store it throws what planning throws, `LockedError`, and the refusal of a plan that must not be applied; of several
 * stores each is worked on, and these are errors in the report (promise 9). Nothing matched is an error only when no store
 * holds what was named.
 */
export async function runRemoval(context: CommandContext, place: Workplace, request: RemovalRequest): Promise<Report> {
  if (request.planOut !== undefined && place.stores.length > 1) {
    throw new UsageError('--plan-out holds the plan of one store', { hint: 'name it with --root' })
  }
  const runId = newRunId(context.now(), randomBytes(4).toString('hex'))
  const parts: { removal: Removal; result?: ApplyResult }[] = []
  const failures: StoreFailure[] = []
  for (const store of place.stores) {
    try {
      parts.push(request.apply ? await applied(store, runId) : { removal: request.plan(store) })
    } catch (error) {
      if (place.stores.length === 1) throw error
      failures.push({ root: store.root, error })
    }
  }
  const unmatched = failures.find(({ error }) => error instanceof NoMatchError)
  if (unmatched !== undefined && failures.length === place.stores.length) throw unmatched.error
  const [part] = parts
  if (request.planOut !== undefined && part !== undefined) writePlan(filePath(context, request.planOut), part.removal.plan, newToken())
  const report = toReport(request.command, parts, request.apply ? { runId } : {})
  return withFailures({ ...report, ...nextOf(request, report) }, failures)

  function applied(store: Store, run: string): Promise<{ removal: Removal; result: ApplyResult }> {
    return withLock(context, place, store, request.command, async () => {
      const removal = request.plan(store)
      if (removal.refusal !== undefined) throw removal.refusal
      const { actions } = removal.plan
      context.progress.begin({ label: request.command, total: actions.length, unit: 'items' })
      try {
        const result = await carryOut(store, removal, {
          now: context.now(),
          runId: run,
          machine: place.machine,
          noTrash: request.noTrash,
          signal: context.signal,
          onItem: () => {
            context.progress.advance(1)
          },
        })
        return { removal, result: (await request.applied?.(store, removal, result, run)) ?? result }
      } finally {
        context.progress.end()
      }
    })
  }
}

/** What to do next: act, or the way back. */
function nextOf({ apply, noTrash }: RemovalRequest, { plan, runId }: Report): { readonly next?: string } {
  if (plan.length === 0) return {}
  if (!apply) return { next: 'Run it again with --apply to act.' }
  return noTrash || runId === undefined ? {} : { next: `rewind-admin trash restore ${runId}` }
}

interface StoreFailure {
  readonly root: string
  readonly error: unknown
}

function withFailures(report: Report, failures: readonly StoreFailure[]): Report {
  const failed = failures
    .filter(({ error }) => !(error instanceof NoMatchError))
    .map(({ root, error }) => ({ root, failure: failureOf(error, { verbose: false }) }))
  if (failed.length === 0) return report
  return {
    ...report,
    roots: [...report.roots, ...failed.map(({ root }) => root)],
    errors: [...report.errors, ...failed.map(({ root, failure }) => ({ ...failure.item, path: root }))],
    exitCode: worstExit([report.exitCode, ...failed.map(({ failure }) => failure.exitCode)]),
  }
}

/**
 * Writes the ids of removed sessions, one a line, for those who keep lists of sessions (R124). What cannot be written is an error in
 * the report that is handed back: the sessions are gone all the same.
 */
export function writeRemoved(context: CommandContext, file: string, report: Report): Report {
  const removed = report.plan.filter((item) => report.runId !== undefined && item.action === 'trash-session')
  const path = filePath(context, file)
  try {
    writeRemovedOut(path, removed.flatMap(({ session }) => session ?? []), newToken())
    return report
  } catch (error) {
    const { item } = failureOf(error, { verbose: false })
    const lost = { ...item, path, message: `the ids of the removed sessions could not be written: ${item.message}` }
    return { ...report, errors: [...report.errors, lost], exitCode: worstExit([report.exitCode, ExitCode.partial]) }
  }
}
