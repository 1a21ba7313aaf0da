import { dayMs } from './period.js'

/** One settings file that can set the retention period, and what it says. */
export interface RetentionLayer {
  /** `managed`, `user`, `project`, `local` or `config`. */
  readonly layer: string
  readonly file: string
  readonly state:
    | { readonly kind: 'missing' }
    | { readonly kind: 'silent' }
    /** Infinity where the agent's own word for it is "never". */
    | { readonly kind: 'days'; readonly days: number }
    | { readonly kind: 'unusable'; readonly reason: string }
}

/** Days as reports have them: JSON has no infinity. */
export function daysShown(days: number): number | 'never' {
  return Number.isFinite(days) ? days : 'never'
}

/** The retention period that counts, or why there is none. Days are whole days of 24 hours. */
export type Retention =
  | { readonly kind: 'known'; readonly days: number; readonly source: RetentionLayer | 'default'; readonly differing: readonly RetentionLayer[] }
  | { readonly kind: 'unknowable'; readonly unusable: readonly RetentionLayer[] }

/** Days that Claude Code keeps when no layer says anything (formats/claude-code section 7). */
export const defaultRetentionDays = 30

/** Below this age nothing expires, whatever the settings say (R08). */
const defaultFloorMs = dayMs

/** How far ahead of `now` an activity may lie before the clock counts as wrong: files are written while a run goes on. */
const clockToleranceMs = 300_000

const staleStoreMs = 365 * dayMs

/** A retention period as a settings file gives it: whole days, or why the value cannot be used. */
export type Period = { readonly kind: 'days'; readonly days: number } | { readonly kind: 'unusable'; readonly reason: string }

/**
 * Takes the value of a `cleanupPeriodDays`: a JSON number, whole, 1 or more (formats/claude-code section 7). Anything
 * else is unusable and never replaced by a default (R05); 0 is unusable too, because it meant opposite things (R06).
 */
export function parsePeriod(value: unknown): Period {
  if (typeof value !== 'number') return unusable(`${nameOf(value)} is not a number of days`)
  if (value === 0) {
    return unusable('0 has meant "remove everything", "write no transcripts" and an error, by version; it is not followed')
  }
  if (value < 0) return unusable(`${String(value)} is negative`)
  if (!Number.isInteger(value)) return unusable(`${String(value)} is not a whole number of days`)
  if (!Number.isSafeInteger(value)) return unusable(`${String(value)} is too large to be exact`)
  return { kind: 'days', days: value }
}

/**
 * The period that counts. Layers that differ: the longest wins, the first of equals is named, the others are
 * `differing` (R01, R02). One unusable layer makes the whole unknowable (R05, R06): it may have said "keep longer".
 */
export function effectiveRetention(layers: readonly RetentionLayer[], defaultDays: number = defaultRetentionDays): Retention {
  const unusable = layers.filter((layer) => layer.state.kind === 'unusable')
  if (unusable.length > 0) return { kind: 'unknowable', unusable }
  let source: RetentionLayer | 'default' = 'default'
  let days = 0
  for (const layer of layers) {
    if (layer.state.kind !== 'days' || layer.state.days <= days) continue
    source = layer
    days = layer.state.days
  }
  if (source === 'default') return { kind: 'known', days: defaultDays, source, differing: [] }
  const differing = layers.filter((layer) => layer.state.kind === 'days' && layer.state.days !== days)
  return { kind: 'known', days, source, differing }
}

/** Where times of a session come from. All are milliseconds since 1970; what is not known is left out. */
export interface ActivitySources {
  /** Largest timestamp in the transcript that is not in the future. */
  readonly recorded?: number | undefined
  /** Newest modification time of its transcripts. */
  readonly transcript?: number | undefined
  /** Newest modification time of its companion files and leftovers. */
  readonly companion?: number | undefined
  /** Newest modification time of its backups. */
  readonly backup?: number | undefined
}

/** When a session was last active, in milliseconds since 1970, and what says so. */
export interface Activity {
  readonly at: number
  readonly by: keyof ActivitySources
}

const sourceNames = ['recorded', 'transcript', 'companion', 'backup'] as const

/** The newest of all times of a session (R03); `undefined` when there is none, which never counts as old. */
export function lastActivity(sources: ActivitySources): Activity | undefined {
  let newest: Activity | undefined
  for (const by of sourceNames) {
    const at = sources[by]
    if (at === undefined || !Number.isFinite(at)) continue
    if (newest === undefined || at > newest.at) newest = { at, by }
  }
  return newest
}

/**
 * True when the last activity is strictly older than the period, and than the floor. Exactly at the threshold stays.
 * `lastActive` and `now` are milliseconds since 1970, `periodDays` days of 24 hours (fractions allowed), `floorMs`
 * milliseconds. An unknown activity or a number that is not one never expires anything.
 */
export function isExpired(
  lastActive: number | undefined,
  now: number,
  periodDays: number,
  floorMs: number = defaultFloorMs,
): boolean {
  if (lastActive === undefined) return false
  const threshold = Math.max(Math.round(periodDays * dayMs), floorMs)
  return now - lastActive > threshold
}

/**
 * Why the clock cannot be trusted for expiry, or `undefined`: the newest activity of the whole store lies in the
 * future (more than five minutes), or everything is more than 365 days old (R08). Times are milliseconds since 1970;
 * a store without any activity says nothing about the clock.
 */
export function clockLooksWrong(newestActivity: number | undefined, now: number): string | undefined {
  if (newestActivity === undefined) return undefined
  if (newestActivity - now > clockToleranceMs) {
    return `the newest activity of the store (${timeText(newestActivity)}) lies in the future of this clock (${timeText(now)})`
  }
  if (now - newestActivity > staleStoreMs) {
    return `everything in the store is more than a year old (newest activity ${timeText(newestActivity)}, this clock ${timeText(now)})`
  }
  return undefined
}

function timeText(ms: number): string {
  const time = new Date(ms)
  return Number.isNaN(time.getTime()) ? `${String(ms)} ms` : time.toISOString()
}

function unusable(reason: string): Period {
  return { kind: 'unusable', reason }
}

function nameOf(value: unknown): string {
  if (value === null) return 'null'
  if (value === undefined) return 'no value'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string') return `the text ${JSON.stringify(value.slice(0, 40))}`
  if (typeof value === 'boolean') return String(value)
  return 'an object'
}
