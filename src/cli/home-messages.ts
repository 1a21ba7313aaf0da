import type { ExitCode } from '../model/exit-code.js'
import type { Report } from '../model/report.js'

/** What the process of one home answers: the report, or why there is none. */
export type HomeAnswer =
  | { readonly kind: 'report'; readonly report: Report }
  | { readonly kind: 'error'; readonly code: string; readonly exitCode: ExitCode; readonly message: string }
