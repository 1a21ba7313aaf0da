import { join } from 'node:path'
import type { Store } from '../../formats/format.js'
import { atomicWrite } from '../../fs/atomic-write.js'
import type { LockOptions } from '../../fs/lock.js'
import { readJsonObject } from '../../fs/read-small.js'
import { RewindAdminError, systemErrorCode, UsageError } from '../../model/errors.js'
import { ExitCode, worstExit } from '../../model/exit-code.js'
import { isFields } from '../../model/fields.js'
import { finding } from '../../model/finding.js'
import type { ErrorItem, Json, Report } from '../../model/report.js'
import { newToken } from '../../plan/run-id.js'
import { lockStore, Sidecar } from '../../plan/sidecar.js'

/*
 * The first scheduled run of an installation on a store is a preview. What was previewed is noted beside the store itself, by the
 * name of the installation that stands in the scheduled command line: no setting of the environment can hide the note, a store
 * that turns up later gets a preview of its own, and a note that is lost costs one more preview and never a session.
 */

const noteLimit = 256 * 1024
/** Installations that are remembered per store; the oldest go first. */
const mostNotes = 50

interface Note {
  readonly installation: string
  readonly job: string
  /** ISO 8601. */
  readonly previewedAt: string
}

/** Where a store's previews are noted. */
export function noteFile(store: Pick<Store, 'sidecar'>): string {
  return join(store.sidecar, 'scheduled.json')
}

/** True until a preview by this installation was noted beside the store. */
export function firstRunIsPreview(store: Pick<Store, 'sidecar'>, installation: string): boolean {
  return !notesOf(store).some((note) => note.installation === installation)
}

/** Throws UsageError when the value of `--scheduled` is no name of an installation: 8 to 32 hex digits. */
export function checkInstallation(text: string): void {
  if (!/^[0-9a-f]{8,32}$/.test(text)) throw new UsageError('--scheduled is for command lines that schedule install and schedule print write')
}

export interface ScheduledRun {
  readonly job: string
  /** What `--scheduled` holds: hex digits. */
  readonly installation: string
  readonly apply: boolean
  /** Milliseconds since 1970. */
  readonly now: number
  readonly lock: Pick<LockOptions, 'pid' | 'host' | 'processes' | 'waitMs'>
  readonly signal?: AbortSignal
}

/**
 * Runs a job that a scheduler started: as a preview on stores that this installation has not seen, as it is on the others.
 * @param run the job on some stores, acting or not
 * @throws UsageError when `--scheduled` holds no name of an installation; what `run` throws
 */
export async function runScheduled(stores: readonly Store[], options: ScheduledRun, run: (stores: readonly Store[], apply: boolean) => Promise<Report>): Promise<Report> {
  checkInstallation(options.installation)
  const fresh = options.apply ? stores.filter((store) => firstRunIsPreview(store, options.installation)) : []
  if (fresh.length === 0) return run(stores, options.apply)
  const known = stores.filter((store) => !fresh.includes(store))
  const acted = known.length === 0 ? undefined : await run(known, true)
  const stopped = (): boolean => options.signal?.aborted === true
  if (stopped() && acted !== undefined) return acted
  const preview = await run(fresh, false)
  const errors: ErrorItem[] = []
  // A preview that was cut short has not shown everything.
  if (!stopped()) for (const store of fresh) errors.push(...(await note(store, options)))
  return together(preview, acted, errors)
}

/** What was previewed is never listed among what was done. */
function together(preview: Report, acted: Report | undefined, errors: readonly ErrorItem[]): Report {
  const would = preview.plan.length
  const message = `first scheduled run on ${preview.roots.join(', ')}, so it was a preview: ${String(would)} actions would have been taken; the next run acts`
  const reports = acted === undefined ? [preview] : [acted, preview]
  const base = acted ?? preview
  const steps = reports.flatMap((report) => (Array.isArray(report.extra?.steps) ? (report.extra.steps as readonly Json[]) : []))
  return {
    ...base,
    roots: reports.flatMap(({ roots }) => roots),
    summary: acted === undefined ? preview.summary : addedUp(acted.summary, preview.summary),
    findings: [finding('first-run-preview', message), ...reports.flatMap(({ findings }) => findings)],
    kept: reports.flatMap(({ kept }) => kept),
    errors: [...reports.flatMap((report) => report.errors), ...errors],
    exitCode: worstExit([...reports.map(({ exitCode }) => exitCode), ...(errors.length > 0 ? [ExitCode.partial] : [])]),
    extra: { ...base.extra, ...(steps.length > 0 ? { steps } : {}), firstRun: { roots: [...preview.roots], plan: preview.plan.map((item) => ({ ...item })) } },
    next: `The first scheduled run on a store is a preview; the next one acts on ${preview.roots.join(', ')}.`,
  }
}

/** Counts of stores and steps are those of all; what was done is what was done. */
function addedUp(acted: Report['summary'], preview: Report['summary']): Report['summary'] {
  const sum = (name: string): Json => Number(acted[name] ?? 0) + Number(preview[name] ?? 0)
  return { ...acted, stores: sum('stores'), steps: sum('steps'), failed: sum('failed') }
}

/** Notes the preview, under the store's lock. A note that cannot be made is an error of the run: the next one is a preview again. */
async function note(store: Store, { job, installation, now, lock }: ScheduledRun): Promise<ErrorItem[]> {
  try {
    const held = await lockStore(store, { ...lock, command: `run ${job}`, now, token: newToken() })
    try {
      const notes = [...notesOf(store), { installation, job, previewedAt: new Date(now).toISOString() }].slice(-mostNotes)
      const sidecar = new Sidecar(store)
      sidecar.withRoom(() => {
        atomicWrite(noteFile(store), Buffer.from(`${JSON.stringify({ schemaVersion: 1, previewed: notes }, undefined, 2)}\n`), { token: newToken() })
      })
      sidecar.own(noteFile(store))
    } finally {
      held.release()
    }
    return []
  } catch (error) {
    const code = error instanceof RewindAdminError ? error.code : systemErrorCode(error)
    if (code === undefined) throw error
    const reason = error instanceof Error ? error.message : String(error)
    return [{ code, path: noteFile(store), message: `the preview could not be noted, so the next run is a preview again: ${reason}` }]
  }
}

function notesOf(store: Pick<Store, 'sidecar'>): Note[] {
  const read = readJsonObject(noteFile(store), { follow: false, limit: noteLimit })
  if (read.kind !== 'object' || read.value.schemaVersion !== 1 || !Array.isArray(read.value.previewed)) return []
  return (read.value.previewed as unknown[]).flatMap((value) => {
    if (!isFields(value)) return []
    const { installation, job, previewedAt } = value
    return typeof installation === 'string' && typeof job === 'string' && typeof previewedAt === 'string' ? [{ installation, job, previewedAt }] : []
  })
}
