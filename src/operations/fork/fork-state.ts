import type { Store } from '../../formats/format.js'
import type { Checkpoint } from '../../model/history.js'
import { mergeStates, withState, type SessionState } from '../../model/session-state.js'
import type { SessionReading, SessionRef } from '../../model/session.js'
import { readState, sameState, writeState } from '../state-file.js'

/** One side of a fork, as its transcript has it. */
export interface Side {
  readonly ref: SessionRef
  readonly reading: SessionReading
}

/** What a fork takes over of our own state of its source. */
export interface ForkedState {
  /** The fork with the checkpoints that its transcript does not name. */
  readonly reading: SessionReading
  /** Writes the state of the fork. Hold the store's lock. @throws NoSpaceError, FenceError */
  write(): void
}

/**
 * Our own state of a session goes along with its forks: checkpoints that no transcript names any more can be gone back to in both.
 * Of a fork that was cut they are those before the cut.
 */
export function forkState(store: Store, source: Side, target: Side): ForkedState {
  const [from, before] = [readState(store, source.ref.id), readState(store, target.ref.id)]
  const forked = from.kind === 'state' ? cutState(store, from.state, source, target) : undefined
  const own = before.kind === 'state' ? before.state : undefined
  const next = forked === undefined ? own : own === undefined ? forked : mergeStates(forked, own)
  const reading = next === undefined ? target.reading : withCheckpoints(target.reading, next)
  return {
    reading,
    write: () => {
      if (next === undefined || forked === undefined || before.kind === 'newer' || (own !== undefined && sameState(own, next))) return
      writeState(store, next, before)
    },
  }
}

function withCheckpoints(reading: SessionReading, state: SessionState): SessionReading {
  return { ...reading, history: withState(reading.history, state, reading.project ?? state.project).history }
}

/** What the fork gets of the state of its source; `undefined` when that is nothing. */
function cutState(store: Store, state: SessionState, source: Side, target: Side): SessionState | undefined {
  const left = new Set(store.messages(target.ref).map(({ id }) => id))
  const gone = new Set(store.messages(source.ref).flatMap(({ id }) => (left.has(id) ? [] : [id])))
  const merged = withCheckpoints(source.reading, state).history.checkpoints
  const end = endOfFork(merged, new Set(source.reading.history.checkpoints.map(({ id }) => id)), new Set(target.reading.history.checkpoints.map(({ id }) => id)))
  const kept = new Set(merged.flatMap(({ id, order }) => (order < end && !gone.has(id) ? [id] : [])))
  const checkpoints = state.checkpoints.filter(({ id }) => kept.has(id))
  return checkpoints.length === 0 ? undefined : { ...state, session: target.ref.id, checkpoints }
}

/** The order of the first checkpoint behind the last common one that the source alone has in its transcript. */
function endOfFork(checkpoints: readonly Checkpoint[], inSource: ReadonlySet<string>, inTarget: ReadonlySet<string>): number {
  const last = checkpoints.findLast(({ id }) => inTarget.has(id))?.order ?? -1
  return checkpoints.find(({ id, order }) => order > last && inSource.has(id))?.order ?? checkpoints.length
}
