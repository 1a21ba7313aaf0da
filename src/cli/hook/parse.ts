import { parseArgs, type ParseArgsConfig } from 'node:util'
import type { Options } from 'yargs'
import { UsageError } from '../../model/errors.js'
import { globalOptions } from '../globals.js'
import { hookActs, hookAgents, hookOptions, type HookAgent } from './options.js'

/** Options of a hook by their names on the command line. */
export interface HookCall {
  readonly agent: HookAgent
  readonly argv: Readonly<Record<string, unknown>>
}

const table: Readonly<Record<string, Options>> = { ...hookOptions, ...globalOptions }
const parserOptions = {
  ...Object.fromEntries(Object.entries(table).map(([name, { type, array }]) => [name, { type: type === 'boolean' ? ('boolean' as const) : ('string' as const), multiple: array === true }])),
  help: { type: 'boolean' as const, short: 'h' },
}

/** True for a command line that an agent may have written: all of `hook` but its help and what people ask of it. */
export function isHookCall(words: readonly string[]): boolean {
  const { values, positionals } = parseArgs({ args: [...words], options: parserOptions, allowPositionals: true, strict: false })
  const [command, act] = positionals
  return command === 'hook' && values.help !== true && !hookActs.some((name) => name === act)
}

/**
 * Parses `hook <agent> [options]` from the tables that `--help` is made from, without the parser of the other commands, which
 * takes longer to load than a hook may take.
 * @throws UsageError
 */
export function parseHook(words: readonly string[]): HookCall {
  const { values, positionals, tokens } = parse({ args: [...words], options: parserOptions, allowPositionals: true, tokens: true, strict: true })
  const [, agent, ...rest] = positionals
  const known = hookAgents.find((name) => name === agent)
  if (known === undefined || rest.length > 0) throw new UsageError(`hook cannot use ${JSON.stringify(known === undefined ? (agent ?? '') : rest[0])}`)
  const names = tokens.flatMap((token) => (token.kind === 'option' && table[token.name]?.array !== true ? [token.name] : []))
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new UsageError(`--${twice} was given twice`)
  return { agent: known, argv: Object.fromEntries(Object.entries(values).map(([name, value]) => [name, checked(name, value, table[name])])) }
}

type Parsed = ReturnType<typeof parseArgs<ParseArgsConfig & { tokens: true }>>

function parse(config: ParseArgsConfig & { tokens: true }): Parsed {
  try {
    return parseArgs(config)
  } catch (error) {
    // Only the first sentence: the others tell how to write what no option takes.
    throw new UsageError((error instanceof Error ? error.message : String(error)).split('. ')[0] ?? '', { cause: error })
  }
}

function checked(name: string, value: unknown, option: Options | undefined): unknown {
  for (const single of Array.isArray(value) ? (value as unknown[]) : [value]) {
    if (single === '') throw new UsageError(`--${name} is empty`)
    if (option?.choices !== undefined && !option.choices.includes(String(single))) throw new UsageError(`${name} cannot be ${String(single)}`)
  }
  if (option?.type !== 'number') return value
  const number = Number(value)
  if (Number.isNaN(number)) throw new UsageError(`--${name} needs a number`)
  return number
}
