import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { UsageError } from '../../../src/model/errors.js'
import { makeSampler, parseSample } from '../../../src/operations/verify/sample.js'
import { H, H2, S1, S2 } from '../../helpers/store.js'

const backups = [S1, S2].flatMap((session) =>
  [H, H2].flatMap((hash) => Array.from({ length: 250 }, (_, index) => [session, `${hash}@v${String(index + 1)}`, 10] as const)),
)

describe('what --sample says', () => {
  const rows: readonly (readonly [string, unknown])[] = [
    ['1/7', { kind: 'bucket', number: 1, of: 7 }],
    ['7/7', { kind: 'bucket', number: 7, of: 7 }],
    ['256/256', { kind: 'bucket', number: 256, of: 256 }],
    ['5%', { kind: 'percent', percent: 5 }],
    ['2.5%', { kind: 'percent', percent: 2.5 }],
    ['100%', { kind: 'percent', percent: 100 }],
    ['500', { kind: 'bytes', bytes: 500 }],
    ['2K', { kind: 'bytes', bytes: 2048 }],
    ['500M', { kind: 'bytes', bytes: 500 * 1024 ** 2 }],
    ['1G', { kind: 'bytes', bytes: 1024 ** 3 }],
    ['1T', { kind: 'bytes', bytes: 1024 ** 4 }],
  ]
  test.each(rows)('%s', (text, sample) => {
    expect(parseSample(text)).toEqual(sample)
  })

  test.each(['', '0/7', '8/7', '1/257', '1/0', '-1/7', '1/7/7', '0%', '101%', '-5%', '%', '0', '0M', '1.5M', '5X', '5 M', 'all', '1e3', '½'])('%j is refused', (text) => {
    expect(() => parseSample(text)).toThrow(UsageError)
  })
})

describe('which backups a sample reads', () => {
  test('t buckets part all backups: each is in exactly one', () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 256 }), (of) => {
      const samplers = Array.from({ length: of }, (_, index) => makeSampler({ kind: 'bucket', number: index + 1, of }, () => 0))
      for (const backup of backups.slice(0, 100)) expect(samplers.filter((wanted) => wanted(...backup))).toHaveLength(1)
    }))
  })

  test('the same bucket always reads the same backups, and buckets are of about the same size', () => {
    const taken = (): string[] => backups.filter((backup) => makeSampler({ kind: 'bucket', number: 2, of: 5 }, Math.random)(...backup)).map(String)
    expect(taken()).toEqual(taken())
    expect(taken().length).toBeGreaterThan(140)
    expect(taken().length).toBeLessThan(260)
  })

  test('100% is all, x% about that share, from where the dice say', () => {
    const count = (percent: number, place: number): number => {
      const wanted = makeSampler({ kind: 'percent', percent }, () => place)
      return backups.filter((backup) => wanted(...backup)).length
    }
    for (const place of [0, 0.3, 0.999]) {
      expect(count(100, place)).toBe(1000)
      expect(count(10, place)).toBeGreaterThan(60)
      expect(count(10, place)).toBeLessThan(140)
    }
  })

  test('two shares from opposite places have nothing in common and together are all', () => {
    const [first, second] = [0, 0.5].map((place) => makeSampler({ kind: 'percent', percent: 50 }, () => place))
    for (const backup of backups) expect([first?.(...backup), second?.(...backup)].filter((wanted) => wanted === true)).toHaveLength(1)
  })

  test('a size reads until it is used up', () => {
    const wanted = makeSampler({ kind: 'bytes', bytes: 95 }, () => 0)
    expect(backups.filter((backup) => wanted(...backup))).toHaveLength(10)
  })

  test('all is all', () => {
    expect(backups.every((backup) => makeSampler({ kind: 'all' }, () => 0)(...backup))).toBe(true)
  })
})
