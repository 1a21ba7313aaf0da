import { envelopeOf } from '../envelope.js'
import { safeJson } from './json.js'
import type { Reporter } from './reporter.js'

/** A JSON object per line with its `type`: `finding`, `plan`, `kept`, `error`; the last line is the `summary` of the run. */
export const ndjson: Reporter = {
  write(report, meta) {
    const { findings, plan, kept, errors, ...rest } = envelopeOf(report, meta)
    const line = (type: string, item: object): string => `${safeJson({ type, ...item })}\n`
    return [
      ...findings.map((item) => line('finding', item)),
      ...plan.map((item) => line('plan', item)),
      ...kept.map((item) => line('kept', item)),
      ...errors.map((item) => line('error', item)),
      line('summary', rest),
    ].join('')
  },
}
