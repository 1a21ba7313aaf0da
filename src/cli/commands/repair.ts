import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Report } from '../../model/report.js'
import { repair } from '../../operations/repair/repair.js'
import type { ExecFile } from '../../operations/repair/git-objects.js'
import { newToken } from '../../plan/run-id.js'
import { withLock } from '../locked.js'
import { mergeReports } from '../merge.js'
import { narrowTo, openWorkplace, sessionProgress } from '../workplace.js'
import { defineCommand } from './command.js'

export const command = defineCommand({
  positionals: {
    session: { type: 'string', array: true, describe: 'Session ids or unique prefixes; none means all' },
  },
  options: {
    transcripts: { type: 'boolean', describe: 'Mend damaged transcripts instead of backups' },
    force: { type: 'boolean', describe: 'Also replace a present backup from a strong proof' },
    apply: { type: 'boolean', describe: 'Act; without it the plan is only printed' },
  },
  async run(context, options) {
    const place = narrowTo(openWorkplace(context), options.session)
    const reports: Report[] = []
    for (const store of place.stores) {
      const act = (): Promise<Report> =>
        repair(
          store,
          {
            ...(options.session === undefined ? {} : { sessions: options.session }),
            apply: options.apply === true,
            transcripts: options.transcripts === true,
            force: options.force === true,
            quietMs: place.config.quietPeriodMs,
          },
          {
            now: context.now(),
            machine: place.machine,
            token: newToken(),
            execFile: runFile,
            signal: context.signal,
            progress: sessionProgress(context, 'repair'),
          },
        )
      reports.push(options.apply === true ? await withLock(context, place, store, 'repair', act) : await act())
    }
    const report = mergeReports('repair', reports)
    const planned = options.apply !== true && report.plan.length > 0
    return { report: planned ? { ...report, next: 'Run it again with --apply to act.' } : report }
  },
})

const run = promisify(execFile)

const runFile: ExecFile = async (file, args, options) => (await run(file, [...args], { ...options, encoding: 'buffer' })).stdout
