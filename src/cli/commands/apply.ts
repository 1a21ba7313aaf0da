import type { Removal } from '../../operations/removal/removal.js'
import { brakeRefusal, brakeFor } from '../../operations/removal/removal.js'
import { parseBrakeLimit } from '../../plan/brake.js'
import { assertWithin, readPlan } from '../../plan/plan-file.js'
import { runRemoval } from '../removal.js'
import { openWorkplace } from '../workplace.js'
import { defineCommand } from './command.js'
import { filePath } from './paths.js'

export const command = defineCommand({
  positionals: {
    file: { type: 'string', demandOption: true, describe: 'A plan that --plan-out wrote' },
  },
  options: {
    'no-trash': { type: 'boolean', describe: 'Remove for good instead of moving into the trash' },
    'max-delete': { type: 'string', describe: 'How many sessions may go at once, n or n%' },
  },
  async run(context, options) {
    const plan = readPlan(filePath(context, options.file))
    const place = openWorkplace({ ...context, globals: { ...context.globals, roots: [plan.root], store: plan.format } })
    const limit = brakeFor(plan.storeSessions, options.maxDelete === undefined ? undefined : parseBrakeLimit(options.maxDelete), place.config)
    const report = await runRemoval(context, place, {
      command: 'apply',
      apply: true,
      noTrash: options.noTrash === true,
      plan: (target): Removal => {
        // Plans with shared files are not written to a file, so none may be in one.
        assertWithin(plan, {
          place: target,
          sessions: target.inventory().sessions,
          projectFiles: (folder) => {
            const files = target.projectFiles?.(folder)
            return [...(files?.memory ?? []), ...(files?.caches ?? [])].map(({ path }) => path)
          },
        })
        const refusal = brakeRefusal(plan, limit)
        return { plan, findings: [], errors: [], summary: { plan: plan.command }, firstActivity: new Map(), ...(refusal === undefined ? {} : { refusal }) }
      },
    })
    return { report }
  },
})
