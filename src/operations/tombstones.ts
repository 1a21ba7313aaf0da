import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import { atomicWrite } from '../fs/atomic-write.js'
import { systemErrorCode } from '../model/errors.js'
import type { Plan, RemoveAction } from '../plan/action.js'
import { appendLines } from '../plan/append-lines.js'
import type { StorePlace } from '../plan/sidecar.js'

const tombstoneSchema = v.object({
  session: v.string(),
  project: v.exactOptional(v.string()),
  /** ISO 8601. */
  firstActivity: v.exactOptional(v.string()),
  lastActivity: v.exactOptional(v.string()),
  bytes: v.number(),
  /** The command that removed it, and the run that `trash restore` takes it back from. */
  command: v.string(),
  runId: v.string(),
  removedAt: v.string(),
  reason: v.string(),
})

/** What is remembered of a session that was removed (R12, R124). */
export type Tombstone = v.InferOutput<typeof tombstoneSchema>

export interface RemovalFacts {
  readonly runId: string
  /** Milliseconds since 1970. */
  readonly now: number
  /** First activity of sessions where it is known, milliseconds since 1970. */
  readonly firstActivity?: ReadonlyMap<string, number>
}

/** One tombstone for each session of the plan that was removed. `removed` are ids, as the run reports them done. */
export function tombstonesOf(plan: Plan, removed: Iterable<string>, facts: RemovalFacts): Tombstone[] {
  const done = new Set(removed)
  return plan.actions.flatMap((action) => {
    if (action.kind !== 'trash-session' || !done.has(action.session)) return []
    return [tombstoneOf(action, plan.command, facts)]
  })
}

function tombstoneOf(action: RemoveAction, command: string, { runId, now, firstActivity }: RemovalFacts): Tombstone {
  const { session, project, lastActivity, bytes, reason } = action
  const first = firstActivity?.get(session)
  return {
    session,
    ...(project === undefined ? {} : { project }),
    ...(first === undefined ? {} : { firstActivity: new Date(first).toISOString() }),
    ...(lastActivity === undefined ? {} : { lastActivity: new Date(lastActivity).toISOString() }),
    bytes,
    command,
    runId,
    removedAt: new Date(now).toISOString(),
    reason,
  }
}

/**
 * Appends one JSON line each to `<sidecar>/tombstones.jsonl`, after the sessions are gone. Hold the store's lock.
 * @throws system errors, for instance of a full disk: the sessions are removed all the same
 */
export function appendTombstones(place: StorePlace, tombstones: readonly Tombstone[]): void {
  if (tombstones.length === 0) return
  appendLines(place, tombstonePath(place), tombstones.map((tombstone) => `${JSON.stringify(tombstone)}\n`).join(''))
}

/** The newest tombstone of the session with this id, or of the only one whose id begins so. */
export function findTombstone(place: StorePlace, idOrPrefix: string): Tombstone | undefined {
  const newest = new Map<string, Tombstone>()
  for (const tombstone of readTombstones(place)) {
    if (tombstone.session.startsWith(idOrPrefix)) newest.set(tombstone.session, tombstone)
  }
  const exact = newest.get(idOrPrefix)
  return exact ?? (newest.size === 1 ? [...newest.values()][0] : undefined)
}

/** Every tombstone, oldest first; lines that cannot be read are passed over. */
export function readTombstones(place: StorePlace): Tombstone[] {
  let text: string
  try {
    text = readFileSync(tombstonePath(place), 'utf8')
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return []
    throw error
  }
  return text.split('\n').flatMap((line) => {
    try {
      const parsed = v.safeParse(tombstoneSchema, JSON.parse(line))
      return parsed.success ? [parsed.output] : []
    } catch {
      return []
    }
  })
}

/**
 * Writes the ids of removed sessions, one a line, for supervisors that shall drop them (R124).
 * @param token hex digits, new for each call
 * @throws NoSpaceError, system errors
 */
export function writeRemovedOut(path: string, sessions: readonly string[], token: string): void {
  atomicWrite(path, Buffer.from(sessions.map((session) => `${session}\n`).join('')), { mode: 0o600, token })
}

function tombstonePath(place: StorePlace): string {
  return join(place.sidecar, 'tombstones.jsonl')
}
