import type { Store } from '../../formats/format.js'
import type { PathProbe } from '../../fs/path-probe.js'
import { isFields } from '../../model/fields.js'
import type { ErrorItem, Report } from '../../model/report.js'
import { effectiveRetention, type Retention } from '../../model/retention.js'
import { dueEntries, listTrash, type TrashEntry } from '../../plan/trash.js'
import { configLayers } from '../../settings/config.js'
import { errorWords } from '../error-words.js'
import { readHistory, type HistoryEntry } from '../history.js'
import { readRows } from '../list.js'
import { findDeadProjects, type DeadProjects } from '../purge/dead-projects.js'
import type { Job } from '../run/job.js'
import { runJob } from '../run/run-job.js'
import type { JobContext } from '../run/steps.js'
import type { SessionRow } from '../session-facts.js'
import { readTombstones, type Tombstone } from '../tombstones.js'
import { measure, sessionTotal, type Areas, type SessionBytes } from './measure.js'

/** What the report needs: that of a job, and what the disk says about projects. */
export interface ReportContext extends Omit<JobContext, 'apply'> {
  readonly probe: PathProbe
}

/** A session with all that it takes up; `total` is the sum of `size`. */
interface SessionUse {
  readonly row: SessionRow
  readonly size: SessionBytes
  readonly total: number
}

/** What the sessions of one project take up; `undefined` is what names none. */
interface ProjectUse {
  readonly project: string | undefined
  readonly sessions: number
  readonly bytes: number
  /** Milliseconds since 1970. */
  readonly lastActivity?: number
}

/** What waits in the trash, and how much of it the next night would remove for good. Bytes as counted when it was put there. */
interface TrashUse {
  readonly entries: number
  readonly bytes: number
  readonly due: number
  readonly dueBytes: number
}

/** One store as the report shows it: what there is, what became of it, and what comes next. */
export interface StoreFacts {
  readonly root: string
  readonly format: string
  readonly areas: Areas
  readonly backups: number
  /** Largest first. */
  readonly sessions: readonly SessionUse[]
  readonly projects: readonly ProjectUse[]
  /** Tracked path to the bytes of its backups, largest first. */
  readonly paths: readonly (readonly [path: string, bytes: number])[]
  /** Version number to how many backups have it, in rising order (R93). */
  readonly versions: readonly (readonly [version: number, backups: number])[]
  readonly retention: Retention
  /** Oldest first. */
  readonly history: readonly HistoryEntry[]
  /** Sessions that were removed and did not come back, the newest first (R12). */
  readonly removed: readonly Tombstone[]
  readonly trash: TrashUse
  /** Projects whose folder is gone (R91). */
  readonly dead: readonly DeadProjects[]
  /** A preview of the job: what the next night would find and do. */
  readonly night: Report
  /** What could not be looked at. */
  readonly errors: readonly ErrorItem[]
}

/** Puts together all there is to say about a store. Reads only. Throws what reading the store throws. */
export async function gather(store: Store, job: Job, context: ReportContext): Promise<StoreFacts> {
  const { now, config, probe } = context
  const errors: ErrorItem[] = []
  const inventory = store.inventory()
  const size = measure(store, inventory)
  const rows = readRows(store, context, inventory)
  const sessions = usesOf(rows, size.bySession)
  const trash = attempt(errors, store.sidecar, () => listTrash(store), [])
  const removed = attempt(errors, store.sidecar, () => readTombstones(store), [])
  return {
    root: store.root,
    format: store.format,
    areas: size.areas,
    backups: rows.reduce((sum, { backups }) => sum + backups, 0),
    sessions,
    projects: projectsOf(sessions),
    paths: pathsOf(rows),
    versions: versionsOf(rows),
    retention: effectiveRetention([...store.retention(), ...configLayers(config, undefined)]),
    history: readHistory(store),
    removed: removed.filter(({ session }) => !size.bySession.has(session)).toReversed(),
    trash: trashOf(trash, config.graceMs, now),
    dead: findDeadProjects(store, probe),
    night: await runJob([store], job, { ...context, apply: false }),
    errors: [...size.errors, ...errors],
  }
}

/** Why the next night would not do all of its steps, in words, each once. */
export function nightNotes({ errors, extra }: Report): string[] {
  const steps = Array.isArray(extra?.steps) ? (extra.steps as readonly unknown[]).filter(isFields) : []
  const leftOut = steps.flatMap(({ step, state, message }) => (state === 'left out' ? [`${String(step)}: ${String(message)}`] : []))
  return [...new Set([...errors.map(({ message }) => message), ...leftOut])]
}

function usesOf(rows: readonly SessionRow[], bySession: ReadonlyMap<string, SessionBytes>): SessionUse[] {
  return rows
    .map((row) => {
      const size = bySession.get(row.id) ?? { transcripts: 0, backups: 0, companions: 0, leftovers: 0 }
      return { row, size, total: sessionTotal(size) }
    })
    .sort((a, b) => b.total - a.total || (a.row.id < b.row.id ? -1 : 1))
}

function projectsOf(sessions: readonly SessionUse[]): ProjectUse[] {
  const projects = new Map<string | undefined, ProjectUse>()
  for (const { row, total } of sessions) {
    const known = projects.get(row.project)
    const last = Math.max(known?.lastActivity ?? 0, row.lastActivity ?? 0)
    projects.set(row.project, {
      project: row.project,
      sessions: (known?.sessions ?? 0) + 1,
      bytes: (known?.bytes ?? 0) + total,
      ...(last === 0 ? {} : { lastActivity: last }),
    })
  }
  return [...projects.values()].sort((a, b) => b.bytes - a.bytes || ((a.project ?? '') < (b.project ?? '') ? -1 : 1))
}

function pathsOf(rows: readonly SessionRow[]): [string, number][] {
  const paths = new Map<string, number>()
  for (const row of rows) for (const [path, bytes] of row.paths) paths.set(path, (paths.get(path) ?? 0) + bytes)
  return [...paths].sort(([one, a], [other, b]) => b - a || (one < other ? -1 : 1))
}

function versionsOf(rows: readonly SessionRow[]): [number, number][] {
  const versions = new Map<number, number>()
  for (const row of rows) for (const [version, count] of row.versions) versions.set(version, (versions.get(version) ?? 0) + count)
  return [...versions].sort(([a], [b]) => a - b)
}

function trashOf(entries: readonly TrashEntry[], graceMs: number, now: number): TrashUse {
  const due = dueEntries(entries, graceMs, now)
  const bytesOf = (some: readonly TrashEntry[]): number => some.reduce((sum, { bytes }) => sum + bytes, 0)
  return { entries: entries.length, bytes: bytesOf(entries), due: due.length, dueBytes: bytesOf(due) }
}

/** Our own folder may be damaged, or of a newer version: the rest is shown all the same. */
function attempt<T>(errors: ErrorItem[], path: string, read: () => T, otherwise: T): T {
  try {
    return read()
  } catch (error) {
    const { code, message } = errorWords(error)
    errors.push({ code, path, message })
    return otherwise
  }
}
