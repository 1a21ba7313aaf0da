import { exitCodeTable } from '../model/exit-code.js'
import type { CommandEntry } from './commands/table.js'
import { describeCommands, type DescribedCommand } from './completion-script.js'
import { globalOptions } from './globals.js'

export interface ManPageOptions {
  readonly version: string
  /** Day of the page, as 2026-01-31. */
  readonly date: string
}

/** The manual page in the `man` macros, from the same tables as `--help`. */
export async function manPage(entries: readonly CommandEntry[], { version, date }: ManPageOptions): Promise<string> {
  const described = await describeCommands(entries)
  const [first] = described
  const general = first === undefined ? [] : first.options.filter(isGeneral)
  const blocks = [
    `.TH REWIND\\-ADMIN 1 "${date}" ${quoted(`rewind-admin ${version}`)} "User Commands"`,
    '.nh\n.ad l',
    '.SH NAME\nrewind\\-admin \\- maintenance for the rewind stores of coding agents',
    '.SH SYNOPSIS\n.B rewind\\-admin\n.I command\n.RI [ options ]',
    `.SH DESCRIPTION\n${paragraphs(description)}`,
    `.SH COMMANDS\n${entries.map((entry) => commandBlock(entry, described.find(({ word }) => word === entry.name))).join('\n')}`,
    `.SH OPTIONS OF EVERY COMMAND\n${optionBlocks(general)}`,
    `.SH EXIT STATUS\n${exitCodeTable.map(({ code, name, meaning }) => `.TP\n.BR ${String(code)} " (${roff(name)})"\n${line(meaning)}`).join('\n')}\n.PP\nAny other code is a failure.`,
    `.SH ENVIRONMENT\n${definitions(environment)}`,
    `.SH FILES\n${definitions(files)}`,
  ]
  return `${blocks.join('\n')}\n`
}

const description = [
  'Coding agents save the bytes of a file before they edit it, so that a user can go back to an earlier message. rewind-admin checks these stores, makes room in them without losing what cannot be brought back, and rewinds and forks on the same core.',
  'Commands that remove or overwrite print a plan and change nothing without --apply. What is removed waits in a trash on the same file system. Results go to standard output, logs and progress to standard error.',
]

const environment = [
  ['NO_COLOR', 'When it is set and not empty, nothing is coloured.'],
  ['CLAUDE_CONFIG_DIR', 'The data folder of Claude Code, instead of ~/.claude.'],
  ['REWIND_ADMIN_RECORDS', 'Where hooks record, instead of ~/.local/share/rewind-admin/sessions.'],
  ['XDG_CONFIG_HOME', 'Where the configuration lies, instead of ~/.config.'],
] as const

const files = [
  ['~/.config/rewind-admin/rewind-admin.config.json', 'The configuration; every key is optional.'],
  ['<root>/.rewind-admin', 'Our own folder in or beside a store: lock, seals, trash, history of runs.'],
] as const

function commandBlock({ name, usage, describe, example }: CommandEntry, described: DescribedCommand | undefined): string {
  const own = described?.options.filter((option) => !isGeneral(option)) ?? []
  const head = `.SS ${roff(`${name} ${usage}`.trim())}\n${line(sentence(describe))}`
  const choices = described !== undefined && described.words.length > 0 && name !== 'help' ? `\n.PP\n${line(`The first word is one of: ${described.words.join(', ')}.`)}` : ''
  return `${head}${choices}\n${own.length === 0 ? '' : `${optionBlocks(own)}\n`}.PP\nExample:\n.PP\n.RS 4\n.nf\nrewind\\-admin ${roff(example)}\n.fi\n.RE`
}

function isGeneral({ word }: { readonly word: string }): boolean {
  return word === '--help' || Object.hasOwn(globalOptions, word.slice(2))
}

function optionBlocks(options: DescribedCommand['options']): string {
  return options
    .map(({ word, describe, values, flag }) => {
      const argument = flag ? '' : ` " " ${quoted(values.length > 0 ? values.join('|') : 'value')}`
      return `.TP\n${flag ? '.B' : '.BI'} ${roff(word)}${argument}\n${line(sentence(describe))}`
    })
    .join('\n')
}

function definitions(rows: readonly (readonly [term: string, meaning: string])[]): string {
  return rows.map(([term, meaning]) => `.TP\n.B ${roff(term)}\n${line(meaning)}`).join('\n')
}

function paragraphs(texts: readonly string[]): string {
  return texts.map(line).join('\n.PP\n')
}

function quoted(text: string): string {
  return `"${roff(text).replaceAll('"', '\\(dq')}"`
}

function sentence(text: string): string {
  return text.endsWith('.') ? text : `${text}.`
}

/** Text as lines of its own, none of which begins like a request. */
function line(text: string): string {
  return roff(text)
    .replace(/(.{1,78})(?: |$)/g, '$1\n')
    .trimEnd()
    .replace(/^(?=[.'])/gm, '\\&')
}

/** What has a meaning of its own to roff, as the character it is: a hyphen would be typeset as a dash that nobody can search for. */
function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll("'", '\\(aq')
    .replaceAll('`', '\\(ga')
    .replaceAll('^', '\\(ha')
    .replaceAll('~', '\\(ti')
    .replace(/[^\u0000-\u007f]/g, (character) => `\\[u${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`)
}
