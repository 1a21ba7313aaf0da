import type { Store } from '../../../src/formats/format.js'
import type { Report } from '../../../src/model/report.js'
import type { Job } from '../../../src/operations/run/job.js'
import { runJob } from '../../../src/operations/run/run-job.js'
import type { JobContext } from '../../../src/operations/run/steps.js'
import { newRunId } from '../../../src/plan/run-id.js'
import { configOf, daysAgo, iso, machineWith, now, session } from '../../helpers/removal.js'
import { H, S1, S2, emptyRoot, snap, writeBackup, writeStoreFile } from '../../helpers/store.js'

let runs = 0

/** Runs a job on a store with everything that it takes from a machine; every call is a run of its own. */
export function runOn(store: Store, job: Job, options: Partial<JobContext> = {}): Promise<Report> {
  runs += 1
  let time = 0
  const machine = machineWith({ [process.pid]: '1' })
  return runJob([store], job, {
    apply: true,
    runId: newRunId(now, runs.toString(16).padStart(8, '0')),
    config: configOf(),
    lock: { pid: process.pid, host: 'here', processes: machine, waitMs: 0 },
    now,
    monotonic: () => (time += 5),
    machine,
    random: () => 0,
    threads: 0,
    ...options,
  })
}

export interface Row {
  readonly step: string
  readonly state: string
  readonly message?: string
  readonly summary: Readonly<Record<string, unknown>>
}

export function rowsOf(report: Report): Row[] {
  return report.extra?.steps as unknown as Row[]
}

/** Each step with what became of it. */
export function states(report: Report): string[] {
  return rowsOf(report).map(({ step, state }) => `${step} ${state}`)
}

/** Two sessions: S1 of yesterday, S2 of 60 days ago with one backup. The agent keeps 30 days. */
export async function twoSessions(): Promise<string> {
  const root = await emptyRoot()
  writeStoreFile(root, 'settings.json', '{"cleanupPeriodDays":30}', { mtime: daysAgo(90) })
  session(root, '-p', S1, 1)
  session(root, '-p', S2, 60, { lines: [snap(`m-${S2.slice(0, 4)}`, { 'a.md': `${H}@v1` }, iso(daysAgo(60)))] })
  writeBackup(root, S2, `${H}@v1`, 'robin\n', { mtime: daysAgo(60) })
  return root
}
