import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { editDistance, nearestName } from '../../src/settings/nearest.js'

describe('editDistance', () => {
  it.each([
    ['', '', 0],
    ['', 'abc', 3],
    ['kitten', 'sitting', 3],
    ['grace', 'graces', 1],
    ['floor', 'flor', 1],
    ['ab', 'ba', 2],
  ])('of %j and %j is %d', (a, b, distance) => {
    expect(editDistance(a, b)).toBe(distance)
  })

  it('is symmetric, zero for equals only, and at most the longer length', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 8 }), fc.string({ maxLength: 8 }), (a, b) => {
        const distance = editDistance(a, b)
        expect(editDistance(b, a)).toBe(distance)
        expect(distance === 0).toBe(a === b)
        expect(distance).toBeLessThanOrEqual(Math.max(a.length, b.length))
      }),
    )
  })
})

describe('nearestName', () => {
  const names = ['roots', 'pins', 'periods', 'cap', 'grace', 'quietPeriod']

  it.each([
    ['root', 'roots'],
    ['quiet_period', 'quietPeriod'],
    ['QUIETPERIOD', 'quietPeriod'],
    ['grcae', 'grace'],
  ])('takes %s for %s', (word, name) => {
    expect(nearestName(word, names)).toBe(name)
  })

  it.each(['retention', 'x', 'somethingElse'])('has no guess for %s', (word) => {
    expect(nearestName(word, ['quietPeriod', 'brake', 'grace'])).toBeUndefined()
  })
})
