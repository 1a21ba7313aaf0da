import type { Store } from '../../formats/format.js'
import type { PlanItem } from '../../model/report.js'
import { mergeStates, movedState, stateOf } from '../../model/session-state.js'
import type { SessionReading, SessionRef } from '../../model/session.js'
import { readState, sameState, stateFile, writeState } from '../state-file.js'

/** A state of our own that is not yet what it should be. */
export interface StatePlan {
  readonly item: PlanItem
  write(): void
}

/**
 * What our own state of a session lacks of what its transcript says; `undefined` when it lacks nothing, when there is no
 * checkpoint, or when a newer version of ours wrote it. A checkpoint that it has and the transcript no longer names stays.
 */
export function planState(store: Store, ref: SessionRef, reading: SessionReading): StatePlan | undefined {
  if (store.checkpointsInTranscript !== true || reading.busy) return undefined
  const found = stateOf(reading)
  const before = readState(store, ref.id)
  if (found === undefined || before.kind === 'newer') return undefined
  const state = before.kind === 'state' ? mergeStates(before.state, found) : found
  if (before.kind === 'state' && sameState(before.state, state)) return undefined
  const count = state.checkpoints.length
  const reason = `${String(count)} checkpoint${count === 1 ? '' : 's'}, so that they outlive the transcript`
  return {
    item: { action: 'write-state', path: stateFile(store, ref.id), session: ref.id, bytes: 0, reason },
    write: () => { writeState(store, state, before) },
  }
}

/** Takes our own state of a session along to the place that its project was moved to. */
export function moveState(store: Store, session: string, move: { readonly from: string; readonly to: string }): void {
  const before = readState(store, session)
  if (before.kind === 'state') writeState(store, movedState(before.state, move.from, move.to), before)
}
