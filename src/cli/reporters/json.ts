import { envelopeOf } from '../envelope.js'
import { escapeUnit } from '../text/printable.js'
import type { Reporter } from './reporter.js'

// JSON lets these stand raw inside strings; terminals obey the first group, and readers of lines split at the second (R80).
const raw = /[\u007f-\u009f\u2028\u2029]/g

/** `JSON.stringify` without raw control characters or line separators. */
export function safeJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replace(raw, escapeUnit)
}

/** One JSON object, the contract of design section 5. */
export const json: Reporter = {
  write: (report, meta) => `${safeJson(envelopeOf(report, meta), 2)}\n`,
}
