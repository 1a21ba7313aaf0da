import { setTimeout as pause } from 'node:timers/promises'
import { ExitCode } from '../model/exit-code.js'
import { noItems, type Report } from '../model/report.js'
import type { CommandResult } from './commands/command.js'
import { commandTable } from './commands/table.js'
import { createContext, styleOf } from './context.js'
import { failureOf, StoppedError } from './errors.js'
import { readGlobals } from './globals.js'
import type { Host } from './host.js'
import { CapturedStream } from './output.js'
import { parseArguments, type CommandRequest } from './program.js'
import { reporters } from './reporters/registry.js'
import type { ReporterName, ReportMeta } from './reporters/reporter.js'
import { UsageError } from '../model/errors.js'
import { readVersion } from './version.js'

export interface CliResult {
  readonly exitCode: ExitCode
  /** What was written to the streams that were not given; '' for those that were. */
  readonly stdout: string
  readonly stderr: string
}

/** Where a command line runs. What is left out is captured (streams), real (clocks), or complete (commands). */
export type CliHost = Pick<Host, 'env' | 'cwd' | 'home'> & Partial<Host>

/**
 * Runs one command line in this process; `argv` is without `node` and script. Never throws and never exits: errors become words
 * on stderr, the JSON envelope when JSON was asked for, and the exit code.
 */
export async function runCli(argv: readonly string[], given: CliHost): Promise<CliResult> {
  const stdout = new CapturedStream()
  const stderr = new CapturedStream()
  const host: Host = {
    stdout,
    stderr,
    clock: () => Date.now(),
    monotonic: () => performance.now(),
    sleep: (ms, signal) => pause(ms, undefined, { signal }).catch(() => undefined),
    signal: new AbortController().signal,
    commands: commandTable,
    ...given,
  }
  const exitCode = await execute(argv, host)
  return { exitCode, stdout: stdout.text, stderr: stderr.text }
}

async function execute(argv: readonly string[], host: Host): Promise<ExitCode> {
  const run = new Run(argv, host)
  try {
    return await run.go()
  } catch (error) {
    return run.fail(error)
  }
}

/** One run: what is known of it so far decides how a failure is reported. */
class Run {
  readonly #argv: readonly string[]
  readonly #host: Host
  readonly #monotonicStart: number
  #startedAt: number
  #format: ReporterName
  #command: string
  #roots: readonly string[] = []
  #verbose: boolean
  #clear = (): void => undefined

  constructor(argv: readonly string[], host: Host) {
    this.#argv = argv
    this.#host = host
    this.#monotonicStart = host.monotonic()
    this.#startedAt = host.clock()
    // A command line that cannot be parsed is still answered in JSON when it asks for it.
    const words = argv.slice(0, argv.includes('--') ? argv.indexOf('--') : argv.length)
    this.#format = words.includes('--json') ? 'json' : 'text'
    this.#verbose = words.includes('--verbose')
    this.#command = words.find((word) => host.commands.some(({ name }) => name === word)) ?? ''
  }

  async go(): Promise<ExitCode> {
    const request = await parseArguments(this.#argv, this.#host)
    if (request.kind === 'text') {
      this.#host.stdout.write(request.text)
      return ExitCode.done
    }
    this.#command = request.entry.name
    this.#format = formatOf(request)
    const globals = readGlobals(request.argv, this.#host)
    this.#roots = globals.roots
    this.#verbose = globals.verbose
    this.#startedAt = globals.now ?? this.#startedAt
    const context = createContext(this.#host, globals)
    this.#clear = () => {
      context.progress.end()
    }
    const result = await request.module.run(context, camelCase(request.argv))
    context.progress.end()
    const { reason } = this.#host.signal as { reason: unknown }
    const exitCode = reason instanceof StoppedError ? reason.exitCode : result.report.exitCode
    this.#write(
      { ...result, report: { ...result.report, exitCode } },
      { quiet: globals.quiet, verbose: globals.verbose, color: globals.color },
    )
    return exitCode
  }

  fail(error: unknown): ExitCode {
    this.#clear()
    const failure = failureOf(error, { verbose: this.#verbose })
    this.#host.stderr.write(failure.lines.map((line) => `${line}\n`).join(''))
    if (this.#format !== 'text') {
      const report: Report = {
        command: this.#command,
        roots: this.#roots,
        applied: false,
        summary: {},
        ...noItems,
        errors: [failure.item],
        exitCode: failure.exitCode,
      }
      this.#write({ report }, { quiet: false, verbose: this.#verbose, color: 'never' })
    }
    return failure.exitCode
  }

  #write(result: CommandResult, looks: { quiet: boolean; verbose: boolean; color: 'auto' | 'always' | 'never' }): void {
    const style = styleOf(this.#host, looks.color)
    const meta: ReportMeta = {
      version: readVersion(),
      startedAt: this.#startedAt,
      durationMs: Math.round(this.#host.monotonic() - this.#monotonicStart),
      style,
      quiet: looks.quiet,
      verbose: looks.verbose,
      ...(this.#format === 'text' && result.text !== undefined ? { text: result.text(style) } : {}),
    }
    this.#host.stdout.write(reporters[this.#format].write(result.report, meta))
  }
}

function formatOf(request: CommandRequest): ReporterName {
  const { json, format } = request.argv
  const named = (Object.keys(reporters) as ReporterName[]).find((name) => name === format)
  if (json !== true) return named ?? 'text'
  if (named !== undefined && named !== 'json') throw new UsageError(`--json and --format ${named} exclude each other`)
  return 'json'
}

function camelCase(argv: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(argv).map(([name, value]) => [name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase()), value]),
  )
}
