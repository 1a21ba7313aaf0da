import type { Options, PositionalOptions } from 'yargs'

/** Whose hook input can be read. */
export const hookAgents = ['claude-code', 'generic'] as const
export type HookAgent = (typeof hookAgents)[number]

/** How long a hook takes at most unless told otherwise. */
export const defaultTimeLimit = '5s'

/** One table for the parser of hooks, for `--help`, completion and the manual page. */
export const hookOptions = {
  'every-turn': { type: 'boolean', describe: 'Record every tracked file at every message, also when nothing changed' },
  'max-file-bytes': { type: 'number', describe: 'Larger files are not recorded, and a gap says so (8388608; 0: no limit)' },
  'exclude': { type: 'string', array: true, describe: 'Do not record what this pattern of gitignore matches; may be given again' },
  'no-default-excludes': { type: 'boolean', describe: 'Record also what is left out unless told otherwise: .git, node_modules, dist, build, coverage, .env*, *.lock' },
  'time-limit': { type: 'string', describe: `How long a hook takes at most (${defaultTimeLimit}); what cannot be recorded in time is noted as a gap` },
} as const satisfies Readonly<Record<string, Options>>

/** What people ask of hooks, besides what agents do. */
export const hookActs = ['install', 'remove', 'status'] as const

export const hookPositionals = {
  act: {
    choices: [...hookAgents, ...hookActs] as const,
    demandOption: true,
    describe: 'Whose hook input is read from standard input; or write hooks into the settings of an agent, take them out, say what is there',
  },
  agent: { choices: ['claude-code'] as const, default: 'claude-code', describe: 'With install, remove and status: whose settings' },
} as const satisfies Readonly<Record<string, PositionalOptions>>
