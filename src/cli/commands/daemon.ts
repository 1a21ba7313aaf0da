import { jobs } from '../../../jobs/index.js'
import { ExitCode } from '../../model/exit-code.js'
import { noItems } from '../../model/report.js'
import { findJob } from '../../operations/run/job.js'
import { runDaemon, type DaemonRun } from '../../operations/schedule/daemon.js'
import { defaultCalendar } from '../../operations/schedule/install.js'
import { newToken } from '../../plan/run-id.js'
import { parseCalendar } from '../../schedule/calendar.js'
import type { CommandContext } from '../context.js'
import { scheduledParts } from '../scheduling.js'
import { printable } from '../text/printable.js'
import { configOf } from '../workplace.js'
import { defineCommand } from './command.js'
import { filePath } from './paths.js'

/** Runs a job in the foreground whenever it is due, until SIGTERM or SIGINT. */
export const command = defineCommand({
  positionals: {},
  options: {
    'job': { type: 'string', default: 'nightly', describe: 'The job' },
    'at': { type: 'string', describe: 'When: 03:30, a cron expression of five or six fields, or @daily (after three, at a minute of this machine)' },
    'apply': { type: 'boolean', describe: 'Act; without it each run only says what it would do' },
    'status-file': { type: 'string', describe: 'Keep this JSON file up to date, for health checks and to know what was missed' },
  },
  async run(context, { job, at, apply, statusFile }) {
    // What is wrong with the command line or the configuration is wrong now and not only at night.
    findJob(job, jobs, configOf(context).jobs)
    const calendar = at === undefined ? defaultCalendar(scheduledParts(context).machineKey) : parseCalendar(at)
    const counts = await runDaemon({
      job,
      calendar,
      run: () => runOnce(context, job, apply === true),
      now: () => context.now(),
      sleep: (ms, signal) => context.sleep(ms, signal),
      signal: context.signal,
      say: (level, message) => {
        say(context, level, message)
      },
      ...(statusFile === undefined ? {} : { statusFile: filePath(context, statusFile) }),
      pid: process.pid,
      token: newToken,
    })
    return {
      report: { command: 'daemon', roots: [], applied: apply === true, summary: { job, at: calendar.expression, ...counts }, ...noItems, exitCode: ExitCode.done },
    }
  },
})

/** One run is what `run` does, with all that belongs to it. What failed in it is said; the report itself is that of a night nobody watches. */
async function runOnce(context: CommandContext, job: string, apply: boolean): Promise<DaemonRun> {
  const { command: run } = await import('./run.js')
  const { report } = await run.run(context, { job, apply })
  for (const { message, path } of report.errors) say(context, 'warn', path === undefined ? message : `${message}: ${path}`)
  return { exitCode: report.exitCode, actions: report.plan.length, bytes: report.plan.reduce((sum, item) => sum + item.bytes, 0) }
}

/** A line of what happens, for the log of a container; `--quiet` leaves problems, `--log-file` takes all. */
function say(context: CommandContext, level: 'info' | 'warn', message: string): void {
  if (context.globals.logFile !== undefined) context.logger[level]({}, message)
  else if (level === 'warn' || !context.globals.quiet) context.stderr.write(`${new Date(context.now()).toISOString()} ${printable(message)}\n`)
}
