import { NoMatchError, UsageError } from '../../model/errors.js'
import type { Report } from '../../model/report.js'
import { migrate } from '../../operations/migrate/migrate.js'
import { mergeRoots } from '../../operations/migrate/merge-roots.js'
import type { MigrateOptions } from '../../operations/migrate/options.js'
import { newToken } from '../../plan/run-id.js'
import type { CommandContext } from '../context.js'
import { absolutePath } from '../globals.js'
import { withLock, withLocks } from '../locked.js'
import { mergeReports } from '../merge.js'
import { narrowTo, openWorkplace, sessionProgress } from '../workplace.js'
import { defineCommand } from './command.js'

export const command = defineCommand({
  positionals: {
    session: { type: 'string', array: true, describe: 'Session ids or unique prefixes; none means all' },
  },
  options: {
    'move': { type: 'string', nargs: 2, describe: 'The project moved: its old folder and its new one' },
    'from-cwd': { type: 'string', describe: 'The old folder of a project that moved; with --to-cwd the same as --move' },
    'to-cwd': { type: 'string', describe: 'The new folder of a project that moved' },
    'merge-roots': { type: 'boolean', describe: 'Bring the sessions of other roots of dsh-rewind into the first one: that of --root, else the one that the plugin uses now' },
    'markers': { choices: ['message', 'turn'] as const, describe: 'What old rewind markers in conversations of dsh-rewind become: messages of the plugin (the default), or the same with the right turn, for old builds' },
    'apply': { type: 'boolean', describe: 'Act; without it the plan is only printed' },
  },
  async run(context, options) {
    if (options.mergeRoots === true) {
      if (options.move !== undefined || options.fromCwd !== undefined) throw new UsageError('--merge-roots and --move exclude each other')
      return { report: await mergedRoots(context, options) }
    }
    const place = narrowTo(openWorkplace(context), options.session, context.now())
    const move = moveOf(context, pairOf(options.move), options.fromCwd, options.toCwd)
    const reports: Report[] = []
    for (const store of place.stores) {
      const act = (): Promise<Report> =>
        migrate(
          store,
          {
            ...(options.session === undefined ? {} : { sessions: options.session }),
            ...(move === undefined ? {} : { move }),
            ...(options.markers === undefined ? {} : { markers: options.markers }),
            apply: options.apply === true,
            quietPeriodMs: place.config.quietPeriodMs,
          },
          { now: context.now(), machine: place.machine, token: newToken(), signal: context.signal, progress: sessionProgress(context, 'migrate') },
        )
      reports.push(options.apply === true ? await withLock(context, place, store, 'migrate', act) : await act())
    }
    const report = mergeReports('migrate', reports)
    if (move !== undefined && report.summary.matched === 0) {
      throw new NoMatchError(`no session was started in ${move.from}, and none in ${move.to}`, { hint: 'rewind-admin list' })
    }
    return { report: withNext(report) }
  },
})

async function mergedRoots(context: CommandContext, options: { readonly session: readonly string[] | undefined; readonly apply: boolean | undefined }): Promise<Report> {
  const place = openWorkplace(context)
  const [to, ...others] = place.stores.filter((store) => store.merge !== undefined)
  if (to === undefined || others.length === 0) throw new UsageError('there are no two roots of dsh-rewind to merge', { hint: 'name them with --root, the one to keep first' })
  const act = async (): Promise<Report> => {
    const reports: Report[] = []
    for (const from of others) {
      const sessions = options.session === undefined ? {} : { sessions: options.session }
      const means = { now: context.now(), machine: place.machine, token: newToken(), signal: context.signal, progress: sessionProgress(context, 'migrate') }
      reports.push(await mergeRoots(to, from, { ...sessions, apply: options.apply === true, quietPeriodMs: place.config.quietPeriodMs }, means))
    }
    return mergeReports('migrate', reports)
  }
  return withNext(options.apply === true ? await withLocks(context, { ...place, stores: [to, ...others] }, 'migrate', act) : await act())
}

function withNext(report: Report): Report {
  return report.applied || report.plan.length === 0 ? report : { ...report, next: 'Run it again with --apply to act.' }
}

/** An option of two words comes as a list, whatever its declared type. */
function pairOf(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? value.map(String) : undefined
}

function moveOf(context: CommandContext, move: readonly string[] | undefined, from: string | undefined, to: string | undefined): MigrateOptions['move'] {
  if ((from === undefined) !== (to === undefined)) throw new UsageError('--from-cwd and --to-cwd go together')
  const [first, second, ...more] = move ?? (from === undefined || to === undefined ? [] : [from, to])
  if (more.length > 0 || (move !== undefined && from !== undefined)) throw new UsageError('one project is moved at a time')
  if (first === undefined || second === undefined) return undefined
  const folders = { from: absolutePath(first, context), to: absolutePath(second, context) }
  if (folders.from === folders.to) throw new UsageError(`${folders.from} is both the old folder and the new one`)
  if (folders.from === '/' || folders.from === context.home) throw new UsageError(`${folders.from} is no project folder`)
  return folders
}
