import { isNoSpace } from '../fs/atomic-write.js'
import { RewindAdminError, systemErrorCode } from '../model/errors.js'
import { ExitCode } from '../model/exit-code.js'

/** An error that ends a part of a run: its code, what the part ends with, and words without the hint. */
export interface ErrorWords {
  readonly code: string
  readonly exitCode: ExitCode
  readonly message: string
}

/** How a report puts whatever was thrown while the rest of a run goes on. */
export function errorWords(error: unknown): ErrorWords {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof RewindAdminError) return { code: error.code, exitCode: error.exitCode, message }
  if (isNoSpace(error)) return { code: 'NO_SPACE', exitCode: ExitCode.noSpace, message }
  const code = systemErrorCode(error)
  return { code: code ?? 'INTERNAL', exitCode: code === undefined ? ExitCode.usage : ExitCode.partial, message }
}
