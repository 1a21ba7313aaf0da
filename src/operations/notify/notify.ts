import { ExitCode } from '../../model/exit-code.js'
import { finding, type Finding } from '../../model/finding.js'
import { noItems, type Report } from '../../model/report.js'
import type { NotifySettings } from '../../settings/notify-settings.js'
import { runHook } from './hook.js'
import type { NotifyMeans } from './means.js'
import { writeMetrics } from './metrics.js'
import { ping } from './ping.js'

/** The job that others are told about. */
export interface NotifiedJob {
  readonly name: string
  /** The roots that were named, as far as they are known before it begins. */
  readonly roots: readonly string[]
  readonly apply: boolean
  run(): Promise<Report>
}

/**
 * Runs a job and tells those whom the configuration names: the hook before it, which may put it off with exit code 75; the ping for
 * start; then the metrics, the ping for success (exit code 0) or fail, and the hook after it. Whatever of that fails or takes too
 * long is a finding of the report; the job, its exit code included, is as without it. A job that was put off is not begun, and
 * nobody else is told. Throws what the job throws, after telling.
 */
export async function withNotifications(settings: NotifySettings, job: NotifiedJob, means: NotifyMeans): Promise<Report> {
  const before = await runHook(settings.before, 'before', job.name, opening(job), means)
  if (before.putOff) return putOff(job)
  const problems = [before.problem, await ping(settings.ping, 'start', means.fetch, means.signal)]
  const startedAt = means.clock()
  try {
    const report = withProblems(await job.run(), problems)
    return await tell(settings, job, report, startedAt, means)
  } catch (error) {
    const { errors, exitCode } = means.failed(error)
    await tell(settings, job, withProblems({ ...opening(job), applied: false, errors, exitCode }, problems), startedAt, means)
    throw error
  }
}

async function tell(settings: NotifySettings, job: NotifiedJob, report: Report, startedAt: number, means: NotifyMeans): Promise<Report> {
  const times = { startedAt, finishedAt: means.clock() }
  const written = settings.metrics === undefined ? undefined : writeMetrics(settings.metrics, job.name, report, times)
  const pinged = await ping(settings.ping, report.exitCode === ExitCode.done ? 'success' : 'fail', means.fetch)
  const told = withProblems(report, [written, pinged])
  const after = await runHook(settings.after, 'after', job.name, told, means)
  return withProblems(told, [after.problem])
}

function opening({ name, roots, apply }: NotifiedJob): Report {
  return { command: 'run', roots, applied: apply, summary: { job: name }, ...noItems, exitCode: ExitCode.done, extra: { job: name, steps: [] } }
}

function putOff(job: NotifiedJob): Report {
  const message = `the hook before the job put ${job.name} off; nothing was done`
  return { ...opening(job), applied: false, errors: [{ code: 'PUT_OFF', message }], exitCode: ExitCode.putOff }
}

function withProblems(report: Report, problems: readonly (string | undefined)[]): Report {
  const found = problems.flatMap((problem): Finding[] => (problem === undefined ? [] : [finding('notification-failed', problem)]))
  return found.length === 0 ? report : { ...report, findings: [...report.findings, ...found] }
}
