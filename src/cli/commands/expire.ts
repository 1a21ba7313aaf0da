import { planExpire, type Expiry } from '../../operations/expire.js'
import { parseBrakeLimit } from '../../plan/brake.js'
import { newToken } from '../../plan/run-id.js'
import { removalOptions, runRemoval, writeRemoved } from '../removal.js'
import { openWorkplace } from '../workplace.js'
import { defineCommand } from './command.js'
import { durationOption, sizeOption } from './durations.js'

export const command = defineCommand({
  positionals: {},
  options: {
    ...removalOptions,
    'older-than': { type: 'string', describe: 'Use this period instead of the one in the settings of the agent' },
    'max-bytes': { type: 'string', describe: 'Only the oldest sessions, until all take up no more than this (500M, 2G)' },
    'floor': { type: 'string', describe: 'Never remove what is younger (24h)' },
    'quiet-period': { type: 'string', describe: 'Leave sessions alone that changed within this time (60m)' },
    'max-delete': { type: 'string', describe: 'How many sessions may go at once, n or n%' },
    'no-grace': { type: 'boolean', describe: 'Sessions that appeared with old dates get no period of their own' },
    'no-clock-check': { type: 'boolean', describe: 'Go on although the clock looks wrong' },
    'removed-out': { type: 'string', describe: 'Write the ids of the removed sessions to this file' },
  },
  async run(context, options) {
    const place = openWorkplace(context)
    const { config, machine } = place
    const olderThanMs = durationOption('--older-than', options.olderThan)
    const maxBytes = sizeOption('--max-bytes', options.maxBytes)
    const maxDelete = options.maxDelete === undefined ? undefined : parseBrakeLimit(options.maxDelete)
    const planned = new Map<string, Expiry>()
    const report = await runRemoval(context, place, {
      command: 'expire',
      apply: options.apply === true,
      noTrash: options.noTrash === true,
      planOut: options.planOut,
      plan: (store) => {
        const expiry = planExpire(
          store,
          {
            config,
            ...(olderThanMs === undefined ? {} : { olderThanMs }),
            ...(maxBytes === undefined ? {} : { maxBytes }),
            floorMs: durationOption('--floor', options.floor) ?? config.floorMs,
            quietPeriodMs: durationOption('--quiet-period', options.quietPeriod) ?? config.quietPeriodMs,
            ...(maxDelete === undefined ? {} : { maxDelete }),
            grace: options.noGrace !== true,
            clockCheck: options.noClockCheck !== true,
          },
          { now: context.now(), machine },
        )
        planned.set(store.root, expiry)
        return expiry
      },
      applied: (store, _removal, result) => {
        planned.get(store.root)?.writeLedger(newToken())
        return result
      },
    })
    return { report: options.removedOut === undefined ? report : writeRemoved(context, options.removedOut, report) }
  },
})
