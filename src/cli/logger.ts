import { createRequire } from 'node:module'
import type * as Pino from 'pino'

const require = createRequire(import.meta.url)

/** A message with its fields: `logger.warn({ path }, 'left alone')`. Never file contents (design section 3, promise 10). */
type Log = (fields: Readonly<Record<string, unknown>>, message: string) => void

export interface Logger {
  readonly debug: Log
  readonly info: Log
  readonly warn: Log
  readonly error: Log
}

export interface LoggerOptions {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  /** Absolute path; only its owner can read a file that is made. */
  readonly file: string | undefined
  /** Milliseconds since 1970. */
  now(): number
  /** Takes the lines when there is no file. */
  write(text: string): void
}

/**
 * A logger of JSON lines, without the name of the machine. Pino costs more than most runs need, so without a file it is loaded
 * with the first line. Throws the system error when the file cannot be opened.
 */
export function createLogger(options: LoggerOptions): Logger {
  let pino = options.file === undefined ? undefined : load(options)
  const levels = ['debug', 'info', 'warn', 'error'] as const satisfies readonly Pino.Level[]
  const lowest = levels.indexOf(options.level)
  const log = (level: (typeof levels)[number]): Log => {
    if (levels.indexOf(level) < lowest) return () => undefined
    return (fields, message) => {
      pino ??= load(options)
      pino[level](fields, message)
    }
  }
  return { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') }
}

function load(options: LoggerOptions): Pino.Logger {
  const { pino } = require('pino') as typeof Pino
  const stream = {
    write: (text: string) => {
      options.write(text)
    },
  }
  const destination = options.file === undefined ? stream : pino.destination({ dest: options.file, sync: true, mode: 0o600 })
  const timestamp = (): string => `,"time":"${new Date(options.now()).toISOString()}"`
  return pino({ level: options.level, base: null, timestamp, formatters: { level: (label) => ({ level: label }) } }, destination)
}
