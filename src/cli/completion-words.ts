import type { Options, PositionalOptions } from 'yargs'
import type { CommandEntry } from './commands/table.js'
import { globalOptions } from './globals.js'

/** Positionals that are ids of sessions of a store. */
const sessionNames: readonly string[] = ['session', 'old', 'new']

/** How many of the first positionals of a command are ids of sessions; `Infinity` when it takes any number of them. */
export function sessionPositions(positionals: Readonly<Record<string, PositionalOptions>>): number {
  const all = Object.entries(positionals)
  const other = all.findIndex(([name]) => !sessionNames.includes(name))
  if (other !== -1) return other
  return all.some(([, { array }]) => array === true) ? Infinity : all.length
}

/**
 * What a half-typed command line says, when an id of a session would be next: its options by name, as they were typed. `undefined`
 * when something else would be next.
 * @param words those after the program's name and before the one that is typed; `=` may stand alone, as bash has it
 */
export async function whereSessionIsNext(words: readonly string[], entries: readonly CommandEntry[]): Promise<Readonly<Record<string, string | readonly string[]>> | undefined> {
  const at = words.findIndex((word) => entries.some((entry) => isNamed(entry, word)))
  const entry = entries.find((each) => isNamed(each, words[at] ?? ''))
  if (entry === undefined) return undefined
  const module = await entry.load()
  const options: Readonly<Record<string, Options>> = { ...module.options, ...globalOptions }
  const given: Record<string, string[]> = {}
  let position = 0
  const rest = words.filter((word, index) => index !== at && word !== '=').values()
  for (const word of rest) {
    const [, name = '', value] = /^--([a-z-]+)(?:=(.*))?$/.exec(word) ?? []
    const option = Object.hasOwn(options, name) ? options[name] : undefined
    if (option === undefined) {
      if (!word.startsWith('-')) position += 1
      continue
    }
    if (option.type === 'boolean') continue
    const taken = value ?? rest.next().value
    // The value of an option is next.
    if (taken === undefined) return undefined
    given[name] = option.array === true ? [...(given[name] ?? []), taken] : [taken]
  }
  if (position >= sessionPositions(module.positionals)) return undefined
  return Object.fromEntries(Object.entries(given).map(([name, values]) => [name, options[name]?.array === true ? values : (values[0] ?? '')]))
}

function isNamed(entry: CommandEntry, word: string): boolean {
  return entry.name === word || entry.aliases?.includes(word) === true
}
