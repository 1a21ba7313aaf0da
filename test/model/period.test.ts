import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dayMs, parseDuration } from '../../src/model/period.js'

describe('parseDuration', () => {
  it.each([
    ['7d', 604_800_000],
    ['60m', 3_600_000],
    ['24h', 86_400_000],
    ['1d12h', 129_600_000],
    ['2w', 1_209_600_000],
    ['1w1d1h1m1s', 694_861_000],
    ['0s', 0],
    ['0d', 0],
    ['036h', 129_600_000],
  ])('reads %s as milliseconds', (text, ms) => {
    expect(parseDuration(text)).toBe(ms)
  })

  it.each(['', '7', '0', '-7d', '1.5d', '7 d', ' 7d', '7d ', '7D', '7days', '12h1d', '1d1d', 'd', '1e3s', '9999999999999999w', '7d\n', '٧d', 'ms', '5ms'])(
    'refuses %j, which could mean something else',
    (text) => {
      expect(parseDuration(text)).toBeUndefined()
    },
  )

  it('adds up units for any amounts', () => {
    fc.assert(
      fc.property(fc.nat(400), fc.nat(200), fc.nat(200), fc.nat(200), (days, hours, minutes, seconds) => {
        const text = `${String(days)}d${String(hours)}h${String(minutes)}m${String(seconds)}s`
        expect(parseDuration(text)).toBe((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
      }),
    )
  })

  it('knows a day as 24 hours', () => {
    expect(dayMs).toBe(24 * 60 * 60 * 1000)
  })
})
