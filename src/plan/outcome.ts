import { isNoSpace } from '../fs/atomic-write.js'
import { RewindAdminError, systemErrorCode } from '../model/errors.js'
import { ExitCode } from '../model/exit-code.js'
import type { ErrorItem } from '../model/report.js'

/** What came of one action. A session is in place or away, never between. */
export type Outcome =
  | {
      readonly state: 'done'
      /** Bytes that became free, or will when the trash is emptied. */
      readonly bytes: number
      /** Nothing was left to do: another run, or the agent itself, was faster (R105). */
      readonly already: boolean
      /** What went wrong without harm to the session, for instance a receipt for which there was no room. */
      readonly notes: readonly string[]
    }
  | { readonly state: 'kept'; readonly reason: string }
  | { readonly state: 'failed'; readonly errors: readonly ErrorItem[] }

/** An error as reports have it. Nothing of a file's content is in it. */
export function errorItem(error: unknown, path?: string): ErrorItem {
  const at = path === undefined ? {} : { path }
  if (error instanceof RewindAdminError) {
    return { code: error.code, ...at, message: error.hint === undefined ? error.message : `${error.message}; ${error.hint}` }
  }
  if (isNoSpace(error)) return { code: 'NO_SPACE', ...at, message: 'no space left for the folder in the trash; it was left in place' }
  const code = systemErrorCode(error)
  return { code: code ?? 'INTERNAL', ...at, message: `${error instanceof Error ? error.message : String(error)}; it was left in place` }
}

/** Something new stands where something from the trash belongs. */
export function occupied(path: string): ErrorItem {
  const message = `something stands at ${path} now and was not overwritten; what was there before stays in the trash`
  return { code: 'OCCUPIED', path, message }
}

/** What a run ends with: signals before space before single failures. */
export function exitCodeFor(errors: readonly ErrorItem[], signal: AbortSignal | undefined, interrupted: boolean): ExitCode {
  if (interrupted) return stoppedBy(signal)
  if (errors.some((error) => error.code === 'NO_SPACE')) return ExitCode.noSpace
  return errors.length > 0 ? ExitCode.partial : ExitCode.done
}

/** The exit code for a run that a signal ended: what the reason of the signal says, `SIGINT` or an error with a code. */
export function stoppedBy(signal: AbortSignal | undefined): ExitCode {
  const reason: unknown = signal?.reason
  if (reason instanceof RewindAdminError) return reason.exitCode
  return reason === 'SIGINT' ? ExitCode.interrupted : ExitCode.terminated
}
