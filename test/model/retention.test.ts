import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { clockLooksWrong, effectiveRetention, isExpired, lastActivity, parsePeriod, type RetentionLayer } from '../../src/model/retention.js'

const day = 24 * 60 * 60 * 1000
const now = Date.parse('2026-11-30T12:00:00Z')

const layer = (name: string, state: RetentionLayer['state']): RetentionLayer => ({ layer: name, file: `/${name}.json`, state })
const days = (name: string, count: number): RetentionLayer => layer(name, { kind: 'days', days: count })
const bad = (name: string): RetentionLayer => layer(name, { kind: 'unusable', reason: 'bad' })

describe('parsePeriod', () => {
  it.each([1, 30, 365, 99_999, 999_999])('accepts %d whole days', (value) => {
    expect(parsePeriod(value)).toEqual({ kind: 'days', days: value })
  })

  it.each([
    ['365', 'the text "365" is not a number of days'],
    [-1, '-1 is negative'],
    [1.5, '1.5 is not a whole number of days'],
    [null, 'null is not a number of days'],
    [undefined, 'no value is not a number of days'],
    [[30], 'a list is not a number of days'],
    [{ days: 30 }, 'an object is not a number of days'],
    [true, 'true is not a number of days'],
    [Number.POSITIVE_INFINITY, 'Infinity is not a whole number of days'],
    [Number.NaN, 'NaN is not a whole number of days'],
    [1e300, '1e+300 is too large to be exact'],
  ])('R05: %j is unusable and says why', (value, reason) => {
    expect(parsePeriod(value)).toEqual({ kind: 'unusable', reason })
  })

  it.each([0, -0])('R06: %d is unusable and the reason tells what it has meant', (value) => {
    const period = parsePeriod(value)
    expect(period).toMatchObject({ kind: 'unusable' })
    expect(period.kind === 'unusable' && period.reason).toMatch(/remove everything.*write no transcripts.*error/)
  })
})

describe('effectiveRetention', () => {
  it('is the default of 30 days when no layer says anything', () => {
    const layers = [layer('managed', { kind: 'missing' }), layer('user', { kind: 'silent' })]
    expect(effectiveRetention(layers)).toEqual({ kind: 'known', days: 30, source: 'default', differing: [] })
    expect(effectiveRetention([], 90)).toEqual({ kind: 'known', days: 90, source: 'default', differing: [] })
  })

  it('R01: a silent local layer does not hide the 1200 days of the user layer', () => {
    const user = days('user', 1200)
    const layers = [layer('managed', { kind: 'missing' }), layer('local', { kind: 'silent' }), user]
    expect(effectiveRetention(layers)).toEqual({ kind: 'known', days: 1200, source: user, differing: [] })
  })

  it('R01: layers that differ: the longest wins wherever it stands, and the others are named', () => {
    const [managed, local, user] = [days('managed', 10), days('local', 400), days('user', 30)]
    expect(effectiveRetention([managed, local, user])).toEqual({ kind: 'known', days: 400, source: local, differing: [managed, user] })
  })

  it('a single layer below the default counts as it stands', () => {
    const user = days('user', 7)
    expect(effectiveRetention([user])).toEqual({ kind: 'known', days: 7, source: user, differing: [] })
  })

  it('of equal layers the first is named and none differs', () => {
    const [managed, user] = [days('managed', 60), days('user', 60)]
    expect(effectiveRetention([managed, user])).toEqual({ kind: 'known', days: 60, source: managed, differing: [] })
  })

  it('R05: one unusable layer makes the period unknowable, whatever the others say', () => {
    const [managed, user] = [days('managed', 3650), bad('user')]
    expect(effectiveRetention([managed, user])).toEqual({ kind: 'unknowable', unusable: [user] })
  })

  it('for any layers: unusable in, unknowable out; else no layer states more than the period', () => {
    const states = fc.oneof(
      fc.constant<RetentionLayer['state']>({ kind: 'missing' }),
      fc.constant<RetentionLayer['state']>({ kind: 'silent' }),
      fc.integer({ min: 1, max: 5000 }).map((count): RetentionLayer['state'] => ({ kind: 'days', days: count })),
      fc.constant<RetentionLayer['state']>({ kind: 'unusable', reason: 'x' }),
    )
    fc.assert(
      fc.property(fc.array(states, { maxLength: 6 }), (list) => {
        const layers = list.map((state, index) => layer(String(index), state))
        const retention = effectiveRetention(layers)
        const stated = list.flatMap((state) => (state.kind === 'days' ? [state.days] : []))
        if (list.some((state) => state.kind === 'unusable')) expect(retention.kind).toBe('unknowable')
        else expect(retention).toMatchObject({ kind: 'known', days: stated.length === 0 ? 30 : Math.max(...stated) })
      }),
    )
  })
})

