import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { ReadOptions, Store } from '../formats/format.js'
import { finding, type Finding } from '../model/finding.js'
import { withState } from '../model/session-state.js'
import type { SessionReading, SessionRef } from '../model/session.js'
import { withCapped } from './capped.js'
import { readState, stateFile, statesFolder } from './state-file.js'

/**
 * What a session says, together with our own state of it: checkpoints that the transcript no longer names, because it was
 * swept, compacted or damaged, come from there, and a finding says so; backups that a cap of ours removed count as dropped. The
 * store alone decides what may be removed.
 */
export function readSession(store: Store, ref: SessionRef, options: ReadOptions): SessionReading {
  return completeReading(store, ref, store.read(ref, options))
}

/** The same for a session that was read already. */
export function completeReading(store: Store, ref: SessionRef, reading: SessionReading): SessionReading {
  return withCapped(store, withOwnState(store, ref, reading))
}

function withOwnState(store: Store, ref: SessionRef, reading: SessionReading): SessionReading {
  const file = readState(store, ref.id)
  if (file.kind === 'missing') return reading
  const place = { session: ref.id, path: stateFile(store, ref.id) }
  if (file.kind !== 'state') {
    const message = file.kind === 'newer' ? 'our own state of the session was written by a newer version' : `our own state of the session cannot be used: ${file.reason}`
    return withFinding(reading, finding('state-unusable', message, place))
  }
  const project = reading.project ?? file.state.project
  const { history, added } = withState(reading.history, file.state, project)
  if (added.length === 0) return reading
  const message = `${String(added.length)} checkpoint${added.length === 1 ? '' : 's'} that the transcript no longer names`
  const merged = withFinding(reading, finding('checkpoints-from-state', message, place))
  return { ...merged, history, ...(project === undefined ? {} : { project }), folders: reading.folders.length > 0 || project === undefined ? reading.folders : [project] }
}

/** The same for many sessions: whether there is any state of ours is looked up once. */
export function sessionReader(store: Store): (ref: SessionRef, options: ReadOptions) => SessionReading {
  const any = existsSync(join(store.sidecar, statesFolder))
  return (ref, options) => (any ? readSession(store, ref, options) : store.read(ref, options))
}

function withFinding(reading: SessionReading, found: Finding): SessionReading {
  return { ...reading, findings: [...reading.findings, found] }
}
