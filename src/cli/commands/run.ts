import { randomBytes } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { remove } from 'fs-extra/esm'
import { jobs } from '../../../jobs/index.js'
import type { Store } from '../../formats/format.js'
import { claudeCode } from '../../formats/claude-code/index.js'
import { writeSampleStore } from '../../formats/claude-code/sample.js'
import { thisMachine } from '../../fs/machine.js'
import { NoStoreError, UsageError } from '../../model/errors.js'
import { ExitCode } from '../../model/exit-code.js'
import type { Report } from '../../model/report.js'
import { withNotifications } from '../../operations/notify/notify.js'
import { allJobs, findJob, type Job } from '../../operations/run/job.js'
import { listJobs } from '../../operations/run/list-jobs.js'
import { runJob } from '../../operations/run/run-job.js'
import { checkInstallation, runScheduled } from '../../operations/schedule/first-run.js'
import { newRunId } from '../../plan/run-id.js'
import { parseConfig } from '../../settings/config.js'
import type { CommandContext } from '../context.js'
import { notifyMeans } from '../notify.js'
import { configOf, lockOwner, openWorkplace, sessionProgress, verifyThreads, type Workplace } from '../workplace.js'
import { defineCommand, type CommandResult } from './command.js'
import { fleetOf, fleetOptions, runOnFleet, type Fleet } from './run-fleet.js'
import { homesText, jobsText, stepsText } from './run-text.js'

export const command = defineCommand({
  positionals: {
    job: { type: 'string', describe: 'The job: nightly, integrity, report, or one of the configuration' },
  },
  options: {
    'apply': { type: 'boolean', describe: 'Act; without it the job only says what it would do' },
    'list': { type: 'boolean', describe: 'List the jobs and their steps' },
    'scheduled': { type: 'string', describe: 'Written by schedule install and print: the first run of this installation on a store is a preview' },
    ...fleetOptions,
    'sample-if-none': { type: 'boolean', describe: 'When there is no store on this machine, show the job on a sample store' },
  },
  async run(context, options) {
    const config = configOf(context)
    if (options.list === true) {
      const list = listJobs(allJobs(jobs, config.jobs))
      return { report: list, text: () => ({ body: jobsText(list) }) }
    }
    if (options.job === undefined) throw new UsageError('no job was named', { hint: 'rewind-admin run --list shows them' })
    const job = findJob(options.job, jobs, config.jobs)
    const apply = options.apply === true
    const fleet = fleetOf(context, options)
    const { scheduled } = options
    if (scheduled !== undefined) checkInstallation(scheduled)
    let shown: CommandResult | undefined
    const run = async (): Promise<Report> => {
      shown = fleet === undefined ? await runHere(context, job, { apply, scheduled }, options.sampleIfNone === true) : await runThere(context, job, { apply, scheduled }, fleet)
      return shown.report
    }
    // Nobody is told of a job that somebody only looks at.
    const told = apply ? await withNotifications(config.notify, { name: job.name, roots: context.globals.roots, apply, run }, notifyMeans(context)) : await run()
    return { ...shown, report: told }
  },
})

interface HowToRun {
  readonly apply: boolean
  /** The installation of a schedule that this run belongs to. */
  readonly scheduled: string | undefined
}

/** Runs the job on the stores of this machine. */
async function runHere(context: CommandContext, job: Job, { apply, scheduled }: HowToRun, sampleIfNone: boolean): Promise<CommandResult> {
  const place = workplaceOrSample(context, sampleIfNone && !apply)
  try {
    const [now, lock] = [context.now(), lockOwner(place.machine)]
    const run = (stores: readonly Store[], acts: boolean): Promise<Report> =>
      runJob(stores, job, {
        apply: acts,
        runId: newRunId(now, randomBytes(4).toString('hex')),
        config: place.config,
        lock,
        now,
        monotonic: () => context.monotonic(),
        machine: place.machine,
        random: () => Math.random(),
        threads: verifyThreads(),
        signal: context.signal,
        progress: sessionProgress(context, job.name),
      })
    const report =
      scheduled === undefined
        ? await run(place.stores, apply)
        : await runScheduled(place.stores, { job: job.name, installation: scheduled, apply, now, lock, signal: context.signal }, run)
    // What a sample holds is no result of this machine.
    const shown = place.sample === undefined ? report : ofSample(report)
    return { report: shown, text: () => ({ body: `${place.sample === undefined ? '' : sampleText}${stepsText(report)}`, closing: closingText(report) }) }
  } finally {
    if (place.sample !== undefined) await remove(place.sample)
  }
}

/** Runs the job in many homes. */
async function runThere(context: CommandContext, job: Job, how: HowToRun, fleet: Fleet): Promise<CommandResult> {
  const report = await runOnFleet(context, job, how, fleet)
  return { report, text: () => ({ body: homesText(report), closing: closingText(report) }) }
}

const sampleText = 'No store of an agent was found on this machine. This is the job on a sample store.\n\n'

/** The stores of this machine; when there are none and a sample may stand in, one that is made for this run. */
function workplaceOrSample(context: CommandContext, sampleAllowed: boolean): Workplace & { readonly sample?: string } {
  try {
    return openWorkplace(context)
  } catch (error) {
    if (!sampleAllowed || !(error instanceof NoStoreError) || context.globals.roots.length > 0) throw error
    const sample = mkdtempSync(join(tmpdir(), 'rewind-admin-sample-'))
    const { root } = writeSampleStore(sample, context.now())
    const around = { home: sample, env: {}, platform: process.platform }
    return { stores: [claudeCode.open(root, around)], config: parseConfig({}, sample), around, machine: thisMachine(), sample }
  }
}

/** Whoever looks at a sample has nothing to act on. */
function ofSample(report: Report): Report {
  const shown: { -readonly [Key in keyof Report]: Report[Key] } = { ...report, exitCode: ExitCode.done }
  delete shown.next
  return shown
}

function closingText(report: Report): string {
  if (!report.applied) return 'A preview: nothing was changed.\n'
  return report.runId === undefined ? '' : `Run ${report.runId}\n`
}
