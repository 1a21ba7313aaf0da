import { planCap } from '../../operations/cap.js'
import { removalOptions, runRemoval } from '../removal.js'
import { narrowTo, openWorkplace } from '../workplace.js'
import { defineCommand } from './command.js'
import { durationOption } from './durations.js'
import { projectPath } from './paths.js'

export const command = defineCommand({
  positionals: {},
  options: {
    ...removalOptions,
    'max': { type: 'number', describe: 'Checkpoints to keep on every branch; without it what the agent itself keeps' },
    'session': { type: 'string', array: true, describe: 'Only these sessions, by id or unique prefix' },
    'project': { type: 'string', describe: 'Only sessions that were started in this folder' },
    'quiet-period': { type: 'string', describe: 'Leave sessions alone that changed within this time (60m)' },
  },
  async run(context, options) {
    const place = narrowTo(openWorkplace(context), options.session, context.now())
    const max = options.max ?? place.config.cap
    const report = await runRemoval(context, place, {
      command: 'cap',
      apply: options.apply === true,
      noTrash: options.noTrash === true,
      planOut: options.planOut,
      plan: (store) =>
        planCap(
          store,
          {
            ...(max === undefined ? {} : { max }),
            ...(options.session === undefined ? {} : { sessions: options.session }),
            ...(options.project === undefined ? {} : { project: projectPath(context, options.project) }),
            quietPeriodMs: durationOption('--quiet-period', options.quietPeriod) ?? place.config.quietPeriodMs,
          },
          { now: context.now(), machine: place.machine },
        ),
    })
    return { report }
  },
})
