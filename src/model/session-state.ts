import { posix } from 'node:path'
import type { BackupRecord } from './backup.js'
import type { Checkpoint, History, Reference } from './history.js'
import type { SessionReading } from './session.js'
import type { Writable } from './writable.js'

/**
 * The checkpoints of one session in one shape, whatever generation of whatever format they come from: what our own state file
 * holds, so that they outlive the transcript (seeds: "sidecar state"). Keys inside the project are relative to it.
 */
export interface SessionState {
  readonly session: string
  readonly project?: string
  /** In the order in which they were opened. */
  readonly checkpoints: readonly Omit<Checkpoint, 'order'>[]
  readonly originals: ReadonlyMap<string, BackupRecord>
  readonly tracked: readonly string[]
}

/** What a reading says, as a state; `undefined` when it holds no checkpoint. */
export function stateOf(reading: SessionReading): SessionState | undefined {
  const { id, project, history } = reading
  if (history.checkpoints.length === 0) return undefined
  const relative = (key: string): string => relativeKey(key, project)
  return {
    session: id,
    ...(project === undefined ? {} : { project }),
    checkpoints: history.checkpoints.map(({ id, aliases, kind, time, files }) => ({
      id,
      ...(aliases === undefined ? {} : { aliases }),
      ...(kind === undefined ? {} : { kind }),
      ...(time === undefined ? {} : { time }),
      files: withKeys(files, relative),
    })),
    originals: withKeys(history.originals, relative),
    tracked: [...new Set([...history.tracked].map(relative))],
  }
}

/** A key inside the project as a path relative to it; every other key as it is. */
export function relativeKey(key: string, project: string | undefined): string {
  if (project === undefined || !posix.isAbsolute(key) || !posix.isAbsolute(project)) return key
  const inside = posix.relative(project, key)
  // Joined to the project again it must be the same path.
  const isInside = inside !== '' && inside !== '..' && !inside.startsWith('../')
  return isInside && posix.join(project, inside) === posix.normalize(key) ? inside : key
}

function withKeys(files: ReadonlyMap<string, BackupRecord>, change: (key: string) => string): Map<string, BackupRecord> {
  const changed = new Map<string, BackupRecord>()
  // A key that was relative already goes before one that becomes it.
  for (const [key, record] of files) if (change(key) === key) changed.set(key, record)
  for (const [key, record] of files) if (!changed.has(change(key))) changed.set(change(key), record)
  return changed
}

/** `older` with everything that `newer` says; no checkpoint of either is lost, and `newer` is right where both say something. */
export function mergeStates(older: SessionState, newer: SessionState): SessionState {
  const own = new Map(newer.checkpoints.map((checkpoint) => [checkpoint.id, checkpoint]))
  const project = newer.project ?? older.project
  return {
    session: newer.session,
    ...(project === undefined ? {} : { project }),
    checkpoints: mergeOrder(older.checkpoints, newer.checkpoints).map((checkpoint) => own.get(checkpoint.id) ?? checkpoint),
    originals: new Map([...newer.originals, ...older.originals]),
    tracked: [...new Set([...older.tracked, ...newer.tracked])],
  }
}

/** A path at or below `from` as it is once that folder is `to`, by whole names; every other text as it is. */
export function movedPath(path: string, from: string, to: string): string {
  if (path === from) return to
  const base = from.endsWith('/') ? from : `${from}/`
  return path.startsWith(base) ? `${to.endsWith('/') ? to : `${to}/`}${path.slice(base.length)}` : path
}

/** A state of a session whose project lay at or below `from`, which is now `to`. */
export function movedState(state: SessionState, from: string, to: string): SessionState {
  const moved = (path: string): string => movedPath(path, from, to)
  const records = (files: ReadonlyMap<string, BackupRecord>): Map<string, BackupRecord> =>
    new Map([...files].map(([key, record]) => [moved(key), record.parent === undefined ? record : { ...record, parent: moved(record.parent) }]))
  return {
    ...state,
    ...(state.project === undefined ? {} : { project: moved(state.project) }),
    checkpoints: state.checkpoints.map((checkpoint) => ({ ...checkpoint, files: records(checkpoint.files) })),
    originals: records(state.originals),
    tracked: state.tracked.map(moved),
  }
}

