import { statSync } from 'node:fs'
import type { Store } from '../../formats/format.js'
import { ExitCode } from '../../model/exit-code.js'
import { finding, type Finding } from '../../model/finding.js'
import { noItems, type Json, type Report } from '../../model/report.js'
import { nextTime } from '../../schedule/calendar.js'
import { lingers } from '../../schedule/lingering.js'
import type { InstalledEntry, ScheduleHost } from '../../schedule/scheduler.js'
import { lastRun } from '../run/status-file.js'
import { firstRunIsPreview } from './first-run.js'
import { findInstalled, type ScheduleContext } from './installed.js'

/**
 * What is scheduled: where, when next, whether the paths in it still exist, and how the last run went by the status file of each
 * store. Exit code 1 when nothing is scheduled or something of it will not run. It only reads.
 * @param job only this one; all of ours unless given
 */
export async function scheduleStatus(stores: readonly Store[], job: string | undefined, host: ScheduleHost, context: Pick<ScheduleContext, 'now' | 'zone'>): Promise<Report> {
  const { entries, errors } = await findInstalled(host)
  const shown = entries.filter(({ entry }) => job === undefined || entry.job === job)
  const findings: Finding[] = errors.map(({ message }) => finding('scheduler-silent', message))
  const rows = shown.map((one) => describe(one, stores, context, findings))
  for (const name of new Set(shown.map(({ entry }) => entry.job))) {
    const places = shown.filter(({ entry }) => entry.job === name).map(({ scheduler }) => scheduler)
    if (places.length > 1) findings.push(finding('schedule-twice', `${name} is in ${places.join(' and in ')}`))
  }
  const lingering = shown.some(({ scheduler }) => scheduler === 'systemd') ? await lingers(host) : undefined
  if (lingering === false) findings.push(finding('linger-off', 'lingering is off: timers run only while you are logged in'))
  const broken = shown.length === 0 || findings.some(({ severity }) => severity === 'error')
  return {
    command: 'schedule',
    roots: stores.map(({ root }) => root),
    applied: false,
    summary: { scheduled: shown.length },
    ...noItems,
    findings,
    exitCode: broken ? ExitCode.findings : ExitCode.done,
    extra: {
      entries: rows,
      lingering: lingering ?? null,
      lastRuns: stores.map((store) => ({ root: store.root, lastRun: lastRun(store) })),
    },
    ...(shown.length === 0 ? { next: 'rewind-admin schedule install' } : {}),
  }
}

function describe(one: InstalledEntry, stores: readonly Store[], { now, zone }: Pick<ScheduleContext, 'now' | 'zone'>, findings: Finding[]): Json {
  const { entry, scheduler, where, active, changed } = one
  const gone = entry.command.slice(0, 2).filter((path) => !isFile(path))
  for (const path of gone) findings.push(finding('schedule-path-gone', `${entry.job} would start ${path}, which is not there`, { path }))
  if (active === false) findings.push(finding('schedule-inactive', `${entry.job}: ${scheduler} does not have it`, { path: where }))
  if (changed) findings.push(finding('schedule-changed', `${entry.job}: ${where} was changed since it was written`, { path: where }))
  return {
    job: entry.job,
    scheduler,
    where,
    at: entry.calendar.expression,
    next: new Date(one.next ?? nextTime(entry.calendar, now, zone)).toISOString(),
    active: active ?? null,
    changed,
    commandLine: [...entry.command],
    gone,
    firstRunPending: stores.filter((store) => firstRunIsPreview(store, entry.installation)).map(({ root }) => root),
  }
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile()
  } catch {
    return false
  }
}
