import { dayMs } from './period.js'
import { isExpired, type Activity, type RetentionLayer } from './retention.js'

/** What decides about the age of a session, beside the session. All in milliseconds. */
export interface AgeRules {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly floorMs: number
  readonly quietPeriodMs: number
}

/** The period that counts for a session, and who says so. */
export interface EffectivePeriod {
  readonly ms: number
  /** A layer, `default`, `--older-than`, or the floor of a budget. */
  readonly source: RetentionLayer | 'default' | 'flag' | 'budget'
  /** Layers that say another period. */
  readonly differing: readonly RetentionLayer[]
}

export interface Verdict {
  readonly expired: boolean
  readonly reason: string
}

/**
 * Judges a session by its age alone (design section 7): strictly older than the period, the floor and the quiet period, and
 * in the ledger for a full period when it appeared with old dates (R04).
 * @param firstSeen milliseconds since 1970, `undefined` when it was there from the beginning
 */
export function judgeAge(activity: Activity | undefined, firstSeen: number | undefined, period: EffectivePeriod, rules: AgeRules): Verdict {
  const { now, floorMs, quietPeriodMs } = rules
  if (activity === undefined) return kept('nothing says when it was last active')
  const when = `last active ${timeText(activity.at)} (${activityWords[activity.by]})`
  const limit = `${durationText(period.ms)} (${sourceText(period.source)})`
  if (period.ms === Number.POSITIVE_INFINITY) return kept(`${when}: kept for ever (${sourceText(period.source)})`)
  if (now - activity.at <= quietPeriodMs) return kept(`${when}: within the quiet period of ${durationText(quietPeriodMs)}`)
  if (!isExpired(activity.at, now, period.ms / dayMs, 0)) return kept(`${when}: within the period of ${limit}`)
  if (!isExpired(activity.at, now, 0, floorMs)) return kept(`${when}: younger than the floor of ${durationText(floorMs)}`)
  if (firstSeen !== undefined && now - firstSeen <= period.ms) {
    return kept(`grace: first seen ${timeText(firstSeen)} with old dates, so it is kept for a full period of ${limit} from then; ${when}`)
  }
  return { expired: true, reason: `${when}: older than ${limit}` }
}

/** Why something that changed at `newest` is left alone for now; `undefined` when it is quiet long enough. Milliseconds. */
export function quietReason(newest: number, now: number, quietPeriodMs: number): string | undefined {
  return now - newest <= quietPeriodMs ? `it changed within the quiet period of ${durationText(quietPeriodMs)}` : undefined
}

/** What says when a session was last active, in words. */
const activityWords: Readonly<Record<Activity['by'], string>> = {
  recorded: 'newest entry of the transcript',
  transcript: 'mtime of the transcript',
  companion: 'mtime of a companion file',
  backup: 'mtime of a backup',
}

/** Who sets a period, with the file. */
export function sourceText(source: EffectivePeriod['source']): string {
  if (source === 'default') return "the agent's default"
  if (source === 'budget') return 'the floor of --max-bytes'
  return source === 'flag' ? '--older-than' : `${source.layer} settings, ${source.file}`
}

/** `30 days`, `36 h`, `90 s`: the largest unit that is whole; `for ever` for a period that never ends. */
export function durationText(ms: number): string {
  if (!Number.isFinite(ms)) return 'for ever'
  if (ms % dayMs === 0 && ms > 0) return ms === dayMs ? '1 day' : `${String(ms / dayMs)} days`
  if (ms % 3_600_000 === 0 && ms > 0) return `${String(ms / 3_600_000)} h`
  return ms % 60_000 === 0 ? `${String(ms / 60_000)} min` : `${String(Math.round(ms / 1000))} s`
}

function timeText(ms: number): string {
  const time = new Date(ms)
  return Number.isNaN(time.getTime()) ? `${String(ms)} ms` : time.toISOString()
}

function kept(reason: string): Verdict {
  return { expired: false, reason }
}
