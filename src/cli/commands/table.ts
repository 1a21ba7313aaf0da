/**
 * Every command. To add one: write `commands/<verb>.ts` with `export const command = defineCommand({…})` (see
 * command.ts for what a `CommandModule` is) and add one line here. Modules are loaded only when they are run or described.
 */
import type { CommandModule } from './command.js'

/** What is known of a command without loading it. */
export interface CommandEntry {
  readonly name: string
  /** Positionals in yargs' notation: `<session> [message]`, `[session..]`; '' for none. */
  readonly usage: string
  readonly aliases?: readonly string[]
  readonly describe: string
  /** One command line that is worth trying, without the program's name. */
  readonly example: string
  load(): Promise<CommandModule>
}

export const commandTable: readonly CommandEntry[] = [
  {
    name: 'status',
    usage: '[session]',
    describe: 'Show the stores, their size, retention, and what the next night would do',
    example: 'status --top 5',
    load: async () => (await import('./status.js')).command,
  },
  {
    name: 'list',
    usage: '',
    describe: 'List sessions',
    example: 'list --project ~/notes',
    load: async () => (await import('./list.js')).command,
  },
  {
    name: 'show',
    usage: '<session>',
    describe: 'Show the checkpoints of a session and what a rewind would find',
    example: 'show 3f07fb89 --files',
    load: async () => (await import('./show.js')).command,
  },
  {
    name: 'verify',
    usage: '[session..]',
    describe: 'Check that every backup is there and is the right one',
    example: 'verify --format sarif',
    load: async () => (await import('./verify.js')).command,
  },
  {
    name: 'doctor',
    usage: '',
    describe: 'Check the environment, the settings and our own folder',
    example: 'doctor',
    load: async () => (await import('./doctor.js')).command,
  },
  {
    name: 'repair',
    usage: '[session..]',
    describe: 'Rebuild broken backups from proof; a preview without --apply',
    example: 'repair',
    load: async () => (await import('./repair.js')).command,
  },
  {
    name: 'migrate',
    usage: '[session..]',
    describe: 'Bring older states up to date, or to where a project moved; a preview without --apply',
    example: 'migrate --move ~/notes ~/code/notes',
    load: async () => (await import('./migrate.js')).command,
  },
  {
    name: 'rewind',
    usage: '<session> <message>',
    describe: 'Take code, conversation or both back to a message; a preview without --apply',
    example: 'rewind 3f07fb89 e35bb328 --diff',
    load: async () => (await import('./rewind.js')).command,
  },
  {
    name: 'redo',
    usage: '<session>',
    describe: 'Undo the last rewind of a session; a preview without --apply',
    example: 'redo 3f07fb89',
    load: async () => (await import('./redo.js')).command,
  },
  {
    name: 'fork',
    usage: '<old> <new>',
    describe: 'Give a forked session its backups and records',
    example: 'fork 995b02cc c1538ca9-2b75-4696-80eb-20b1d9aa4dd9',
    load: async () => (await import('./fork.js')).command,
  },
  {
    name: 'cap',
    usage: '',
    describe: 'Remove backups that no checkpoint within the cap needs; a preview without --apply',
    example: 'cap --max 100',
    load: async () => (await import('./cap.js')).command,
  },
  {
    name: 'expire',
    usage: '',
    describe: 'Remove sessions older than their retention period; a preview without --apply',
    example: 'expire --older-than 90d',
    load: async () => (await import('./expire.js')).command,
  },
  {
    name: 'purge',
    usage: '[project..]',
    describe: 'Remove all state of a project; a preview without --apply',
    example: 'purge ~/notes',
    load: async () => (await import('./purge.js')).command,
  },
  {
    name: 'trash',
    usage: '<act> [run] [session]',
    describe: 'List, restore or empty the trash',
    example: 'trash list',
    load: async () => (await import('./trash.js')).command,
  },
  {
    name: 'apply',
    usage: '<file>',
    describe: 'Apply a plan that --plan-out wrote',
    example: 'apply plan.json',
    load: async () => (await import('./apply.js')).command,
  },
  {
    name: 'run',
    usage: '[job]',
    describe: 'Run a job, here or in many homes; a preview without --apply',
    example: 'run nightly',
    load: async () => (await import('./run.js')).command,
  },
  {
    name: 'schedule',
    usage: '<act> [what]',
    describe: 'Give a job to the scheduler of the system, say what is scheduled, take it out again',
    example: 'schedule install --at 03:30',
    load: async () => (await import('./schedule.js')).command,
  },
  {
    name: 'daemon',
    usage: '',
    describe: 'Run a job whenever it is due, in the foreground, where there is no scheduler',
    example: 'daemon --job nightly --at 03:30 --apply',
    load: async () => (await import('./daemon.js')).command,
  },
  {
    name: 'hook',
    usage: '<act> [agent]',
    describe: 'Record checkpoints for an agent that calls this at each prompt and before each edit',
    example: 'hook install claude-code --apply',
    load: async () => (await import('./hook.js')).command,
  },
  {
    name: 'report',
    usage: '',
    describe: 'Show sizes, growth, findings, and what nights removed and will remove; --html makes a page of it',
    example: 'report --html report.html',
    load: async () => (await import('./report.js')).command,
  },
  {
    name: 'help',
    usage: '[topic]',
    describe: 'Explain a command, or: exit-codes, man',
    example: 'help exit-codes',
    load: async () => (await import('./help.js')).command,
  },
  {
    name: 'completion',
    usage: '<shell>',
    describe: 'Print a completion script',
    example: 'completion bash',
    load: async () => (await import('./completion.js')).command,
  },
]
