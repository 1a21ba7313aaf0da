import type { NotifyMeans } from '../operations/notify/means.js'
import { envelopeOf } from './envelope.js'
import type { CommandContext } from './context.js'
import { failureOf } from './errors.js'
import { commandRunner } from './run-command.js'
import { readVersion } from './version.js'

/** What telling others about a job needs, as this process has it. */
export function notifyMeans(context: CommandContext): NotifyMeans {
  const start = context.monotonic()
  const startedAt = context.now()
  return {
    fetch: (address, options) => fetch(address, options),
    runCommand: commandRunner(context.env),
    signal: context.signal,
    clock: () => startedAt + Math.round(context.monotonic() - start),
    json: (report) => JSON.stringify(envelopeOf(report, { version: readVersion(), startedAt, durationMs: Math.round(context.monotonic() - start) })),
    failed: (error) => {
      const { exitCode, item } = failureOf(error, { verbose: false })
      return { errors: [item], exitCode }
    },
  }
}
