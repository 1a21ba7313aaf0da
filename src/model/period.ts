const unitMs = { w: 604_800_000, d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 } as const

/** Milliseconds of a day of 24 hours: periods know no daylight saving. */
export const dayMs = unitMs.d

/** How a duration is written, for messages. */
export const durationShape = 'a duration like 7d, 24h, 60m or 1d12h'

const durationPattern = /^(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/

/**
 * Milliseconds of a duration: whole numbers with the units w, d, h, m, s, the larger unit first, each at most once
 * (`7d`, `60m`, `1d12h`, `0s`). `undefined` for anything else: a number without a unit could mean anything.
 */
export function parseDuration(text: string): number | undefined {
  const match = durationPattern.exec(text)
  if (match === null || text === '') return undefined
  const [, weeks, days, hours, minutes, seconds] = match
  const parts = [[weeks, unitMs.w], [days, unitMs.d], [hours, unitMs.h], [minutes, unitMs.m], [seconds, unitMs.s]] as const
  let total = 0
  for (const [digits, unit] of parts) total += Number(digits ?? 0) * unit
  return Number.isSafeInteger(total) ? total : undefined
}
