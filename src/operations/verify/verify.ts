import type { Machine, Store } from '../../formats/format.js'
import { ExitCode, worstExit } from '../../model/exit-code.js'
import { NoMatchError, RewindAdminError } from '../../model/errors.js'
import { isAtLeast, type Finding } from '../../model/finding.js'
import type { ErrorItem, Report } from '../../model/report.js'
import type { VerifyOptions } from './options.js'
import { StoreRun } from './store-run.js'
import { VerifyTotals } from './totals.js'

/** What verify needs of the machine; everything is passed in. */
export interface VerifyContext {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly machine: Machine
  /** A number from 0 to 1, for samples. */
  random(): number
  /** Threads that work, the calling one included; with 0 everything, large files too, is done in place. */
  readonly threads: number
  readonly signal?: AbortSignal
  progress?(done: number, total: number): void
}

/**
 * Verifies stores: names and types, transcripts, references, caps and ages, seals, proof (design section 6). Never
 * writes into a store; the sidecar is written only with `seal`. Throws `NoStoreError` when nothing in a store that is
 * not empty is recognised (R18), `NoMatchError` when no session is of the project that was named. Of several stores, one that
 * cannot be verified is an error in the report, and the others are verified (promise 9).
 */
export async function verify(stores: readonly Store[], options: VerifyOptions, context: VerifyContext): Promise<Report> {
  const totals = new VerifyTotals()
  const findings: Finding[] = []
  const errors: ErrorItem[] = []
  const codes: ExitCode[] = []
  for (const store of stores) {
    const run = new StoreRun(store, options, context, totals, findings)
    try {
      await run.run()
    } catch (error) {
      if (stores.length === 1 || !(error instanceof RewindAdminError)) throw error
      errors.push({ code: error.code, path: store.root, message: error.message })
      codes.push(error.exitCode)
    }
    if (run.stopped) break
  }
  if (options.project !== undefined && totals.sessions === 0 && !totals.stopped && errors.length === 0) {
    throw new NoMatchError(`no session was started in ${options.project}`, { hint: 'rewind-admin list' })
  }
  const worst = options.failOn ?? 'error'
  const failing = findings.filter(({ severity }) => isAtLeast(severity, worst))
  const newerOnly = failing.length > 0 && failing.every(({ id }) => id === 'newer-format')
  const mends = findings.some(({ severity, remedy }) => severity === 'error' && remedy === 'rewind-admin repair')
  return {
    command: 'verify',
    roots: stores.map((store) => store.root),
    applied: false,
    summary: totals.summary(findings),
    findings,
    plan: [],
    kept: [],
    errors,
    exitCode: worstExit([...codes, failing.length === 0 ? ExitCode.done : newerOnly ? ExitCode.newerFormat : ExitCode.findings]),
    ...(mends ? { next: 'rewind-admin repair' } : {}),
  }
}
