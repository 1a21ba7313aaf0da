import { RewindAdminError, UsageError } from '../../model/errors.js'
import { ExitCode } from '../../model/exit-code.js'
import { nextTime, type Calendar } from '../../schedule/calendar.js'
import { earlierDaemon, writeDaemonStatus, type DaemonCounts, type DaemonRunStatus, type DaemonStatus } from './daemon-status.js'

/** How one run of the job went. */
export interface DaemonRun {
  readonly exitCode: number
  readonly actions: number
  /** Bytes that became free. */
  readonly bytes: number
}

export interface DaemonOptions {
  readonly job: string
  readonly calendar: Calendar
  /** A name of the time zone database; that of the system unless given. */
  readonly zone?: string
  /** Runs the job once. It ends after the item in work when the signal is aborted. */
  readonly run: () => Promise<DaemonRun>
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Waits so many milliseconds, or until the signal is aborted. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
  readonly signal: AbortSignal
  readonly say: (level: 'info' | 'warn', message: string) => void
  /** Absolute path of the status file. */
  readonly statusFile?: string
  readonly pid: number
  /** Hex digits, new for each call. */
  readonly token: () => string
}

/** A clock that was set, and a machine that slept, are noticed after this many milliseconds at the latest. */
const longestSleep = 60_000
/** A run that begins this much late is called missed. */
const tolerance = 2 * longestSleep
/** A clock that goes back by more than this was wrong before: then times that were due count again. */
const clockSlack = 3_600_000
/** Missed times are counted up to here; the number is only for people. */
const mostCounted = 1000

/**
 * Runs a job whenever it is due until the signal is aborted, one run at a time. A time at which the run before still goes on is
 * skipped; times that passed while the machine slept, or while no daemon ran (by the status file), are made up by one run. What a
 * run throws is said and counted; the next one comes all the same. At the end the run in work is waited for.
 * @throws UsageError when the status file cannot be written at the start
 */
export async function runDaemon(options: DaemonOptions): Promise<DaemonCounts> {
  const daemon = new Daemon(options)
  return daemon.live()
}

class Daemon {
  readonly #options: DaemonOptions
  readonly #startedAt: number
  #next: number
  #seen: number
  #running: Promise<void> | undefined
  #busyUntil = Number.NEGATIVE_INFINITY
  #counts: DaemonCounts = { runs: 0, failed: 0, skipped: 0, missed: 0 }
  #last: DaemonRunStatus | null = null
  #silent = false

  constructor(options: DaemonOptions) {
    this.#options = options
    this.#startedAt = options.now()
    this.#seen = this.#startedAt
    this.#next = this.#after(this.#startedAt)
  }

