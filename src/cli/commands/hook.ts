import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { userSettings } from '../../formats/claude-code/layout.js'
import { formats } from '../../formats/registry.js'
import { UsageError } from '../../model/errors.js'
import { shellQuoted } from '../../model/shell-word.js'
import type { Report } from '../../model/report.js'
import type { HookEntry } from '../../operations/hook/entries.js'
import { hookStatus, installHooks, removeHooks } from '../../operations/hook/install.js'
import { newToken } from '../../plan/run-id.js'
import type { CommandContext } from '../context.js'
import { hookOptions, hookPositionals } from '../hook/options.js'
import { hookSetting } from '../hook/run.js'
import { ownScript } from '../scheduling.js'
import { printable } from '../text/printable.js'
import { table } from '../text/table.js'
import { defineCommand } from './command.js'
import { fieldsOf, wordOf } from './session-table.js'

/** When Claude Code calls us, and for which of its tools. */
const events: readonly { readonly event: string; readonly matcher?: string }[] = [
  { event: 'SessionStart' },
  { event: 'UserPromptSubmit' },
  { event: 'PreToolUse', matcher: 'Edit|MultiEdit|Write|NotebookEdit' },
  { event: 'SessionEnd' },
]

/** Seconds that the agent waits longer than our own time limit: it ends by itself. */
const patience = 5

/** Installs hooks and takes them out. The hooks themselves are answered by `hook/process.ts` before this is loaded. */
export const command = defineCommand({
  positionals: hookPositionals,
  options: {
    ...hookOptions,
    project: { type: 'boolean', describe: 'With install and remove: .claude/settings.local.json of this folder instead of the settings of the user' },
    apply: { type: 'boolean', describe: 'With install and remove: write; without it the change is only shown' },
  },
  run(context, { act, project, apply, ...options }) {
    const files = settingsFiles(context)
    if (act === 'status') {
      const report = hookStatus(Object.values(files))
      return Promise.resolve({ report, text: () => ({ body: statusText(report) }) })
    }
    if (act !== 'install' && act !== 'remove') return Promise.reject(new UsageError(`hook ${act} is for a process that an agent starts`))
    const change = { file: project === true ? files.project : files.user, apply: apply === true, token: newToken() }
    const report = act === 'remove' ? removeHooks(change) : installHooks(entries(context, options), change)
    const preview = !report.applied && report.summary.changes !== 0
    return Promise.resolve({ report: preview ? { ...report, next: 'Run it again with --apply to act.' } : report, text: () => ({ body: changeText(report) }) })
  },
})

function settingsFiles(context: CommandContext): { readonly user: string; readonly project: string } {
  const { cwd } = context
  return { user: userSettings(context), project: join(cwd, '.claude', 'settings.local.json') }
}

function entries(context: CommandContext, options: Readonly<Record<string, unknown>>): HookEntry[] {
  const { globals } = context
  const given = Object.keys(hookOptions).map((name): [string, unknown] => [name, options[name.replace(/-./g, ([, letter = '']) => letter.toUpperCase())]])
  const { timeLimit } = hookSetting({ ...Object.fromEntries(given), ...(globals.roots.length === 0 ? {} : { root: globals.roots }) }, context)
  const [root] = globals.roots
  const other = root === undefined ? undefined : formats.find((format) => format.id !== 'pi-candy-undo' && format.detect(root))
  if (root !== undefined && other !== undefined) throw new UsageError(`${root} is a store of ${other.id}; what is recorded needs a folder of its own`)
  const named: [string, unknown][] = [['root', root], ['log-file', globals.logFile], ...given]
  const words = named.flatMap(([name, value]) => wordsOf(name, value))
  const command = [process.execPath, ownScript(), 'hook', 'claude-code', ...words].map((each) => (/^[a-z-]+$/.test(each) ? each : shellQuoted(each))).join(' ')
  return events.map((each) => ({ ...each, command, timeout: Math.ceil(timeLimit / 1000) + patience }))
}

function wordsOf(name: string, value: unknown): string[] {
  if (value === undefined || value === false) return []
  if (value === true) return [`--${name}`]
  return (Array.isArray(value) ? value : [value]).flatMap((each) => [`--${name}`, String(each)])
}

function changeText({ summary, extra, applied }: Report): string {
  const diff = wordOf(extra?.diff)
  const file = printable(wordOf(summary.file))
  const off = summary.disableAllHooks === true ? '\nThe settings say "disableAllHooks": no hook is called while they do.\n' : ''
  if (diff === '') return `${file} needs no change.\n${off}`
  return `${diff.split('\n').map(printable).join('\n')}\n${applied ? `${file} was ${existsSync(wordOf(summary.file)) ? 'written' : 'removed: there was nothing else in it'}.\n` : ''}${off}`
}

function statusText({ extra }: Report): string {
  const rows = fieldsOf(extra?.hooks).map(({ event, file, command: line }) => [wordOf(event), wordOf(file), wordOf(line)])
  return rows.length === 0 ? 'No hook is installed.\n' : table([{ title: 'event' }, { title: 'settings' }, { title: 'command' }], rows)
}
