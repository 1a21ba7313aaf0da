import type { Inventory, Machine, Store } from '../formats/format.js'
import { NoMatchError } from '../model/errors.js'
import { ExitCode } from '../model/exit-code.js'
import { isSameProject } from '../model/project-path.js'
import { noItems, type Json, type Report } from '../model/report.js'
import { isConversation } from '../model/session.js'
import { InodeCount, sessionRow, type SessionRow } from './session-facts.js'

export interface ListContext {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly machine: Machine
  progress?(done: number, total: number): void
}

export interface ListOptions {
  /** Only sessions that were started in this folder. */
  readonly project?: string
}

/** Every session of a store, the most recently active one first. */
export function readRows(store: Store, context: ListContext, inventory: Inventory = store.inventory()): SessionRow[] {
  const inodes = new InodeCount()
  const live = new Set(store.live(context.machine, context.now).live.map(({ session }) => session))
  const refs = inventory.sessions.filter(isConversation)
  const rows = refs.map((ref, index) => {
    context.progress?.(index + 1, refs.length)
    return sessionRow(store, ref, store.read(ref, { now: context.now }), inodes, live.has(ref.id))
  })
  return rows.sort((a, b) => (b.lastActivity ?? 0) - (a.lastActivity ?? 0) || (a.id < b.id ? -1 : 1))
}

/** Lists sessions. Throws `NoMatchError` when a project is named and no session was started there. */
export function list(stores: readonly Store[], options: ListOptions, context: ListContext): Report {
  const { project } = options
  const rows = stores
    .flatMap((store) => readRows(store, context))
    .filter((row) => project === undefined || (row.project !== undefined && isSameProject(project, row.project)))
  if (project !== undefined && rows.length === 0) {
    throw new NoMatchError(`no session was started in ${project}`, { hint: 'rewind-admin status --top 10 shows the projects there are' })
  }
  return {
    command: 'list',
    roots: stores.map((store) => store.root),
    applied: false,
    summary: { sessions: rows.length, live: rows.filter((row) => row.live).length, bytes: rows.reduce((sum, row) => sum + row.bytes, 0) },
    ...noItems,
    exitCode: ExitCode.done,
    extra: { sessions: rows.map(rowJson) },
  }
}

/** A session in the JSON contract (design section 5). */
export function rowJson(row: SessionRow): Json {
  return {
    id: row.id,
    project: row.project ?? null,
    lastActivity: row.lastActivity === undefined ? null : new Date(row.lastActivity).toISOString(),
    checkpoints: row.checkpoints,
    backups: row.backups,
    bytes: row.bytes,
    transcriptBytes: row.transcriptBytes,
    ...(row.historyBytes === undefined ? {} : { historyBytes: row.historyBytes }),
    live: row.live,
  }
}
