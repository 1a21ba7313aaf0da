import { UsageError } from '../model/errors.js'
import type { GlobalOptions } from './globals.js'
import type { Host } from './host.js'
import { createLogger, type Logger, type LoggerOptions } from './logger.js'
import type { OutputStream } from './output.js'
import { createProgress, type Progress } from './progress.js'
import type { Style } from './text/style.js'

/** Everything a command gets besides its own options. */
export interface CommandContext {
  readonly globals: GlobalOptions
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly home: string
  /** Milliseconds since 1970: `--now`, else the clock. */
  now(): number
  /** Milliseconds since any fixed moment, for durations. */
  monotonic(): number
  /** Waits so many milliseconds, or until the signal is aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
  /** Only for what a result cannot hold: results are handed back, not written. */
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  readonly isTerminal: { readonly stdout: boolean; readonly stderr: boolean }
  /** Aborted by SIGINT or SIGTERM: finish the item in work, then hand back what was done or throw its reason. */
  readonly signal: AbortSignal
  readonly logger: Logger
  readonly progress: Progress
}

/** Builds the context of one run. Throws `UsageError` when the log file cannot be opened. */
export function createContext(host: Host, globals: GlobalOptions): CommandContext {
  const stderrIsTerminal = host.stderr.isTTY === true
  const progress = createProgress({
    stream: host.stderr,
    monotonic: () => host.monotonic(),
    every,
    mode: globals.quiet ? 'off' : stderrIsTerminal ? 'line' : globals.verbose ? 'lines' : 'off',
  })
  const now = (): number => globals.now ?? host.clock()
  const logger = openLogger({
    level: globals.verbose ? 'debug' : globals.logFile !== undefined ? 'info' : globals.quiet ? 'error' : 'warn',
    file: globals.logFile,
    now,
    write: (text) => {
      progress.clear()
      host.stderr.write(text)
    },
  })
  return {
    globals,
    env: host.env,
    cwd: host.cwd,
    home: host.home,
    now,
    monotonic: () => host.monotonic(),
    sleep: (ms, signal) => host.sleep(ms, signal),
    stdout: host.stdout,
    stderr: host.stderr,
    isTerminal: { stdout: host.stdout.isTTY === true, stderr: stderrIsTerminal },
    signal: host.signal,
    logger,
    progress,
  }
}

/** A timer that keeps no process alive. */
function every(milliseconds: number, act: () => void): () => void {
  const timer = setInterval(act, milliseconds).unref()
  return () => {
    clearInterval(timer)
  }
}

/** How text on stdout may look: `--color`, else `NO_COLOR`, else whether it is a terminal. */
export function styleOf(host: Pick<Host, 'stdout' | 'env'>, color: GlobalOptions['color']): Style {
  const { NO_COLOR: noColour, TERM: term } = host.env
  const able = host.stdout.isTTY === true && (noColour === undefined || noColour === '') && term !== 'dumb'
  return { colour: color === 'always' || (color === 'auto' && able), width: host.stdout.columns ?? 80 }
}

function openLogger(options: LoggerOptions): Logger {
  try {
    return createLogger(options)
  } catch (error) {
    throw new UsageError(`the log file cannot be opened: ${options.file ?? ''}`, {
      cause: error,
      hint: 'name a file in a folder that exists and can be written',
    })
  }
}