  async live(): Promise<DaemonCounts> {
    const { now, sleep, signal, say, job, calendar } = this.#options
    this.#takeOver()
    this.#leave('waiting', true)
    say('info', `${job} at "${calendar.expression}"; next at ${iso(this.#next)}`)
    while (!signal.aborted) {
      const time = now()
      if (time < this.#seen - clockSlack) {
        this.#next = this.#after(time)
        this.#busyUntil = time
        say('warn', `the clock went back to ${iso(time)}; next at ${iso(this.#next)}`)
      }
      this.#seen = time
      if (time >= this.#next) this.#due(time)
      this.#leave(this.#running === undefined ? 'waiting' : 'running')
      await sleep(Math.min(longestSleep, Math.max(1, this.#next - time)), signal)
    }
    if (this.#running !== undefined) {
      say('info', 'stopping after the item in work')
      this.#leave('stopping')
      await this.#running
    }
    this.#leave('stopped')
    say('info', 'stopped')
    return this.#counts
  }

  /** Goes on where an earlier daemon was: what came due meanwhile was missed. */
  #takeOver(): void {
    const { statusFile, job, calendar, say } = this.#options
    const earlier = statusFile === undefined ? undefined : earlierDaemon(statusFile, job, calendar.expression)
    if (earlier?.interrupted === true) say('warn', 'an earlier daemon ended in the middle of a run; the next run finishes or rolls back what it left')
    if (earlier !== undefined && earlier.next <= this.#startedAt) this.#next = earlier.next
  }

  /** One or more times have come: decides which are skipped, which were missed, and whether to begin. */
  #due(time: number): void {
    const times: number[] = []
    let next = this.#next
    for (; next <= time && times.length < mostCounted; next = this.#after(next)) times.push(next)
    this.#next = next > time ? next : this.#after(time)
    const overlapping = times.filter((due) => this.#running !== undefined || due <= this.#busyUntil)
    const open = times.filter((due) => !overlapping.includes(due))
    if (overlapping.length > 0) this.#skip(overlapping)
    const due = open.at(-1)
    if (due === undefined) return
    const missed = time - due > tolerance ? open : open.slice(0, -1)
    if (missed.length > 0) this.#miss(missed)
    // Before the first word of the run: see `DaemonStatus.next`.
    this.#leave('running')
    this.#running = this.#once(due)
  }

  #skip(times: readonly number[]): void {
    this.#counts = { ...this.#counts, skipped: this.#counts.skipped + times.length }
    this.#options.say('warn', `skipped ${countOf(times)}: the run before was still going on`)
  }

  #miss(times: readonly number[]): void {
    this.#counts = { ...this.#counts, missed: this.#counts.missed + times.length }
    this.#options.say('warn', `missed ${countOf(times)}; one run makes up for it`)
  }

  async #once(due: number): Promise<void> {
    const { run, now, say, job } = this.#options
    const startedAt = now()
    say('info', `${job}: begins`)
    const result = await run().catch((error: unknown) => failed(error))
    const finishedAt = now()
    const ok = result.exitCode === ExitCode.done
    this.#last = { due: iso(due), startedAt: iso(startedAt), finishedAt: iso(finishedAt), ...result }
    this.#counts = { ...this.#counts, runs: this.#counts.runs + 1, failed: this.#counts.failed + (ok ? 0 : 1) }
    const what = 'message' in result ? result.message : `${String(result.actions)} actions, ${String(result.bytes)} bytes`
    say(ok ? 'info' : 'warn', `${job}: exit code ${String(result.exitCode)}, ${what}`)
    this.#busyUntil = finishedAt
    this.#running = undefined
    this.#leave(this.#options.signal.aborted ? 'stopping' : 'waiting')
  }

  #after(time: number): number {
    return nextTime(this.#options.calendar, time, this.#options.zone)
  }

  #leave(state: DaemonStatus['state'], first = false): void {
    const { statusFile, pid, job, calendar, now, token, say } = this.#options
    if (statusFile === undefined) return
    try {
      writeDaemonStatus(
        statusFile,
        {
          schemaVersion: 1,
          pid,
          job,
          at: calendar.expression,
          state,
          startedAt: iso(this.#startedAt),
          updatedAt: iso(now()),
          next: iso(this.#next),
          counts: this.#counts,
          lastRun: this.#last,
        },
        token(),
      )
      this.#silent = false
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (first) throw new UsageError(`the status file cannot be written: ${reason}`, { hint: 'name a file in a folder that exists and can be written', cause: error })
      if (!this.#silent) say('warn', `the status file cannot be written: ${reason}`)
      this.#silent = true
    }
  }
}

function failed(error: unknown): DaemonRun & { readonly message: string } {
  const message = error instanceof Error ? error.message : String(error)
  return { exitCode: error instanceof RewindAdminError ? error.exitCode : ExitCode.usage, actions: 0, bytes: 0, message }
}

function countOf(times: readonly number[]): string {
  const [first = 0] = times
  const count = times.length >= mostCounted ? `${String(mostCounted)} or more` : String(times.length)
  return times.length === 1 ? `the run of ${iso(first)}` : `${count} runs from ${iso(first)} on`
}

function iso(time: number): string {
  return new Date(time).toISOString()
}
