import { BrakeError, UsageError } from '../model/errors.js'

/** What `--max-delete` says: a count, or a share of the sessions of the store. */
export type BrakeLimit = { readonly count: number } | { readonly percent: number }

/** Sessions that a plan may remove whatever the size of the store (design section 3, promise 5). */
export const brakeCount = 50
/** Percent of a store that a plan may remove, when that is more. */
export const brakePercent = 20

/**
 * Reads a limit written as `n` or `n%`.
 * @throws UsageError for anything else
 */
export function parseBrakeLimit(text: string): BrakeLimit {
  const match = /^([0-9]{1,15})(%?)$/.exec(text.trim())
  const value = Number(match?.[1])
  if (match === null || (match[2] === '%' && value > 100)) {
    throw new UsageError(`"${text}" is not a limit: give a number of sessions (200) or a share of the store (40%)`)
  }
  return match[2] === '%' ? { percent: value } : { count: value }
}

/** Sessions that may go without a word: 50 or 20 % of the store, whichever is larger, or what the limit names. */
export function allowedRemovals(total: number, limit?: BrakeLimit): number {
  if (limit === undefined) return Math.max(brakeCount, Math.floor((total * brakePercent) / 100))
  return 'count' in limit ? limit.count : Math.floor((total * limit.percent) / 100)
}

/**
 * Stops a plan that would remove more than is allowed (R07).
 * @throws BrakeError with both counts and the flag that lets it run
 */
export function checkBrake(removed: number, total: number, limit?: BrakeLimit): void {
  const allowed = allowedRemovals(total, limit)
  if (removed <= allowed) return
  throw new BrakeError(
    `the plan removes ${String(removed)} of ${String(total)} sessions; at most ${String(allowed)} may go at once; nothing was removed`,
    { hint: `look at the plan; if it is right, run again with --max-delete ${String(removed)}` },
  )
}
