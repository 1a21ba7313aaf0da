import { UsageError } from '../../model/errors.js'
import { hookOptions, hookPositionals } from '../hook/options.js'
import { defineCommand } from './command.js'

/** What `--help`, completion and the manual page know of hooks; `hook/process.ts` answers them before this is loaded. */
export const command = defineCommand({
  positionals: hookPositionals,
  options: hookOptions,
  run(_context, { act }) {
    return Promise.reject(new UsageError(`hook ${act} is for a process that an agent starts`))
  },
})
