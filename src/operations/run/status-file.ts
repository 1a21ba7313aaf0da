import { join } from 'node:path'
import type { Store } from '../../formats/format.js'
import { atomicWrite } from '../../fs/atomic-write.js'
import { readJsonObject } from '../../fs/read-small.js'
import type { ExitCode } from '../../model/exit-code.js'
import { isFields } from '../../model/fields.js'
import type { Json } from '../../model/report.js'
import { newToken } from '../../plan/run-id.js'
import { Sidecar, type StorePlace } from '../../plan/sidecar.js'
import type { StepName } from './job.js'

const statusLimit = 1024 * 1024

/** What a run leaves of itself. Times are ISO 8601. */
export interface RunStatus {
  readonly job: string
  readonly runId: string
  readonly startedAt: string
  readonly finishedAt: string
  readonly exitCode: ExitCode
  readonly actions: number
  readonly bytes: number
  readonly steps: readonly { readonly step: StepName; readonly state: string; readonly [field: string]: Json }[]
}

/** Where the last scheduled run of a store leaves its result. */
export function statusFile(store: Pick<Store, 'sidecar'>): string {
  return join(store.sidecar, 'status.json')
}

/** What the last scheduled run left, or null: only fields of JSON, as they are. */
export function lastRun(store: Pick<Store, 'sidecar'>): Json {
  const read = readJsonObject(statusFile(store), { follow: false, limit: statusLimit })
  return read.kind === 'object' ? (read.value as Json) : null
}

/** When a job last did a step on a store, milliseconds since 1970; `undefined` when it never did, or that is not known. */
export function lastDone(store: Pick<Store, 'sidecar'>, job: string, step: StepName): number | undefined {
  const done = jobsIn(lastRun(store))[job]
  const time = isFields(done) && isFields(done.done) ? done.done[step] : undefined
  const at = typeof time === 'string' ? Date.parse(time) : NaN
  return Number.isNaN(at) ? undefined : at
}

/** The last result of each job, by its name, in what `lastRun` gives. */
export function jobsIn(status: unknown): Readonly<Record<string, unknown>> {
  return isFields(status) && isFields(status.jobs) ? status.jobs : {}
}

/**
 * Leaves the result of a run for `status`, `doctor` and schedulers: that of the last run, and in `jobs` the last one of each
 * job, with the time of every step that was ever done. Hold the store's lock.
 * @throws NoSpaceError, FenceError, system errors
 */
export function writeStatus(place: StorePlace, status: RunStatus): void {
  const { job, runId, startedAt, finishedAt, exitCode, steps } = status
  const before = jobsIn(lastRun(place))
  const known = before[job]
  const done: Record<string, unknown> = isFields(known) && isFields(known.done) ? { ...known.done } : {}
  for (const { step, state } of steps) if (state === 'done') done[step] = startedAt
  const jobs = { ...before, [job]: { runId, startedAt, finishedAt, exitCode, done } }
  leave(place, statusFile(place), { schemaVersion: 1, ...status, jobs })
}

/** Writes a small JSON file of ours atomically. @throws NoSpaceError, FenceError, system errors */
export function leave(place: StorePlace, file: string, value: unknown): void {
  const sidecar = new Sidecar(place)
  sidecar.prepare()
  sidecar.withRoom(() => {
    atomicWrite(file, Buffer.from(`${JSON.stringify(value, undefined, 2)}\n`), { token: newToken() })
  })
  sidecar.own(file)
}
