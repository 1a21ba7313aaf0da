import type { Machine, Store } from '../../formats/format.js'
import { RewindAdminError, systemErrorCode } from '../../model/errors.js'
import { ExitCode } from '../../model/exit-code.js'
import { applyPlan, type ApplyOptions, type ApplyResult } from '../../plan/apply.js'
import { appendTombstones, tombstonesOf } from '../tombstones.js'
import { notLive } from './live.js'
import type { Removal } from './removal.js'

export interface CarryOutOptions extends Omit<ApplyOptions, 'stillAllowed'> {
  readonly machine: Machine
}

/**
 * Applies a removal: refuses what the brake refuses, asks the registry of running sessions again before each act, and leaves
 * a tombstone for each session that is gone. Hold the store's lock, and let interrupted runs be recovered before.
 * @throws the refusal of the removal, LockedError while the agent's own housekeeping works, and what `applyPlan` throws; nothing was moved then
 */
export async function carryOut(store: Store, removal: Removal, options: CarryOutOptions): Promise<ApplyResult> {
  if (removal.refusal !== undefined) throw removal.refusal
  const removed: string[] = []
  const agentLock = removal.plan.actions.length === 0 ? undefined : store.takeAgentLock?.(options.now)
  let result: ApplyResult
  try {
    result = await applyPlan(removal.plan, {
      ...options,
      stillAllowed: notLive(store, options.machine, options.now),
      onItem: (progress) => {
        const { action, outcome } = progress
        if (action.kind === 'trash-session' && outcome.state === 'done') removed.push(action.session)
        options.onItem?.(progress)
      },
    })
  } finally {
    agentLock?.release()
  }
  try {
    const { runId, now } = options
    appendTombstones(store, tombstonesOf(removal.plan, removed, { runId, now, firstActivity: removal.firstActivity }))
    return result
  } catch (error) {
    const code = error instanceof RewindAdminError ? error.code : (systemErrorCode(error) ?? 'INTERNAL')
    const message = `the sessions are removed, but not noted in tombstones.jsonl: ${error instanceof Error ? error.message : String(error)}`
    const exitCode = result.exitCode === ExitCode.done ? ExitCode.partial : result.exitCode
    return { ...result, errors: [...result.errors, { code, path: store.sidecar, message }], exitCode }
  }
}
