import type { Store } from '../../formats/format.js'
import { RewindAdminError } from '../../model/errors.js'
import { ExitCode, worstExit } from '../../model/exit-code.js'
import type { ErrorItem, Json, Report } from '../../model/report.js'
import { rowJson } from '../list.js'
import type { Job } from '../run/job.js'
import { retentionJson } from '../status.js'
import { gather, nightNotes, type ReportContext, type StoreFacts } from './gather.js'
import { sessionTotal } from './measure.js'

export interface StoresReport {
  readonly report: Report
  readonly stores: readonly StoreFacts[]
}

/** Removed sessions that the JSON names; all of them stand in `tombstones.jsonl`. */
const removedShown = 100

/**
 * What there is, how it grew, what the last nights removed and what the next one would (R12, R86, R91, R93). `night` is the job that
 * runs at night. Never writes. What a night would stumble over is told, but is no failure of the report: its exit code is 0, or 3
 * when something could not be looked at. Of one store it throws what reading throws; of several, that is an error in the report.
 */
export async function reportOn(stores: readonly Store[], night: Job, context: ReportContext): Promise<StoresReport> {
  const facts: StoreFacts[] = []
  const errors: ErrorItem[] = []
  const codes: ExitCode[] = []
  for (const store of stores) {
    context.signal?.throwIfAborted()
    try {
      const found = await gather(store, night, context)
      facts.push(found)
      errors.push(...found.errors)
      if (found.errors.length > 0) codes.push(ExitCode.partial)
    } catch (error) {
      if (stores.length === 1 || !(error instanceof RewindAdminError)) throw error
      errors.push({ code: error.code, path: store.root, message: error.message })
      codes.push(error.exitCode)
    }
  }
  const plan = facts.flatMap(({ night: { plan: items } }) => items)
  const report: Report = {
    command: 'report',
    roots: stores.map((store) => store.root),
    applied: false,
    summary: summaryOf(facts),
    findings: facts.flatMap(({ night: { findings } }) => findings),
    plan,
    kept: facts.flatMap(({ night: { kept } }) => kept),
    errors,
    exitCode: worstExit(codes),
    extra: { stores: facts.map(storeJson) },
    ...(plan.length === 0 ? {} : { next: `rewind-admin run ${night.name} --apply` }),
  }
  return { report, stores: facts }
}

function summaryOf(facts: readonly StoreFacts[]): Report['summary'] {
  const sum = (of: (store: StoreFacts) => number): number => facts.reduce((total, store) => total + of(store), 0)
  return {
    stores: facts.length,
    sessions: sum(({ sessions }) => sessions.length),
    backups: sum(({ backups }) => backups),
    bytes: sum(({ areas }) => sessionTotal(areas)),
    ownBytes: sum(({ areas }) => areas.own),
    removedSessions: sum(({ removed }) => removed.length),
    nextActions: sum(({ night }) => night.plan.length),
    nextBytes: sum(({ night }) => night.plan.reduce((total, { bytes }) => total + bytes, 0)),
  }
}

function storeJson(facts: StoreFacts): Json {
  const { night, trash } = facts
  return {
    root: facts.root,
    format: facts.format,
    areas: { ...facts.areas },
    backups: facts.backups,
    versions: Object.fromEntries(facts.versions.map(([version, count]) => [`v${String(version)}`, count])),
    retention: retentionJson(facts.retention),
    projects: facts.projects.map(({ project, sessions, bytes, lastActivity }) => ({
      project: project ?? null,
      sessions,
      bytes,
      lastActivity: lastActivity === undefined ? null : new Date(lastActivity).toISOString(),
    })),
    sessions: facts.sessions.map(({ row, size, total }) => ({ ...(rowJson(row) as Record<string, Json>), companionBytes: size.companions, leftoverBytes: size.leftovers, totalBytes: total })),
    paths: facts.paths.map(([path, bytes]) => ({ path, bytes })),
    goneProjects: facts.dead.map(({ pattern, projects, sessions }) => ({ pattern, count: projects.length, sessions, projects: [...projects] })),
    history: facts.history.map((entry) => ({ ...entry })),
    removed: facts.removed.slice(0, removedShown).map((tombstone) => ({ ...tombstone })),
    trash: { ...trash },
    nextNight: {
      actions: night.plan.length,
      bytes: night.plan.reduce((sum, { bytes }) => sum + bytes, 0),
      steps: night.extra?.steps ?? [],
      refused: nightNotes(night),
    },
  }
}
