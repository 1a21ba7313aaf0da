import { jobs } from '../../../jobs/index.js'
import type { Store } from '../../formats/format.js'
import { NoStoreError, UsageError } from '../../model/errors.js'
import { ExitCode } from '../../model/exit-code.js'
import { noItems, type Report } from '../../model/report.js'
import { findJob } from '../../operations/run/job.js'
import { entryOf, installSchedule, type InstallOptions } from '../../operations/schedule/install.js'
import { removeSchedule } from '../../operations/schedule/remove.js'
import { scheduleStatus } from '../../operations/schedule/status.js'
import { schedulers } from '../../schedule/choose.js'
import { kubernetesManifests } from '../../schedule/kubernetes.js'
import { schedulerNames, type RenderedFile, type ScheduleHost } from '../../schedule/scheduler.js'
import type { CommandContext } from '../context.js'
import { scheduleContext, scheduledParts, scheduleHost } from '../scheduling.js'
import { configOf, openWorkplace } from '../workplace.js'
import { defineCommand } from './command.js'
import { installText, removeText, statusText } from './schedule-text.js'

const printable = [...schedulerNames, 'kubernetes'] as const
const mostShards = 1000

export const command = defineCommand({
  positionals: {
    act: { choices: ['install', 'status', 'remove', 'print'] as const, demandOption: true, describe: 'What to do; print only shows what would be written' },
    what: { choices: printable, describe: 'With print: for which scheduler' },
  },
  options: {
    job: { type: 'string', describe: 'The job (nightly); status and remove take all of ours unless one is named' },
    at: { type: 'string', describe: 'When: 03:30, five cron fields, or @daily (after three, at a minute of this machine)' },
    scheduler: { choices: ['auto', ...schedulerNames] as const, describe: 'Which scheduler of the system (auto: the first that answers)' },
    shards: { type: 'number', default: 4, describe: 'With print kubernetes: pods that share the homes' },
    image: { type: 'string', default: 'rewind-admin:latest', describe: 'With print kubernetes: the image' },
    claim: { type: 'string', default: 'homes', describe: 'With print kubernetes: the claim of the volume with the homes' },
  },
  async run(context, { act, what, job, at, scheduler, shards, image, claim }) {
    const host = scheduleHost(context)
    if (act !== 'print' && what !== undefined) throw new UsageError(`schedule ${act} takes no ${what}`, { hint: '--scheduler chooses one' })
    if (act === 'status') {
      const report = await scheduleStatus(storesOf(context), job, host, { now: context.now() })
      return { report, text: () => ({ body: statusText(report) }) }
    }
    if (act === 'remove') {
      const report = await removeSchedule(job, host, scheduleContext(context))
      return { report, text: () => ({ body: removeText(report) }) }
    }
    const options: InstallOptions = { job: job ?? 'nightly', at, scheduler: scheduler ?? 'auto', ...scheduledParts(context) }
    findJob(options.job, jobs, configOf(context).jobs)
    if (act === 'install') {
      const report = await installSchedule(options, host, scheduleContext(context))
      return { report, text: () => ({ body: installText(report) }) }
    }
    if (what === undefined) throw new UsageError('schedule print needs a scheduler', { hint: `one of ${printable.join(', ')}` })
    if (!Number.isInteger(shards) || shards < 1 || shards > mostShards) throw new UsageError(`--shards must be a whole number from 1 to ${String(mostShards)}`)
    const files = what === 'kubernetes' ? [kubernetesFile(options, { shards, image, claim })] : filesOf(what, options, host)
    const report: Report = { command: 'schedule', roots: [], applied: false, summary: { files: files.length }, ...noItems, exitCode: ExitCode.done, extra: { files: files.map((file) => ({ ...file })) } }
    return { report, text: () => ({ body: files.length === 1 ? (files[0]?.text ?? '') : files.map(({ path, text }) => `# ${path}\n${text}`).join('\n') }) }
  },
})

/** A schedule can be looked at before there is any store. */
function storesOf(context: CommandContext): readonly Store[] {
  try {
    return openWorkplace(context).stores
  } catch (error) {
    if (error instanceof NoStoreError && context.globals.roots.length === 0) return []
    throw error
  }
}

function kubernetesFile(options: InstallOptions, place: { readonly shards: number; readonly image: string; readonly claim: string }): RenderedFile {
  const { job, calendar } = entryOf(options)
  return { path: 'kubernetes.yaml', text: kubernetesManifests({ job, calendar, ...place }) }
}

function filesOf(name: string, options: InstallOptions, host: ScheduleHost): RenderedFile[] {
  return schedulers.filter((one) => one.name === name).flatMap((one) => one.render([entryOf(options)], host))
}
