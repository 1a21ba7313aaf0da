import { pathProbe } from '../../fs/path-probe.js'
import { UsageError } from '../../model/errors.js'
import { leftBehind, planPurge, rewriteShared, type Purge } from '../../operations/purge.js'
import { readProjectList } from '../../operations/purge/project-list.js'
import { carryOut } from '../../operations/removal/carry-out.js'
import { ExitCode, worstExit } from '../../model/exit-code.js'
import { parseBrakeLimit } from '../../plan/brake.js'
import { newToken, partRunId } from '../../plan/run-id.js'
import { removalOptions, runRemoval, writeRemoved } from '../removal.js'
import { openWorkplace } from '../workplace.js'
import { defineCommand } from './command.js'
import { durationOption } from './durations.js'
import { filePath } from './paths.js'

export const command = defineCommand({
  positionals: {
    project: { type: 'string', array: true, describe: 'The folder that sessions were started in' },
  },
  options: {
    ...removalOptions,
    'projects-from': { type: 'string', describe: 'Also the projects of a file: one a line, or a report in JSON, of which those whose folder is gone' },
    'recursive': { type: 'boolean', describe: 'Also what was started below it' },
    'follow': { type: 'boolean', describe: 'Also what was started in another spelling of the folder, through a link' },
    'memory': { type: 'boolean', describe: 'Also the memory of the project' },
    'shared': { type: 'boolean', describe: 'Also its lines in history.jsonl and its key in .claude.json' },
    'quiet-period': { type: 'string', describe: 'Leave sessions alone that changed within this time (60m)' },
    'max-delete': { type: 'string', describe: 'How many sessions may go at once, n or n%' },
    'removed-out': { type: 'string', describe: 'Write the ids of the removed sessions to this file' },
  },
  async run(context, options) {
    const listed = options.projectsFrom === undefined ? [] : readProjectList(filePath(context, options.projectsFrom))
    const projects = [...(options.project ?? []), ...listed]
    if (projects.length === 0) throw new UsageError('purge needs a project', { hint: 'rewind-admin purge <project>, or --projects-from <file>' })
    const place = openWorkplace(context)
    const { config, machine } = place
    const shared = options.shared === true
    const maxDelete = options.maxDelete === undefined ? undefined : parseBrakeLimit(options.maxDelete)
    const planned = new Map<string, Purge>()
    let parts = 0
    const report = await runRemoval(context, place, {
      command: 'purge',
      apply: options.apply === true,
      noTrash: options.noTrash === true,
      planOut: options.planOut,
      plan: (store) => {
        const purge = planPurge(
          store,
          {
            projects,
            recursive: options.recursive === true,
            follow: options.follow === true,
            memory: options.memory === true,
            shared,
            quietPeriodMs: durationOption('--quiet-period', options.quietPeriod) ?? config.quietPeriodMs,
            ...(maxDelete === undefined ? {} : { maxDelete }),
            config,
          },
          { now: context.now(), machine, cwd: context.cwd, home: context.home, probe: pathProbe },
        )
        planned.set(store.root, purge)
        return purge
      },
      applied: async (store, _removal, result, runId) => {
        const purge = planned.get(store.root)
        const cut =
          purge === undefined || !shared
            ? result
            : await rewriteShared(store, purge.matches, result, {
                now: context.now(),
                token: newToken,
                apply: (removal) => carryOut(store, removal, { now: context.now(), runId: partRunId(runId, (parts += 1)), machine, signal: context.signal }),
              })
        const gone = result.done.flatMap((item) => (item.action === 'trash-session' && item.session !== undefined ? [item.session] : []))
        const left = leftBehind(store, gone)
        return left.length === 0 ? cut : { ...cut, errors: [...cut.errors, ...left], exitCode: worstExit([cut.exitCode, ExitCode.partial]) }
      },
    })
    return { report: options.removedOut === undefined ? report : writeRemoved(context, options.removedOut, report) }
  },
})
