import { ExitCode } from '../model/exit-code.js'
import { RewindAdminError, systemErrorCode } from '../model/errors.js'
import type { ErrorItem } from '../model/report.js'
import { printable } from './text/printable.js'

/** The run was stopped by a signal; the reason of the signal that commands get. */
export class StoppedError extends RewindAdminError {
  readonly code: string
  readonly exitCode: ExitCode

  constructor(readonly signalName: 'SIGINT' | 'SIGTERM') {
    super(`stopped by ${signalName}`, { hint: 'run the same command again; what was finished stays finished' })
    this.code = signalName
    this.exitCode = signalName === 'SIGINT' ? ExitCode.interrupted : ExitCode.terminated
  }
}

/** What the command line says and ends with when a command throws. */
export interface Failure {
  readonly exitCode: ExitCode
  readonly item: ErrorItem
  /** Lines for stderr, without line ends. */
  readonly lines: readonly string[]
}

/**
 * The one map from errors to exit code and words. Errors thrown on purpose carry both; a full disk has its own code
 * (R106, R123); anything else is an internal error, with its stack only when `verbose`.
 */
export function failureOf(error: unknown, options: { verbose: boolean }): Failure {
  const message = error instanceof Error ? error.message : String(error)
  const lines = [`rewind-admin: ${printable(message)}`]
  if (error instanceof RewindAdminError) {
    if (error.hint !== undefined) lines.push(`  ${printable(error.hint)}`)
    if (options.verbose && error.cause !== undefined) lines.push(...stackLines(error.cause))
    return { exitCode: error.exitCode, item: { code: error.code, ...pathOf(error.cause), message }, lines }
  }
  const systemCode = systemErrorCode(error)
  const full = systemCode === 'ENOSPC' || systemCode === 'EDQUOT'
  if (full) lines.push('  free some space and run the same command again')
  else if (!options.verbose) lines.push('  this was not expected; --verbose shows where it happened')
  if (options.verbose) lines.push(...stackLines(error))
  return {
    exitCode: full ? ExitCode.noSpace : ExitCode.usage,
    item: { code: full ? 'NO_SPACE' : (systemCode ?? 'INTERNAL'), ...pathOf(error), message },
    lines,
  }
}

function pathOf(error: unknown): { path?: string } {
  if (typeof error !== 'object' || error === null || !('path' in error)) return {}
  return typeof error.path === 'string' ? { path: error.path } : {}
}

function stackLines(error: unknown): string[] {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return stack.split('\n').map((line) => `  ${printable(line)}`)
}
