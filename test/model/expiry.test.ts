import { describe, expect, it } from 'vitest'
import { durationText, judgeAge, type AgeRules, type EffectivePeriod } from '../../src/model/expiry.js'

const day = 86_400_000
const now = Date.parse('2026-11-30T12:00:00.000Z')
const period: EffectivePeriod = { ms: 30 * day, source: 'default', differing: [] }
const rules: AgeRules = { now, floorMs: day, quietPeriodMs: 3_600_000 }

function at(ageMs: number): { at: number; by: 'recorded' } {
  return { at: now - ageMs, by: 'recorded' }
}

describe('judgeAge', () => {
  it.each([
    ['the exact period stays', 30 * day, period, rules, false],
    ['a millisecond more goes', 30 * day + 1, period, rules, true],
    ['the exact floor stays', day, { ...period, ms: 0 }, rules, false],
    ['a millisecond above the floor goes', day + 1, { ...period, ms: 0 }, rules, true],
    ['the exact quiet period stays', 3_600_000, { ...period, ms: 0 }, { ...rules, floorMs: 0 }, false],
    ['a millisecond beyond the quiet period goes', 3_600_001, { ...period, ms: 0 }, { ...rules, floorMs: 0 }, true],
    ['activity in the future stays', -5, { ...period, ms: 0 }, { ...rules, floorMs: 0, quietPeriodMs: 0 }, false],
  ])('%s', (_, age, one, two, expired) => {
    expect(judgeAge(at(age), undefined, one, two).expired).toBe(expired)
  })

  it('R04: what appeared with old dates stays for a full period from then', () => {
    expect(judgeAge(at(90 * day), now - 30 * day, period, rules).reason).toMatch(/^grace: first seen 2026-10-31/)
    expect(judgeAge(at(90 * day), now - 30 * day - 1, period, rules).expired).toBe(true)
  })

  it('a session without any time stays', () => {
    expect(judgeAge(undefined, undefined, period, rules)).toEqual({ expired: false, reason: 'nothing says when it was last active' })
  })

  it('the reason names time, source of the time, period and its source', () => {
    const source = { layer: 'user', file: '/c/settings.json', state: { kind: 'days', days: 30 } } as const
    const { reason } = judgeAge(at(31 * day), undefined, { ...period, source }, rules)
    expect(reason).toBe('last active 2026-10-30T12:00:00.000Z (newest entry of the transcript): older than 30 days (user settings, /c/settings.json)')
  })
})

describe('durationText', () => {
  it.each([[day, '1 day'], [30 * day, '30 days'], [36 * 3_600_000, '36 h'], [3_600_000, '1 h'], [90_000, '90 s'], [120_000, '2 min'], [0, '0 min']])('%i ms is %s', (ms, text) => {
    expect(durationText(ms)).toBe(text)
  })
})
