import type { Options } from 'yargs'
import type { CommandEntry } from './commands/table.js'
import { sessionPositions } from './completion-words.js'
import { globalOptions } from './globals.js'
import { shellQuoted } from '../model/shell-word.js'

export const shells = ['bash', 'zsh', 'fish'] as const

/** A word that can be completed, and what it means. */
interface Word {
  readonly word: string
  readonly describe: string
}

/** What a shell completes after one command. */
export interface DescribedCommand extends Word {
  /** Options with their dashes; `values` are the words an option takes, `flag` is true when it takes none. */
  readonly options: readonly (Word & { readonly values: readonly string[]; readonly flag: boolean })[]
  /** Words that the first positional may be. */
  readonly words: readonly string[]
  /** Ids of sessions may follow. */
  readonly sessions: boolean
}

/** Loads every command and says what can follow it. Aliases are commands of their own. */
export async function describeCommands(entries: readonly CommandEntry[]): Promise<DescribedCommand[]> {
  const described = entries.map(async (entry) => {
    const module = await entry.load()
    const table: Record<string, Options> = { ...module.options, ...globalOptions, help: { type: 'boolean', describe: 'Show help' } }
    const options = Object.entries(table)
      .filter(([, option]) => option.hidden !== true)
      .map(([name, option]) => ({
        word: `--${name}`,
        describe: typeof option.describe === 'string' ? option.describe : '',
        values: (option.choices ?? []).map(String),
        flag: option.type === 'boolean',
      }))
    const words = (Object.values(module.positionals)[0]?.choices ?? []).map(String)
    const topics = entry.name === 'help' ? ['exit-codes', 'man', ...entries.map(({ name }) => name)] : words
    return [entry.name, ...(entry.aliases ?? [])].map((word) => ({ word, describe: entry.describe, options, words: topics, sessions: sessionPositions(module.positionals) > 0 }))
  })
  return (await Promise.all(described)).flat()
}

/**
 * A script that completes commands, options, their fixed values, and ids of sessions, for which it asks this program; everything
 * else completes as a path.
 */
export function completionScript(shell: (typeof shells)[number], commands: readonly DescribedCommand[]): string {
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](commands)
}

function bashScript(commands: readonly DescribedCommand[]): string {
  const cases = commands.map(
    ({ word, options, words }) => `    ${word}) words='${[...words, ...options.map((option) => option.word)].join(' ')}' ;;`,
  )
  return `# rewind-admin completion for bash: eval "$(rewind-admin completion bash)"
_rewind_admin() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" command='' words='' index
  local -a typed=("\${COMP_WORDS[@]:1:COMP_CWORD-1}")
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    case "\${COMP_WORDS[index]}" in
      ${commands.map(({ word }) => word).join('|')}) command="\${COMP_WORDS[index]}"; break ;;
    esac
  done
  case "$command $before" in
${valueCases(commands, (command, option, values) => `    '${command} ${option}') COMPREPLY=($(compgen -W '${values}' -- "$current")); return ;;`)}
  esac
  case "$before" in
    ${pathOptions(commands).join('|')}) return ;;
  esac
  case "$command" in
${cases.join('\n')}
    *) words='${commands.map(({ word }) => word).join(' ')} --help --version' ;;
  esac
${sessionCase(commands, `[[ $current == -* ]] || words="$words $("\${COMP_WORDS[0]}" completion sessions "\${typed[@]/#/--word=}" 2>/dev/null </dev/null)"`)}  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _rewind_admin rewind-admin
`
}

function zshScript(commands: readonly DescribedCommand[]): string {
  const describe = (items: readonly Word[]): string =>
    items.map((item) => shellQuoted(`${item.word.replaceAll(':', '\\:')}:${item.describe}`)).join(' ')
  const cases = commands.map(
    ({ word, options, words }) =>
      `    ${word}) items=(${describe([...words.map((name) => ({ word: name, describe: '' })), ...options])}) ;;`,
  )
  return `#compdef rewind-admin
# rewind-admin completion for zsh: rewind-admin completion zsh > "\${fpath[1]}/_rewind-admin"
_rewind_admin() {
  local command='' index
  local -a items
  for ((index = 2; index < CURRENT; index++)); do
    case "\${words[index]}" in
      ${commands.map(({ word }) => word).join('|')}) command="\${words[index]}"; break ;;
    esac
  done
  case "$command \${words[CURRENT-1]}" in
${valueCases(commands, (command, option, values) => `    '${command} ${option}') compadd -- ${values}; return ;;`)}
  esac
  case "\${words[CURRENT-1]}" in
    ${pathOptions(commands).join('|')}) _files; return ;;
  esac
  case "$command" in
${cases.join('\n')}
    *) items=(${describe([...commands, { word: '--help', describe: 'Show help' }, { word: '--version', describe: 'Show the version' }])}) ;;
  esac
${sessionCase(commands, `[[ "\${words[CURRENT]}" == -* ]] || compadd -- \${(f)"$("\${words[1]}" completion sessions "\${(@)words[2,CURRENT-1]/#/--word=}" 2>/dev/null </dev/null)"}`)}  _describe 'rewind-admin' items
  _files
}
if [ "$funcstack[1]" = '_rewind-admin' ]; then _rewind_admin; else compdef _rewind_admin rewind-admin; fi
`
}

function fishScript(commands: readonly DescribedCommand[]): string {
  const names = commands.map(({ word }) => word).join(' ')
  const lines = commands.flatMap(({ word, describe, options, words, sessions }) => {
    const after = `complete -c rewind-admin -n '__fish_seen_subcommand_from ${word}'`
    return [
      `complete -c rewind-admin -n 'not __fish_seen_subcommand_from ${names}' -f -a ${word} -d ${fishQuote(describe)}`,
      ...words.map((name) => `${after} -a ${name}`),
      ...(sessions ? [`${after} -a '(__rewind_admin_sessions)'`] : []),
      ...options.map((option) => `${after} -l ${option.word.slice(2)}${argumentOf(option)} -d ${fishQuote(option.describe)}`),
    ]
  })
  return `# rewind-admin completion for fish: rewind-admin completion fish > ~/.config/fish/completions/rewind-admin.fish
function __rewind_admin_sessions
  set -l words (commandline -opc)
  $words[1] completion sessions --word=$words[2..-1] 2>/dev/null </dev/null
end
${lines.join('\n')}
`
}

/** What is done after commands that ids of sessions follow. */
function sessionCase(commands: readonly DescribedCommand[], act: string): string {
  const names = commands.flatMap(({ word, sessions }) => (sessions ? [word] : []))
  return names.length === 0 ? '' : `  case "$command" in\n    ${names.join('|')})\n      ${act} ;;\n  esac\n`
}

function argumentOf(option: DescribedCommand['options'][number]): string {
  if (option.flag) return ''
  return option.values.length === 0 ? ' -r' : ` -x -a '${option.values.join(' ')}'`
}

function valueCases(commands: readonly DescribedCommand[], line: (command: string, option: string, values: string) => string): string {
  return commands
    .flatMap(({ word, options }) =>
      options.filter(({ values }) => values.length > 0).map((option) => line(word, option.word, option.values.join(' '))),
    )
    .join('\n')
}

/** Options whose value may be anything. */
function pathOptions(commands: readonly DescribedCommand[]): string[] {
  const open = commands.flatMap(({ options }) => options.filter(({ flag, values }) => !flag && values.length === 0))
  return [...new Set(open.map(({ word }) => word))]
}

function fishQuote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
