import type { Store } from '../../formats/format.js'
import { systemErrorCode } from '../../model/errors.js'
import { ExitCode, worstExit } from '../../model/exit-code.js'
import type { ErrorItem, Report } from '../../model/report.js'
import { forgetFailure } from '../run/hold.js'

/**
 * Says in the report of `doctor` that somebody has looked at the failures: jobs remove again from the next run on. The only thing
 * that `doctor` ever writes, and it is in our own folder. Call it before the look, so that the report shows what is left.
 */
export function acknowledge(stores: readonly Pick<Store, 'root' | 'sidecar'>[]): (report: Report) => Report {
  const acknowledged: string[] = []
  const errors: ErrorItem[] = []
  for (const store of stores) {
    try {
      if (forgetFailure(store)) acknowledged.push(store.root)
    } catch (error) {
      const code = systemErrorCode(error)
      if (code === undefined) throw error
      errors.push({ code, path: store.sidecar, message: `the failure noted in ${store.sidecar} could not be removed (${code}); jobs still remove nothing` })
    }
  }
  return (report) => ({
    ...report,
    applied: acknowledged.length > 0,
    summary: { ...report.summary, acknowledged: acknowledged.length },
    errors: [...report.errors, ...errors],
    exitCode: worstExit([report.exitCode, ...(errors.length > 0 ? [ExitCode.partial] : [])]),
    extra: { ...report.extra, acknowledged },
  })
}