describe('lastActivity', () => {
  it('R03: a fresh entry keeps a session whose file was given an old time', () => {
    expect(lastActivity({ recorded: now - 2 * day, transcript: now - 400 * day })).toEqual({ at: now - 2 * day, by: 'recorded' })
  })

  it('R03: a fresh file keeps a session whose entries are old, and the file is named as the reason', () => {
    expect(lastActivity({ recorded: now - 400 * day, transcript: now - 2 * day })).toEqual({ at: now - 2 * day, by: 'transcript' })
  })

  it.each(['companion', 'backup'] as const)('R03: a fresh %s counts', (by) => {
    expect(lastActivity({ recorded: 1, transcript: 2, companion: 3, backup: 3, [by]: 4 })).toEqual({ at: 4, by })
  })

  it('is unknown when nothing says when', () => {
    expect(lastActivity({ recorded: undefined, transcript: Number.NaN })).toBeUndefined()
  })
})

describe('isExpired', () => {
  it('is strictly older than the period: the exact threshold stays', () => {
    expect(isExpired(now - 30 * day, now, 30)).toBe(false)
    expect(isExpired(now - 30 * day - 1, now, 30)).toBe(true)
    expect(isExpired(now - 30 * day + 1, now, 30)).toBe(false)
  })

  it('R08: never below the floor of 24 hours, whatever the period', () => {
    expect(isExpired(now - day, now, 0.25)).toBe(false)
    expect(isExpired(now - day - 1, now, 0.25)).toBe(true)
  })

  it('R08: a floor of 7 days keeps what is 3 days old under a period of 1 day', () => {
    expect(isExpired(now - 3 * day, now, 1, 7 * day)).toBe(false)
    expect(isExpired(now - 7 * day - 1, now, 1, 7 * day)).toBe(true)
  })

  it('takes fractions of days exactly', () => {
    const hours36 = 36 * 60 * 60 * 1000
    expect(isExpired(now - hours36, now, hours36 / day, 0)).toBe(false)
    expect(isExpired(now - hours36 - 1, now, hours36 / day, 0)).toBe(true)
  })

  it('never takes what is unknown, in the future, or measured by a number that is not one', () => {
    expect(isExpired(undefined, now, 1)).toBe(false)
    expect(isExpired(now + 400 * day, now, 1)).toBe(false)
    expect(isExpired(Number.NaN, now, 1)).toBe(false)
    expect(isExpired(0, now, Number.NaN)).toBe(false)
  })
})

describe('clockLooksWrong', () => {
  it('R08: the newest activity in the future stops', () => {
    expect(clockLooksWrong(now + 60 * 60 * 1000, now)).toMatch(/2026-11-30T13:00:00\.000Z.*future.*2026-11-30T12:00:00\.000Z/)
  })

  it('R08: a clock 400 days ahead of everything stops', () => {
    expect(clockLooksWrong(now - 400 * day, now)).toMatch(/more than a year old/)
  })

  it('lets pass exactly a year, and files written while the run goes on', () => {
    expect(clockLooksWrong(now - 365 * day, now)).toBeUndefined()
    expect(clockLooksWrong(now - 365 * day - 1, now)).toMatch(/more than a year old/)
    expect(clockLooksWrong(now + 5 * 60 * 1000, now)).toBeUndefined()
    expect(clockLooksWrong(now + 5 * 60 * 1000 + 1, now)).toMatch(/future/)
  })

  it('an empty store says nothing about the clock', () => {
    expect(clockLooksWrong(undefined, now)).toBeUndefined()
  })

  it('words a time that no calendar has', () => {
    expect(clockLooksWrong(1e17, now)).toMatch(/100000000000000000 ms/)
  })
})
