import { RewindAdminError } from '../model/errors.js'
import { ExitCode } from '../model/exit-code.js'

/** How a program ended. `failure` says why there is no exit code: it is not there, it took too long, a signal. */
export interface ProgramEnd {
  readonly code: number | undefined
  readonly failure?: string
  readonly stdout: Buffer
  readonly stderr: string
}

/** Runs a program by its name with its words, never through a shell; never throws. The call ends within `timeoutMs`. */
export type RunProgram = (
  file: string,
  words: readonly string[],
  options: { readonly timeoutMs: number; readonly input?: Buffer },
) => Promise<ProgramEnd>

/** Milliseconds that a scheduler's program may take. */
export const programTimeout = 15_000

/** A scheduler of the system cannot be used, or refused. What was there before is as it was, unless the message says otherwise. */
export class SchedulerError extends RewindAdminError {
  readonly code = 'SCHEDULER'
  readonly exitCode = ExitCode.usage
}

/** What a program said, on one line, for a message. */
export function saidBy({ code, failure, stderr, stdout }: ProgramEnd): string {
  const text = (stderr.trim() === '' ? stdout.toString('utf8') : stderr).trim().replace(/\s+/g, ' ').slice(0, 300)
  const end = failure ?? `exit code ${String(code)}`
  return text === '' ? end : `${end}: ${text}`
}
