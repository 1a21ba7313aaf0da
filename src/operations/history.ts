import { join } from 'node:path'
import * as v from 'valibot'
import type { Store } from '../formats/format.js'
import { atomicWrite } from '../fs/atomic-write.js'
import { readSmallFile } from '../fs/read-small.js'
import type { PlanItem } from '../model/report.js'
import { appendLines } from '../plan/append-lines.js'
import { newToken } from '../plan/run-id.js'
import { Sidecar, type StorePlace } from '../plan/sidecar.js'
import { measure, sessionTotal } from './report/measure.js'

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0))

const entrySchema = v.object({
  /** ISO 8601. */
  time: v.pipe(v.string(), v.isoTimestamp()),
  job: v.string(),
  runId: v.string(),
  exitCode: v.number(),
  /** What there was after the run: conversations, files in backup folders, and bytes counted by inode. */
  sessions: count,
  backups: count,
  /** Of the agent's sessions: transcripts, backups, companion files, leftovers. */
  bytes: count,
  backupBytes: count,
  /** Of our own folder, the trash included. */
  ownBytes: count,
  /** What the run moved out of the store. */
  removedSessions: count,
  removedBytes: count,
})

/** One applied run of a job, and how large the store was after it. */
export type HistoryEntry = v.InferOutput<typeof entrySchema>

/** What a run says of itself. */
export interface HistoryRun {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly job: string
  readonly runId: string
  readonly exitCode: number
  /** What it did. */
  readonly done: readonly Pick<PlanItem, 'action' | 'bytes'>[]
}

/** Runs that are remembered, and lines that the file may have before the oldest go: more than a year of nights. */
export const historyLength = 400
const longest = historyLength + 100
const fileLimit = 4 * 1024 * 1024

/**
 * Measures a store after a run of a job and appends one line to `<sidecar>/history.ndjson` (R86: a trend file). The oldest lines
 * go when there are too many. Hold the store's lock.
 * @throws NoSpaceError, FenceError, system errors: the run is done all the same
 */
export function recordHistory(store: Store, run: HistoryRun): void {
  const { sessions, backups, areas } = measure(store)
  const entry: HistoryEntry = {
    time: new Date(run.now).toISOString(),
    job: run.job,
    runId: run.runId,
    exitCode: run.exitCode,
    sessions,
    backups,
    bytes: sessionTotal(areas),
    backupBytes: areas.backups,
    ownBytes: areas.own,
    removedSessions: run.done.filter(({ action }) => action === 'trash-session').length,
    removedBytes: run.done.reduce((sum, { bytes }) => sum + bytes, 0),
  }
  appendLines(store, historyFile(store), `${JSON.stringify(entry)}\n`)
  shorten(store)
}

/** The runs that are remembered, oldest first; a torn or foreign line is passed over, a file that cannot be read has none. */
export function readHistory(place: Pick<StorePlace, 'sidecar'>): HistoryEntry[] {
  return linesOf(place).flatMap((line) => entryOf(line) ?? []).slice(-historyLength)
}

function shorten(store: Store): void {
  const lines = linesOf(store)
  if (lines.length <= longest) return
  const sidecar = new Sidecar(store)
  const path = historyFile(store)
  const kept = lines.filter((line) => entryOf(line) !== undefined).slice(-historyLength)
  sidecar.withRoom(() => {
    atomicWrite(path, Buffer.from(kept.map((line) => `${line}\n`).join('')), { token: newToken() })
  })
  sidecar.own(path)
}

function linesOf(place: Pick<StorePlace, 'sidecar'>): string[] {
  const file = readSmallFile(historyFile(place), { follow: false, limit: fileLimit })
  return file.kind === 'bytes' ? file.bytes.toString('utf8').split('\n').filter((line) => line !== '') : []
}

function entryOf(line: string): HistoryEntry | undefined {
  try {
    const parsed = v.safeParse(entrySchema, JSON.parse(line))
    return parsed.success ? parsed.output : undefined
  } catch {
    return undefined
  }
}

function historyFile(place: Pick<StorePlace, 'sidecar'>): string {
  return join(place.sidecar, 'history.ndjson')
}
