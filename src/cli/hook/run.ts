import { randomUUID } from 'node:crypto'
import { statSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { recorderFolder } from '../../formats/pi-candy-undo/settings.js'
import { thisMachine } from '../../fs/machine.js'
import { UsageError } from '../../model/errors.js'
import { openRecorder } from '../../recorder/recorder.js'
import { durationOption } from '../commands/durations.js'
import { readGlobals, type GlobalOptions } from '../globals.js'
import { lockHost } from '../lock-host.js'
import { hookEvent } from './event.js'
import { readInput, type InputStream } from './input.js'
import { defaultTimeLimit } from './options.js'
import type { HookCall } from './parse.js'
import { recordEvent, type Say } from './record.js'

/** What a hook takes from its process. */
export interface HookHost {
  readonly stdin: InputStream & { readonly isTTY?: boolean }
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly home: string
  /** Milliseconds since 1970. */
  clock(): number
  /** Milliseconds since the process began. */
  running(): number
  say: Say
  /** Ends the process at once: what is awaited does not come. */
  giveUp(): void
}

/** What the options of a hook come to. */
export interface HookSetting {
  readonly globals: GlobalOptions
  readonly root: string
  /** Milliseconds. */
  readonly timeLimit: number
  readonly everyTurn: boolean
  readonly maxFileBytes: number | undefined
  readonly exclude: readonly string[]
  readonly excludeDefaults: boolean
}

/** Share of the time limit after which nothing is waited for any more; the rest is for noting what is missing. */
const waitShare = 0.8
/** Least time for that. Milliseconds. */
const lastWords = 50

/** Reads and checks the options. Throws `UsageError`. */
export function hookSetting(argv: Readonly<Record<string, unknown>>, around: Pick<HookHost, 'env' | 'cwd' | 'home'>): HookSetting {
  const globals = readGlobals(argv, around)
  const [root, ...others] = globals.roots
  if (others.length > 0) throw new UsageError('a hook records in one store: --root was given twice')
  const limit = argv['max-file-bytes']
  if (typeof limit === 'number' && (!Number.isSafeInteger(limit) || limit < 0)) throw new UsageError('--max-file-bytes must be a whole number, 0 for no limit')
  const timeLimit = durationOption('--time-limit', typeof argv['time-limit'] === 'string' ? argv['time-limit'] : defaultTimeLimit) ?? 0
  if (timeLimit === 0) throw new UsageError('--time-limit 0s leaves no time')
  return {
    globals,
    root: root ?? recorderFolder(around),
    timeLimit,
    everyTurn: argv['every-turn'] === true,
    maxFileBytes: typeof limit === 'number' ? limit : undefined,
    exclude: Array.isArray(argv.exclude) ? argv.exclude.map(String) : [],
    excludeDefaults: argv['no-default-excludes'] !== true,
  }
}

/** Reads the input of a hook and records what it says, within its time limit. Never throws: what fails is said. */
export async function runHook({ agent }: Pick<HookCall, 'agent'>, setting: HookSetting, host: HookHost): Promise<void> {
  const waiting = new AbortController()
  const left = (): number => setting.timeLimit - host.running()
  const timer = setTimeout(() => {
    waiting.abort()
    last = setTimeout(() => { host.giveUp() }, Math.max(lastWords, left()))
  }, Math.max(0, left() - (1 - waitShare) * setting.timeLimit))
  let last: NodeJS.Timeout | undefined
  try {
    const event = hookEvent(agent, await readInput(host.stdin, waiting.signal), host.cwd)
    if (event === undefined) return
    const machine = thisMachine()
    const recorder = openRecorder({
      root: setting.root,
      sessionId: event.session,
      cwd: [event.cwd, host.env.CLAUDE_PROJECT_DIR ?? ''].find(isFolder) ?? host.cwd,
      now: () => setting.globals.now ?? host.clock(),
      uuid: randomUUID,
      process: { pid: process.pid, host: lockHost(machine), table: machine, command: 'hook' },
      waitMs: setting.timeLimit,
      signal: waiting.signal,
      evenIfReadOnly: true,
      everyTurn: setting.everyTurn,
      ...(setting.maxFileBytes === undefined ? {} : { maxFileBytes: setting.maxFileBytes }),
      exclude: setting.exclude,
      excludeDefaults: setting.excludeDefaults,
    })
    await recordEvent(recorder, event, host.say)
  } catch (error) {
    host.say('warn', `nothing was recorded: ${error instanceof Error ? error.message : String(error)}`, error)
  } finally {
    clearTimeout(timer)
    clearTimeout(last)
  }
}

/** The folder that an agent works in may be gone by now. */
function isFolder(path: string): boolean {
  return isAbsolute(path) && statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}
