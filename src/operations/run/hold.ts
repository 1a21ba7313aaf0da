import { lstatSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../../formats/format.js'
import { readJsonObject } from '../../fs/read-small.js'
import { systemErrorCode } from '../../model/errors.js'
import { ExitCode } from '../../model/exit-code.js'
import { finding, type Finding } from '../../model/finding.js'
import { dayMs } from '../../model/period.js'
import type { StorePlace } from '../../plan/sidecar.js'
import type { StepName } from './job.js'
import { leave } from './status-file.js'

const fileLimit = 1024 * 1024

/** How long a failure holds back, in milliseconds. */
const holdMs = dayMs

/** Why jobs remove nothing from a store at the moment. */
export interface Hold {
  readonly why: string
  /** ISO 8601; `null` when only `doctor --ack` ends it. */
  readonly until: string | null
}

/** A step that failed. */
export interface Failure {
  readonly step: StepName
  readonly exitCode: ExitCode
  readonly message: string
}

/**
 * Ends that are no failure: findings are protected one by one, another run that holds the lock does the work, a signal asked for
 * the end, and on a full disk removing is what helps. The brake and everything else is one.
 */
const harmless: readonly ExitCode[] = [
  ExitCode.done,
  ExitCode.findings,
  ExitCode.locked,
  ExitCode.noSpace,
  ExitCode.putOff,
  ExitCode.interrupted,
  ExitCode.terminated,
]

/** The first failure that has to be looked at before jobs go on removing, if there is one. */
export function holding(failures: readonly Failure[]): Failure | undefined {
  return failures.find(({ exitCode }) => !harmless.includes(exitCode))
}

/** Where a failure of a job is noted; the file is there as long as it holds. */
function failureFile(store: Pick<Store, 'sidecar'>): string {
  return join(store.sidecar, 'failure.json')
}

/** Notes a failure. Hold the store's lock. @throws NoSpaceError, FenceError, system errors */
export function noteFailure(place: StorePlace, run: { readonly job: string; readonly runId: string; readonly now: number }, failure: Failure): void {
  const { job, runId, now } = run
  leave(place, failureFile(place), { schemaVersion: 1, job, runId, at: new Date(now).toISOString(), ...failure })
}

/**
 * Whether a failure of an earlier run holds automatic removal back: for a day from the start of that run, or until
 * `forgetFailure`. A note that cannot be read holds too. Reads only.
 * @param now milliseconds since 1970
 */
export function heldBack(store: Pick<Store, 'sidecar'>, now: number): Hold | undefined {
  const file = failureFile(store)
  const read = readJsonObject(file, { follow: false, limit: fileLimit })
  if (read.kind === 'missing') return undefined
  if (read.kind === 'unusable') return { why: `${file}: ${read.reason}`, until: null }
  const { job, at, step, message } = read.value
  const time = typeof at === 'string' ? Date.parse(at) : NaN
  if (Number.isNaN(time)) return { why: `${file}: it does not say when`, until: null }
  if (now - time >= holdMs) return undefined
  return { why: `${String(job)} failed at ${String(at)}: ${String(step)}: ${String(message)}`, until: new Date(time + holdMs).toISOString() }
}

/** The hold as a finding. */
export function holdFinding(store: Pick<Store, 'sidecar'>, { why, until }: Hold): Finding {
  const end = until === null ? 'until somebody has looked' : `until ${until}, or until somebody has looked`
  return finding('removal-held', `jobs remove nothing ${end}: ${why}`, { path: failureFile(store) })
}

/** Lets jobs remove again. Returns whether there was a failure. @throws system errors */
export function forgetFailure(store: Pick<Store, 'sidecar'>): boolean {
  try {
    // Our folder, not what a link in its place leads to.
    if (!lstatSync(store.sidecar).isDirectory()) return false
    unlinkSync(failureFile(store))
    return true
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return false
    throw error
  }
}
