import type { CommandEntry } from './commands/table.js'
import type { OutputStream } from './output.js'

/** Everything the command line takes from the process it runs in. Tests give their own. */
export interface Host {
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly home: string
  /** Milliseconds since 1970. */
  clock(): number
  /** Milliseconds since any fixed moment; never goes back. */
  monotonic(): number
  /** Waits so many milliseconds, or until the signal is aborted. Never throws. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
  /** Aborted by a signal, with a `StoppedError` as its reason. */
  readonly signal: AbortSignal
  readonly commands: readonly CommandEntry[]
}
