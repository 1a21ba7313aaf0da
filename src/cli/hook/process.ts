import type { LoggerOptions } from '../logger.js'
import { homeFolder, workingFolder } from '../folders.js'
import { printable } from '../text/printable.js'
import { isHookCall, parseHook } from './parse.js'
import type { Say } from './record.js'
import { hookSetting, runHook, type HookSetting } from './run.js'

/** Not 2: to an agent that means to stop what it was about to do. */
const wrongCommand = 1

/**
 * Answers a command line when it is one hook of an agent: nothing on standard output, where an agent would read it, and exit code
 * 0 whatever happens, so that the agent goes on; only a wrong command line ends with 1. Returns false, and does nothing, for
 * other command lines.
 */
export async function hooked(words: readonly string[]): Promise<boolean> {
  if (!isHookCall(words)) return false
  const around = { env: process.env, cwd: workingFolder(), home: homeFolder() }
  const said: Promise<void>[] = []
  try {
    const call = parseHook(words)
    const setting = hookSetting(call.argv, around)
    const say: Say = (level, message, error) => {
      said.push(log(setting, level, message, error))
    }
    process.on('uncaughtException', (error) => {
      say('warn', `nothing more was recorded: ${error.message}`, error)
    })
    await runHook(call, setting, {
      ...around,
      stdin: process.stdin,
      clock: () => Date.now(),
      running: () => performance.now(),
      say,
      giveUp: () => process.exit(0),
    })
  } catch (error) {
    process.exitCode = wrongCommand
    process.stderr.write(`rewind-admin: ${printable(error instanceof Error ? error.message : String(error))}\n  rewind-admin hook --help lists the options\n`)
  }
  // An agent may keep its end open.
  process.stdin.destroy()
  await Promise.all(said)
  return true
}

/** Writes a line of the log when one is asked for. Its parts are loaded only then: a hook must be quick. */
async function log({ globals }: HookSetting, level: 'info' | 'warn', message: string, error: unknown): Promise<void> {
  if (!globals.verbose && globals.logFile === undefined) return
  try {
    const options: LoggerOptions = {
      level: globals.verbose ? 'debug' : 'info',
      file: globals.logFile,
      now: () => globals.now ?? Date.now(),
      write: (text) => process.stderr.write(text),
    }
    const { createLogger } = await import('../logger.js')
    createLogger(options)[level](error instanceof Error ? { err: error } : {}, message)
  } catch {
    // Not a reason to hold an agent up.
  }
}