/** Both lists as one: what only the first has stands before the next one that both have, else before all that is new. */
function mergeOrder<T extends { readonly id: string }>(first: readonly T[], second: readonly T[]): T[] {
  const inSecond = new Set(second.map(({ id }) => id))
  const waiting = new Map<string | undefined, T[]>()
  let gathered: T[] = []
  for (const each of first) {
    if (!inSecond.has(each.id)) gathered.push(each)
    else {
      waiting.set(each.id, gathered)
      gathered = []
    }
  }
  const inFirst = new Set(first.map(({ id }) => id))
  const merged: T[] = []
  let rest = gathered
  let known = second.filter(({ id }) => inFirst.has(id)).length
  for (const each of second) {
    if (known === 0) {
      merged.push(...rest)
      rest = []
    }
    if (inFirst.has(each.id)) known -= 1
    merged.push(...(waiting.get(each.id) ?? []), each)
  }
  return [...merged, ...rest]
}

/**
 * A history with the checkpoints of a state that it no longer names, and the ids of those. What the history says itself stays
 * as it is.
 */
export function withState(history: History, state: SessionState, project: string | undefined): { readonly history: History; readonly added: readonly string[] } {
  const own = new Set(history.checkpoints.map(({ id }) => id))
  const added = state.checkpoints.filter(({ id }) => !own.has(id))
  if (added.length === 0) return { history, added: [] }
  const keys = new Map([...history.tracked].map((key) => [relativeKey(key, project), key]))
  const asTracked = (key: string): string => keys.get(key) ?? key
  const restored = state.checkpoints.map((checkpoint) => ({ ...checkpoint, files: withKeys(checkpoint.files, asTracked) }))
  const byId = new Map(history.checkpoints.map((checkpoint) => [checkpoint.id, checkpoint]))
  const checkpoints = mergeOrder<Omit<Checkpoint, 'order'>>(restored, history.checkpoints).map(
    (checkpoint, order): Checkpoint => ({ ...(byId.get(checkpoint.id) ?? checkpoint), order }),
  )
  const originals = new Map([...history.originals, ...[...withKeys(state.originals, asTracked)].filter(([key]) => !history.originals.has(key))])
  return {
    added: added.map(({ id }) => id),
    history: {
      ...history,
      checkpoints,
      originals,
      tracked: new Set([...history.tracked, ...state.tracked.map(asTracked)]),
      references: withReferences(history, checkpoints, own),
    },
  }
}

/** Mentions of the history at their new places, and those of the checkpoints that came in. */
function withReferences(history: History, checkpoints: readonly Checkpoint[], own: ReadonlySet<string>): Map<string, Reference> {
  const places = checkpoints.filter(({ id }) => own.has(id)).map(({ order }) => order)
  const references = new Map<string, Writable<Reference>>()
  for (const [name, reference] of history.references) {
    references.set(name, { ...reference, oldest: places[reference.oldest] ?? reference.oldest, newest: places[reference.newest] ?? reference.newest })
  }
  for (const { id, order, files } of checkpoints) {
    if (own.has(id)) continue
    for (const [path, record] of files) {
      if (record.name === null || record.unusable !== undefined) continue
      const known = references.get(record.name)
      if (known === undefined) references.set(record.name, referenceTo(record.name, path, record, order))
      else {
        known.oldest = Math.min(known.oldest, order)
        known.newest = Math.max(known.newest, order)
      }
    }
  }
  return references
}

function referenceTo(name: string, path: string, { version, time, parent }: BackupRecord, order: number): Writable<Reference> {
  return {
    name,
    path,
    version,
    oldest: order,
    newest: order,
    pinned: false,
    ...(time === undefined ? {} : { time }),
    ...(parent === undefined ? {} : { parent }),
  }
}
