import type { Report } from '../../model/report.js'

/** As the global `fetch`, as far as it is needed. */
export type Fetch = (
  address: string,
  options: { readonly method: 'GET'; readonly signal: AbortSignal },
) => Promise<{ readonly ok: boolean; readonly status: number; readonly body?: { cancel(): Promise<void> } | null }>

/** How a program ended. */
export type CommandEnd =
  | { readonly kind: 'exit'; readonly code: number; readonly complaint: string }
  | { readonly kind: 'signal'; readonly signal: string; readonly complaint: string }
  | { readonly kind: 'too long' }
  | { readonly kind: 'not started'; readonly reason: string }

/**
 * Starts a program without a shell, gives it `input` on standard input, and ends it when it takes longer than `timeoutMs`. Never
 * throws. `complaint` is the last line it wrote on standard error.
 */
export type RunCommand = (
  command: readonly string[],
  options: { readonly input: string; readonly timeoutMs: number; readonly env: Readonly<Record<string, string>>; readonly signal?: AbortSignal },
) => Promise<CommandEnd>

/** What telling others needs of the machine; everything is passed in. */
export interface NotifyMeans {
  readonly fetch: Fetch
  readonly runCommand: RunCommand
  /** Ends what is waited for before the job begins. */
  readonly signal?: AbortSignal
  /** Milliseconds since 1970, the real ones. */
  clock(): number
  /** The report as hooks get it on standard input. */
  json(report: Report): string
  /** What a job that threw ends with, and the error as reports have it. */
  failed(error: unknown): Pick<Report, 'errors' | 'exitCode'>
}
