import { resolve } from 'node:path'
import type { Options } from 'yargs'
import { UsageError } from '../model/errors.js'
import type { FormatId } from '../model/session.js'

const formatIds = ['claude-code', 'pi-candy-undo', 'dsh-rewind', 'qwen-code'] as const satisfies readonly FormatId[]

/** When to colour: `auto` = on a terminal, unless `NO_COLOR` is set. */
const colourChoices = ['auto', 'always', 'never'] as const

/** The options that every command takes (design section 5), as yargs has them. */
export const globalOptions = {
  'root': { type: 'string', array: true, describe: "An agent's data folder; may be given again. None: all that are found" },
  'store': { choices: formatIds, describe: 'Only stores of this format' },
  'conversations': { type: 'string', describe: 'The folder of the conversations (pi); {home} stands for the home' },
  'runtime-root': { type: 'string', describe: 'The folder of the transcripts (qwen); {home} stands for the home' },
  'cwd': { type: 'string', describe: 'What relative paths mean when no record says' },
  'json': { type: 'boolean', describe: 'Print one JSON object' },
  'quiet': { type: 'boolean', describe: 'Problems only; no progress' },
  'verbose': { type: 'boolean', describe: 'Say more' },
  'log-file': { type: 'string', describe: 'Write the log to this file instead of stderr; at 10 MB a new one is begun, five are kept' },
  'now': { type: 'string', hidden: true, describe: 'The time to work with, ISO 8601 (tests)' },
  'color': { choices: colourChoices, describe: 'Colour the severity words; --no-color is the same as never' },
  'config': { type: 'string', describe: 'The configuration file' },
} as const satisfies Readonly<Record<string, Options>>

/** The global options as commands see them; paths are absolute, save for folders that begin with `{home}`. */
export interface GlobalOptions {
  readonly roots: readonly string[]
  readonly store: FormatId | undefined
  readonly conversations: string | undefined
  readonly runtimeRoot: string | undefined
  /** `--cwd`: what relative paths mean when no record says. */
  readonly baseFolder: string | undefined
  readonly json: boolean
  readonly quiet: boolean
  readonly verbose: boolean
  readonly logFile: string | undefined
  /** `--now` in milliseconds since 1970. */
  readonly now: number | undefined
  readonly color: (typeof colourChoices)[number]
  readonly config: string | undefined
}

/**
 * Turns parsed arguments into global options. A leading `~/` is the home, since shells leave it alone in `--root=~/x`.
 * Throws `UsageError` for a `--now` that is no time, and for `--quiet` with `--verbose`.
 */
export function readGlobals(argv: Readonly<Record<string, unknown>>, around: { cwd: string; home: string }): GlobalOptions {
  const path = (name: string): string | undefined => {
    const value = argv[name]
    return typeof value === 'string' ? absolutePath(value, around) : undefined
  }
  // A folder that begins with {home} is one of each home; it is said later whose.
  const template = (name: string): string | undefined => {
    const value = argv[name]
    return typeof value === 'string' && /^\{home\}(\/|$)/.test(value) ? value : path(name)
  }
  const roots: unknown = argv.root ?? []
  if (argv.quiet === true && argv.verbose === true) throw new UsageError('--quiet and --verbose exclude each other')
  return {
    roots: Array.isArray(roots) ? roots.map((root) => absolutePath(String(root), around)) : [],
    store: formatIds.find((id) => id === argv.store),
    conversations: template('conversations'),
    runtimeRoot: template('runtime-root'),
    baseFolder: template('cwd'),
    json: argv.json === true,
    quiet: argv.quiet === true,
    verbose: argv.verbose === true,
    logFile: path('log-file'),
    now: typeof argv.now === 'string' ? readTime(argv.now) : undefined,
    color: colourChoices.find((choice) => choice === argv.color) ?? 'auto',
    config: path('config'),
  }
}

/** A path of the command line: relative ones lie in the working folder, a leading `~/` is the home. */
export function absolutePath(path: string, around: { cwd: string; home: string }): string {
  if (path === '~') return around.home
  return path.startsWith('~/') ? resolve(around.home, path.slice(2)) : resolve(around.cwd, path)
}

function readTime(text: string): number {
  const time = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2}))?$/.test(text) ? Date.parse(text) : NaN
  if (Number.isNaN(time)) throw new UsageError(`--now is no time: ${text}`, { hint: 'give it as 2026-01-31T04:00:00Z' })
  return time
}
