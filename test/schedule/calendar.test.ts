import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isEitherDay, minuteOf, nextTime, parseCalendar, parseSystemCalendar } from '../../src/schedule/calendar.js'

const at = (text: string): number => Date.parse(text)

describe('a time to run at', () => {
  it.each([
    ['03:05', '5 3 * * *'],
    ['3:05', '5 3 * * *'],
    ['23:59', '59 23 * * *'],
    ['@daily', '0 0 * * *'],
    ['@WEEKLY', '0 0 * * 0'],
    ['*/20 1-3 * * *', '0,20,40 1,2,3 * * *'],
    ['10/25 4 * * *', '10,35 4 * * *'],
    ['0 3 * jan,dec mon-fri', '0 3 * 1,12 1,2,3,4,5'],
    ['0 3 * * 7', '0 3 * * 0'],
    ['0 3 * * 5-7', '0 3 * * 0,5,6'],
    ['0-59 * 1-31 1-12 0-7', '* * * * *'],
    ['30 0 3 * * *', '30 0 3 * * *'],
    ['0 0 3 * * *', '0 3 * * *'],
    ['* * * * * *', '* * * * * *'],
    // Not every minute: 59 is missing.
    ['0-58 3 * * *', `${Array.from({ length: 59 }, (_, index) => String(index)).join(',')} 3 * * *`],
  ])('%s is %s in plain numbers', (text, expression) => {
    expect(parseCalendar(text).expression).toBe(expression)
  })

  it.each([['24:00'], ['3:5'], [''], ['nightly'], ['* * * *'], ['60 3 * * *'], ['0 3 0 * *'], ['0 3 * 13 *'], ['0 3 * * 8'], ['*/0 * * * *'], ['5-3 * * * *'], ['@reboot'], ['0 3 * * * * *'], ['0 3 L * *'], ['0 3 ? * *']])(
    'refuses %j and says what it takes',
    (text) => {
      expect(() => parseCalendar(text)).toThrow(/this is no time to run at/)
    },
  )

  it.each([['0 3 30 2 *'], ['0 3 31 4,6,9,11 *']])('refuses %s, a day that never comes', (text) => {
    expect(() => parseCalendar(text)).toThrow('this day never comes')
    // With a day of the week it comes all the same.
    expect(isEitherDay(parseCalendar(text.replace(/\*$/, '1')))).toBe(true)
  })

  it('with seconds is for the daemon only', () => {
    expect(() => parseSystemCalendar('* * * * * *')).toThrow(/counts in minutes/)
    expect(parseSystemCalendar('0 15 3 * * *').expression).toBe('15 3 * * *')
  })
})

describe('the next time', () => {
  it.each([
    ['17 3 * * *', '2026-11-30T03:17:00Z', '2026-12-01T03:17:00Z'],
    ['17 3 * * *', '2026-11-30T03:16:59.999Z', '2026-11-30T03:17:00Z'],
    ['0 0 29 2 *', '2026-11-30T00:00:00Z', '2028-02-29T00:00:00Z'],
    // The 13th, or any Friday: 2026-12-04 is a Friday.
    ['0 0 13 * 5', '2026-11-30T00:00:00Z', '2026-12-04T00:00:00Z'],
    ['0 0 13 * 5', '2026-12-11T00:00:00Z', '2026-12-13T00:00:00Z'],
    ['*/2 * * * * *', '2026-11-30T23:59:58Z', '2026-12-01T00:00:00Z'],
  ])('of %s after %s is %s', (text, after, expected) => {
    expect(nextTime(parseCalendar(text), at(after), 'UTC')).toBe(at(expected))
  })

  it.each([
    // The clocks go forward from 2 to 3 on 2027-03-28 in Berlin, and back from 3 to 2 on 2026-10-25.
    ['30 2 * * *', '2027-03-27T12:00:00Z', '2027-03-29T12:00:00Z', 1],
    ['30 3 * * *', '2027-03-27T12:00:00Z', '2027-03-29T12:00:00Z', 2],
    ['30 3 * * *', '2026-10-24T12:00:00Z', '2026-10-26T12:00:00Z', 2],
  ])('%s in Berlin always comes, and goes forward, from %s to %s', (text, from, to, least) => {
    const calendar = parseCalendar(text)
    const times: number[] = []
    for (let time = at(from); time < at(to); time = nextTime(calendar, time, 'Europe/Berlin')) times.push(time)
    expect(times.every((time, index) => index === 0 || time > (times[index - 1] ?? 0))).toBe(true)
    expect(times.length - 1).toBeGreaterThanOrEqual(least)
  })

  it('is the first minute in which every part fits, as a walk through the minutes finds it', () => {
    const list = (low: number, high: number): fc.Arbitrary<string> => fc.oneof(fc.constant('*'), fc.uniqueArray(fc.integer({ min: low, max: high }), { minLength: 1, maxLength: 4 }).map(String))
    const expression = fc.tuple(list(0, 59), list(0, 23), list(1, 28), fc.constant('*'), list(0, 6)).map((parts) => parts.join(' '))
    fc.assert(
      fc.property(expression, fc.integer({ min: at('2026-01-01T00:00:00Z'), max: at('2027-12-01T00:00:00Z') }), (text, after) => {
        const [minutes, hours, days, , weekdays] = text.split(' ').map((part) => (part === '*' ? undefined : part.split(',').map(Number)))
        const fits = (date: Date): boolean => {
          const day = days?.includes(date.getUTCDate())
          const weekday = weekdays?.includes(date.getUTCDay())
          const right = day === undefined ? weekday !== false : weekday === undefined ? day : day || weekday
          return right && hours?.includes(date.getUTCHours()) !== false && minutes?.includes(date.getUTCMinutes()) !== false
        }
        let walk = Math.floor(after / 60_000) * 60_000 + 60_000
        while (!fits(new Date(walk))) walk += 60_000
        expect(nextTime(parseCalendar(text), after, 'UTC')).toBe(walk)
      }),
      { numRuns: 60 },
    )
  })
})

it('the minute of a machine is one of the hour, and every minute is somebody’s', () => {
  const minutes = new Set(Array.from({ length: 600 }, (_, index) => minuteOf(Uint8Array.of(index >> 8, index & 255))))
  expect([...minutes].sort((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, index) => index))
})
