import { atomicWrite } from '../../fs/atomic-write.js'
import { readJsonObject } from '../../fs/read-small.js'

/** How the runs of a daemon went so far. */
export interface DaemonCounts {
  readonly runs: number
  /** Runs that ended with anything but 0. */
  readonly failed: number
  /** Times at which the run before was still going on. */
  readonly skipped: number
  /** Times that passed while nobody was awake; made up by one run. */
  readonly missed: number
}

/** The last run of a daemon; times are ISO 8601. */
export interface DaemonRunStatus {
  readonly due: string
  readonly startedAt: string
  readonly finishedAt: string
  readonly exitCode: number
  readonly actions: number
  readonly bytes: number
  readonly message?: string
}

/** What `--status-file` holds. A health check looks at `updatedAt` (once a minute while waiting) and at `lastRun.exitCode`. */
export interface DaemonStatus {
  readonly schemaVersion: 1
  readonly pid: number
  readonly job: string
  /** The cron expression of when it runs. */
  readonly at: string
  readonly state: 'waiting' | 'running' | 'stopping' | 'stopped'
  readonly startedAt: string
  readonly updatedAt: string
  /** Written before a run begins, so that a run that kills the process is not begun again and again. */
  readonly next: string
  readonly counts: DaemonCounts
  readonly lastRun: DaemonRunStatus | null
}

/** Writes the status at once and whole. @throws system errors, NoSpaceError */
export function writeDaemonStatus(path: string, status: DaemonStatus, token: string): void {
  atomicWrite(path, Buffer.from(`${JSON.stringify(status, undefined, 2)}\n`), { token, mode: 0o644 })
}

/** What an earlier daemon for the same job and times left: when it would have run next, and whether it ended in the middle of a run. */
export function earlierDaemon(path: string, job: string, at: string): { readonly next: number; readonly interrupted: boolean } | undefined {
  const read = readJsonObject(path, { follow: true, limit: 64 * 1024 })
  if (read.kind !== 'object' || read.value.schemaVersion !== 1 || read.value.job !== job || read.value.at !== at) return undefined
  const { state, next: text } = read.value
  const next = typeof text === 'string' ? Date.parse(text) : Number.NaN
  return Number.isNaN(next) ? undefined : { next, interrupted: state === 'running' || state === 'stopping' }
}
