import { createRequire } from 'node:module'
import type * as Pino from 'pino'
import { LogFile } from './log-file.js'

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
  /** Bytes of the file above which a new one is begun, and how many old ones are kept. */
  readonly fileLimit?: number
  readonly keptFiles?: number
  /** Milliseconds since 1970. */
  now(): number
  /** Takes the lines when there is no file, and what is to be said when the file cannot be written. */
  write(text: string): void
}

const fileLimit = 10_000_000
const keptFiles = 5

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
  const { file: path } = options
  const destination =
    path === undefined
      ? { write: (text: string) => { options.write(text) } }
      : new LogFile({
          path,
          limit: options.fileLimit ?? fileLimit,
          keep: options.keptFiles ?? keptFiles,
          failed: (error) => {
            options.write(`rewind-admin: the log file cannot be written, the run goes on without it: ${String(error)}\n`)
          },
        })
  const timestamp = (): string => `,"time":"${new Date(options.now()).toISOString()}"`
  return pino({ level: options.level, base: null, timestamp, formatters: { level: (label) => ({ level: label }) } }, destination)
}
