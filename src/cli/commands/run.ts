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
import { NoStoreError } from '../../model/errors.js'
import { ExitCode } from '../../model/exit-code.js'
import type { Report } from '../../model/report.js'
import { findJob } from '../../operations/run/job.js'
import { runJob } from '../../operations/run/run-job.js'
import { runScheduled } from '../../operations/schedule/first-run.js'
import { newRunId } from '../../plan/run-id.js'
import { parseConfig } from '../../settings/config.js'
import type { CommandContext } from '../context.js'
import { table } from '../text/table.js'
import { durationText } from '../text/units.js'
import { configOf, lockOwner, openWorkplace, sessionProgress, verifyThreads, type Workplace } from '../workplace.js'
import { defineCommand } from './command.js'
import { fieldsOf, wordOf } from './session-table.js'

export const command = defineCommand({
  positionals: {
    job: { type: 'string', demandOption: true, describe: 'The job: nightly, or one of the configuration' },
  },
  options: {
    'apply': { type: 'boolean', describe: 'Act; without it the job only says what it would do' },
    'scheduled': { type: 'string', describe: 'Written by schedule install: the first run of this installation on a store is a preview' },
    'sample-if-none': { type: 'boolean', describe: 'When there is no store on this machine, show the job on a sample store' },
  },
  async run(context, options) {
    const job = findJob(options.job, jobs, configOf(context).jobs)
    const place = workplaceOrSample(context, options.sampleIfNone === true && options.apply !== true)
    try {
      const now = context.now()
      const lock = lockOwner(place.machine)
      const run = (stores: readonly Store[], apply: boolean): Promise<Report> =>
        runJob(stores, job, {
          apply,
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
      const apply = options.apply === true
      const report =
        options.scheduled === undefined
          ? await run(place.stores, apply)
          : await runScheduled(place.stores, { job: job.name, installation: options.scheduled, apply, now, lock, signal: context.signal }, run)
      // What a sample holds is no result of this machine.
      const shown = place.sample === undefined ? report : ofSample(report)
      return { report: shown, text: () => ({ body: `${place.sample === undefined ? '' : sampleText}${stepsText(report)}`, closing: closingText(report) }) }
    } finally {
      if (place.sample !== undefined) await remove(place.sample)
    }
  },
})

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

const stepColumns = [{ title: 'step' }, { title: 'result' }, { title: 'time', align: 'right' }, { title: '' }] as const

function stepsText(report: Report): string {
  const rows = fieldsOf(report.extra?.steps)
  return report.roots
    .map((root) => {
      const own = rows.filter((row) => row.root === root)
      const cells = own.map((row) => [wordOf(row.step), wordOf(row.state), durationText(Number(row.durationMs)), detailText(row)])
      return `${root}\n${table(stepColumns, cells, '  ')}`
    })
    .join('\n')
}

function detailText(row: Readonly<Record<string, unknown>>): string {
  if (typeof row.message === 'string') return row.message
  return Object.entries(typeof row.summary === 'object' && row.summary !== null ? row.summary : {})
    .filter(([, value]) => typeof value === 'number' && value > 0)
    .map(([name, value]) => `${name} ${wordOf(value)}`)
    .join(', ')
}

function closingText(report: Report): string {
  if (report.applied) return `Run ${report.runId ?? ''}\n`
  return 'A preview: nothing was changed.\n'
}
