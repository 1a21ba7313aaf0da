import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Store } from '../../formats/format.js'
import { UsageError } from '../../model/errors.js'
import type { Report } from '../../model/report.js'
import { repairJournals } from '../../operations/repair/journals.js'
import { repair } from '../../operations/repair/repair.js'
import type { ExecFile } from '../../operations/repair/git-objects.js'
import { newToken } from '../../plan/run-id.js'
import { withLock, writingContext } from '../locked.js'
import { mergeReports } from '../merge.js'
import { narrowTo, openWorkplace, sessionProgress } from '../workplace.js'
import { defineCommand } from './command.js'

export const command = defineCommand({
  positionals: {
    session: { type: 'string', array: true, describe: 'Session ids or unique prefixes; none means all' },
  },
  options: {
    transcripts: { type: 'boolean', describe: 'Mend damaged transcripts instead of backups' },
    unlink: { type: 'boolean', describe: 'Give backups that are hard links a file of their own, where the agent writes into backups' },
    'journals': { type: 'boolean', describe: 'End restores of the agent itself that were cut off' },
    'roll-back': { type: 'boolean', describe: 'With --journals: put the files back as they were before the restore' },
    force: { type: 'boolean', describe: 'Also replace a present backup from a strong proof; with --journals also what is in doubt' },
    apply: { type: 'boolean', describe: 'Act; without it the plan is only printed' },
  },
  async run(context, options) {
    const chosen = (['journals', 'transcripts', 'unlink'] as const).filter((name) => options[name] === true)
    if (chosen.length > 1) throw new UsageError(`${chosen.map((name) => `--${name}`).join(' and ')} exclude each other`)
    if (options.rollBack === true && options.journals !== true) throw new UsageError('--roll-back goes with --journals')
    const found = narrowTo(openWorkplace(context), options.session, context.now())
    const place = options.journals === true ? { ...found, stores: withJournals(found.stores) } : found
    const reports: Report[] = []
    for (const store of place.stores) {
      const given = {
        ...(options.session === undefined ? {} : { sessions: options.session }),
        apply: options.apply === true,
        force: options.force === true,
        quietMs: place.config.quietPeriodMs,
      }
      const mend = (): Promise<Report> =>
        repairJournals(store, { ...given, rollBack: options.rollBack === true }, { ...writingContext(context, place, 'repair'), machine: place.machine })
      const act = (): Promise<Report> =>
        repair(
          store,
          { ...given, transcripts: options.transcripts === true, unlink: options.unlink === true },
          {
            now: context.now(),
            machine: place.machine,
            token: newToken(),
            execFile: runFile,
            signal: context.signal,
            progress: sessionProgress(context, 'repair'),
          },
        )
      const work = options.journals === true ? mend : act
      reports.push(options.apply === true ? await withLock(context, place, store, 'repair', work) : await work())
    }
    const report = mergeReports('repair', reports)
    const planned = options.apply !== true && report.plan.length > 0
    return { report: planned ? { ...report, next: 'Run it again with --apply to act.' } : report }
  },
})

/** Only some agents keep journals of their restores; naming a store of another one is a mistake. */
function withJournals(stores: readonly Store[]): readonly Store[] {
  const some = stores.filter((store) => store.interruptedRestores !== undefined)
  return some.length > 0 ? some : stores
}

const run = promisify(execFile)

const runFile: ExecFile = async (file, args, options) => (await run(file, [...args], { ...options, encoding: 'buffer' })).stdout
