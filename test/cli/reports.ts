import type { Host } from '../../src/cli/host.js'
import { defineCommand } from '../../src/cli/commands/command.js'
import type { CommandModule, CommandResult } from '../../src/cli/commands/command.js'
import type { CommandEntry } from '../../src/cli/commands/table.js'
import type { ReportMeta } from '../../src/cli/reporters/reporter.js'
import type { CliHost } from '../../src/cli/run-cli.js'
import type { Report } from '../../src/model/report.js'

/** A report without anything in it. */
export function emptyReport(given: Partial<Report> = {}): Report {
  return {
    command: 'verify',
    roots: ['/home/u/.claude'],
    applied: false,
    summary: {},
    findings: [],
    plan: [],
    kept: [],
    errors: [],
    exitCode: 0,
    ...given,
  }
}

/** A run at a fixed time, on something that is no terminal. */
export function metaOf(given: Partial<ReportMeta> = {}): ReportMeta {
  return {
    version: '9.8.7',
    startedAt: Date.UTC(2026, 0, 31, 4, 0, 0),
    durationMs: 1500,
    style: { colour: false, width: 80 },
    quiet: false,
    verbose: false,
    ...given,
  }
}

/** A command table with one command, `try`, that does what it is told. */
export function tableWith(module: CommandModule, usage = '[session..]'): CommandEntry[] {
  return [{ name: 'try', usage, aliases: ['t'], describe: 'Try it', example: 'try one', load: () => Promise.resolve(module) }]
}

/** A host with one command that runs `run`. */
export function hostWith(run: (...args: Parameters<CommandModule['run']>) => Promise<CommandResult>, given: Partial<Host> = {}): CliHost {
  const module = defineCommand({
    positionals: { session: { type: 'string', array: true } },
    options: { 'fail-on': { choices: ['error', 'warn'] }, 'top': { type: 'number' }, 'apply': { type: 'boolean' } },
    run,
  })
  return { env: {}, cwd: '/cwd', home: '/home/u', commands: tableWith(module), ...given }
}
