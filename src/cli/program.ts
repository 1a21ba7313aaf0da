import yargs, { type Argv, type Options } from 'yargs'
import { UsageError } from '../model/errors.js'
import type { CommandModule } from './commands/command.js'
import type { CommandEntry } from './commands/table.js'
import { globalOptions } from './globals.js'
import type { Host } from './host.js'
import { readVersion } from './version.js'

const programName = 'rewind-admin'

/** What the command line asks for: some text (help, version), or a command with its checked arguments by kebab-case name. */
export type Request = { readonly kind: 'text'; readonly text: string } | CommandRequest

export interface CommandRequest {
  readonly kind: 'command'
  readonly entry: CommandEntry
  readonly module: CommandModule
  readonly argv: Readonly<Record<string, unknown>>
}

/** Parses a command line. Only the module of the command that is named is loaded. Throws `UsageError`. */
export async function parseArguments(argv: readonly string[], host: Pick<Host, 'commands' | 'stdout' | 'cwd'>): Promise<Request> {
  const requests: CommandRequest[] = []
  let output = ''
  let parser = createParser(host)
  for (const entry of host.commands) {
    let module: CommandModule | undefined
    parser = parser.command({
      command: `${entry.name} ${entry.usage}`.trim(),
      aliases: entry.aliases ?? [],
      describe: entry.describe,
      builder: async (sub: Argv) => {
        module = await entry.load()
        return declare(sub, entry, module)
      },
      handler: (parsed) => {
        if (module !== undefined) requests.push({ kind: 'command', entry, module, argv: parsed })
      },
    })
  }
  await parser.parseAsync(rewrite(argv, host.commands), {}, (_error: unknown, _argv: unknown, text: string) => {
    output = text
  })
  const [request] = requests
  if (request === undefined) return { kind: 'text', text: `${output.trimEnd()}\n` }
  checkArguments(request)
  return request
}

function createParser(host: Pick<Host, 'stdout' | 'cwd'>): Argv {
  return yargs([], host.cwd)
    .scriptName(programName)
    .usage('$0 <command> [options]')
    .exitProcess(false)
    .locale('en')
    .parserConfiguration({
      'greedy-arrays': false,
      'parse-numbers': false,
      'parse-positional-numbers': false,
      'dot-notation': false,
      'camel-case-expansion': false,
      'boolean-negation': false,
    })
    .strict()
    .recommendCommands()
    .demandCommand(1, 'no command was given')
    .options(withValues(globalOptions))
    .group(Object.keys(globalOptions), 'Options of every command:')
    .version(readVersion())
    .alias('version', 'V')
    .help()
    .alias('help', 'h')
    .wrap(Math.min(host.stdout.columns ?? 100, 120))
    .fail((message: string | null, error: Error | undefined) => {
      // The types promise an error; yargs gives none for its own complaints.
      throw error === undefined || error.name === 'YError' ? usageError(message ?? error?.message ?? '') : error
    })
}

function declare(sub: Argv, entry: CommandEntry, module: CommandModule): Argv {
  let parser = sub.usage(`$0 ${`${entry.name} ${entry.usage}`.trim()} [options]\n\n${entry.describe}`)
  for (const [name, options] of Object.entries(module.positionals)) parser = parser.positional(name, options)
  return parser.options(withValues(module.options)).example(`$0 ${entry.example}`, '')
}

/** Adds that every option but a flag needs a value. */
function withValues(options: Readonly<Record<string, Options>>): Record<string, Options> {
  return Object.fromEntries(
    Object.entries(options).map(([name, option]) => [name, option.type === 'boolean' || option.nargs !== undefined ? option : { requiresArg: true, ...option }]),
  )
}

/** `help verify` means `verify --help`, and `--no-color` means `--color never`. */
function rewrite(argv: readonly string[], commands: readonly CommandEntry[]): string[] {
  const [first, topic] = argv
  const named = commands.find((entry) => entry.name === topic || entry.aliases?.includes(topic ?? '') === true)
  if (first === 'help' && named !== undefined) return [named.name, '--help']
  return argv.map((word) => (word === '--no-color' ? '--color=never' : word))
}

/** What yargs lets pass: a value given twice or empty, a number that is none, words after `--` that no positional takes. */
function checkArguments(request: CommandRequest): void {
  const { argv, module, entry } = request
  const named: Record<string, Options> = { ...globalOptions, ...module.options }
  for (const [name, option] of Object.entries(named)) checkValue(`--${name}`, argv[name], option.array === true || option.nargs !== undefined)
  for (const [name, option] of Object.entries(module.positionals)) checkValue(name, argv[name], option.array === true)
  const [, ...rest] = Array.isArray(argv._) ? argv._.map(String) : []
  if (rest.length > 0)
    throw new UsageError(`${entry.name} cannot use what follows --: ${rest.join(' ')}`, {
      hint: 'write a path that starts with a dash as ./-name',
    })
}

function checkValue(name: string, value: unknown, many: boolean): void {
  if (Array.isArray(value) && !many) throw new UsageError(`${name} was given twice`)
  for (const single of Array.isArray(value) ? (value as unknown[]) : [value]) {
    if (single === '') throw new UsageError(`${name} is empty`)
    if (Number.isNaN(single)) throw new UsageError(`${name} needs a number`)
  }
}

function usageError(message: string): UsageError {
  const text = message.replace(/\s*\n\s*/g, ' ').trim()
  const help = `${programName} --help lists the commands, ${programName} <command> --help their options`
  if (text.startsWith('Did you mean')) return new UsageError('there is no such command', { hint: text.replace('Did', 'did') })
  if (text.startsWith('Not enough non-option')) return new UsageError('something is missing after the command', { hint: help })
  const choice = /Argument: (\S+), Given: (.*?), Choices: (.*)$/.exec(text)
  if (choice !== null) return new UsageError(`${choice[1] ?? ''} cannot be ${choice[2] ?? ''}`, { hint: `it is one of ${choice[3] ?? ''}` })
  return new UsageError(text.charAt(0).toLowerCase() + text.slice(1), { hint: help })
}
