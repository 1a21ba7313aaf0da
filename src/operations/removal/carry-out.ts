import type { Machine, Store } from '../../formats/format.js'
import { RewindAdminError, systemErrorCode } from '../../model/errors.js'
import { ExitCode } from '../../model/exit-code.js'
import type { ErrorItem } from '../../model/report.js'
import { applyPlan, type ApplyOptions, type ApplyResult } from '../../plan/apply.js'
import { forgetReturned, noteCapped } from '../capped.js'
import { appendTombstones, tombstonesOf } from '../tombstones.js'
import { notLive } from './live.js'
import type { Removal } from './removal.js'

export interface CarryOutOptions extends Omit<ApplyOptions, 'stillAllowed'> {
  readonly machine: Machine
}

/**
 * Applies a removal: refuses what the brake refuses, asks the registry of running sessions again before each act, and leaves
 * a tombstone for each session that is gone, and a note of what a cap takes that records go on naming. Hold the store's lock, and let interrupted runs be recovered before.
 * @throws the refusal of the removal, LockedError while the agent's own housekeeping works, and what `applyPlan` throws; nothing was moved then
 */
export async function carryOut(store: Store, removal: Removal, options: CarryOutOptions): Promise<ApplyResult> {
  if (removal.refusal !== undefined) throw removal.refusal
  const { plan } = removal
  const removed: string[] = []
  const agentLock = plan.actions.length === 0 ? undefined : store.takeAgentLock?.(options.now)
  let result: ApplyResult
  let memory: ErrorItem | undefined
  try {
    const noted = tried('what the cap removes is not noted, and verify will call it missing', store, () => noteCapped(store, plan, options.now))
    result = await applyPlan(plan, {
      ...options,
      stillAllowed: notLive(store, options.machine, options.now),
      onItem: (progress) => {
        const { action, outcome } = progress
        if (action.kind === 'trash-session' && outcome.state === 'done') removed.push(action.session)
        options.onItem?.(progress)
      },
    })
    memory = noted.error ?? tried('what the cap left is noted as removed', store, () => { noted.value?.forEach((session) => { forgetReturned(store, session) }) }).error
  } finally {
    agentLock?.release()
  }
  const { runId, now } = options
  const stones = tried('the sessions are removed, but not noted in tombstones.jsonl', store, () => {
    appendTombstones(store, tombstonesOf(plan, removed, { runId, now, firstActivity: removal.firstActivity }))
  })
  const errors = [memory, stones.error].filter((error) => error !== undefined)
  if (errors.length === 0) return result
  const exitCode = result.exitCode === ExitCode.done ? ExitCode.partial : result.exitCode
  return { ...result, errors: [...result.errors, ...errors], exitCode }
}

/** Does something of which a failure must not stop the removal. */
function tried<T>(consequence: string, store: Store, act: () => T): { readonly value?: T; readonly error?: ErrorItem } {
  try {
    return { value: act() }
  } catch (error) {
    const code = error instanceof RewindAdminError ? error.code : (systemErrorCode(error) ?? 'INTERNAL')
    return { error: { code, path: store.sidecar, message: `${consequence}: ${error instanceof Error ? error.message : String(error)}` } }
  }
}
