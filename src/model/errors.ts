import { ExitCode } from './exit-code.js'

/**
 * Base of every error that rewind-admin throws on purpose. `code` is stable and machine readable, `exitCode` is what
 * the command line ends with, `hint` says what to run or change next.
 */
export abstract class RewindAdminError extends Error {
  abstract readonly code: string
  abstract readonly exitCode: ExitCode
  readonly hint: string | undefined

  constructor(message: string, options: { hint?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    // What tells them apart is the code: names of classes do not outlive packing.
    this.name = 'RewindAdminError'
    this.hint = options.hint
  }
}

/** The command line cannot be understood, or names something that cannot be. */
export class UsageError extends RewindAdminError {
  readonly code = 'USAGE'
  readonly exitCode = ExitCode.usage
}

/** Our own configuration file is unreadable or invalid. */
export class ConfigError extends RewindAdminError {
  readonly code = 'CONFIG'
  readonly exitCode = ExitCode.usage
}

/** Nothing matched what was named: a session, a project, a run. */
export class NoMatchError extends RewindAdminError {
  readonly code = 'NO_MATCH'
  readonly exitCode = ExitCode.findings
}

/** There is no store at the place looked at, or nothing in it is recognised. */
export class NoStoreError extends RewindAdminError {
  readonly code = 'NO_STORE'
  readonly exitCode = ExitCode.noStore
}

/** Another run holds the lock, or the session is live. */
export class LockedError extends RewindAdminError {
  readonly code = 'LOCKED'
  readonly exitCode = ExitCode.locked
}

/** The bytes were written by a newer format or by a newer version of ours than this one knows. */
export class NewerFormatError extends RewindAdminError {
  readonly code = 'NEWER_FORMAT'
  readonly exitCode = ExitCode.newerFormat
}

/** The file system or the quota is full. */
export class NoSpaceError extends RewindAdminError {
  readonly code = 'NO_SPACE'
  readonly exitCode = ExitCode.noSpace
}

/** A retention layer exists that cannot be used, so nothing may expire. */
export class RetentionUnknowableError extends RewindAdminError {
  readonly code = 'RETENTION_UNKNOWABLE'
  readonly exitCode = ExitCode.retentionUnknowable
}

/** The plan is larger than the brake allows. */
export class BrakeError extends RewindAdminError {
  readonly code = 'BRAKE'
  readonly exitCode = ExitCode.brake
}

/** Something in the way of the act makes it unsafe: a path outside the fence, another device, a link. */
export class FenceError extends RewindAdminError {
  readonly code = 'FENCE'
  readonly exitCode = ExitCode.partial
}

/** The code of a system error (`ENOENT`, `EACCES`, …), or `undefined` for anything else. */
export function systemErrorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}
