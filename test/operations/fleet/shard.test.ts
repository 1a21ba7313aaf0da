import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { UsageError } from '../../../src/model/errors.js'
import { isInShard, shardOf } from '../../../src/operations/fleet/shard.js'

describe('the part of a fleet that a run looks after', () => {
  it.each([
    ['2/4', {}, { number: 2, of: 4 }],
    ['2/4', { JOB_COMPLETION_INDEX: '0', JOB_COMPLETION_COUNT: '9' }, { number: 2, of: 4 }],
    ['4', { JOB_COMPLETION_INDEX: '0' }, { number: 1, of: 4 }],
    ['4', { JOB_COMPLETION_INDEX: '3', JOB_COMPLETION_COUNT: '9' }, { number: 4, of: 4 }],
    [undefined, { JOB_COMPLETION_INDEX: '3', JOB_COMPLETION_COUNT: '4' }, { number: 4, of: 4 }],
    [undefined, {}, undefined],
    [undefined, { JOB_COMPLETION_INDEX: '', JOB_COMPLETION_COUNT: '4' }, undefined],
  ] as const)('--shard %s with %j is %j', (given, env, shard) => {
    expect(shardOf(given, env)).toEqual(shard)
  })

  it.each([
    ['0/4', {}],
    ['5/4', {}],
    ['1/0', {}],
    ['a', {}],
    ['-1/4', {}],
    ['4', {}],
    ['4', { JOB_COMPLETION_INDEX: '4' }],
    ['4', { JOB_COMPLETION_INDEX: 'x' }],
    [undefined, { JOB_COMPLETION_INDEX: '1' }],
    [undefined, { JOB_COMPLETION_INDEX: '1', JOB_COMPLETION_COUNT: 'many' }],
    [undefined, { JOB_COMPLETION_INDEX: '4', JOB_COMPLETION_COUNT: '4' }],
  ])('--shard %s with %j is refused, so that no home is looked after twice or never', (given, env) => {
    expect(() => shardOf(given, env)).toThrow(UsageError)
  })
})

describe('which roots are in a part', () => {
  it('every root is in exactly one, however many parts there are', () => {
    fc.assert(fc.property(fc.string({ minLength: 1 }), fc.integer({ min: 1, max: 300 }), (path, of) => {
      const parts = Array.from({ length: of }, (_, index) => ({ number: index + 1, of }))
      expect(parts.filter((shard) => isInShard(`/${path}`, shard))).toHaveLength(1)
    }))
  })

  it('is known by the path alone, and never changes between versions', () => {
    // sha256, its first 12 digits, mod 4: worked out with sha256sum.
    const homes = ['/home/ada/.claude', '/home/ben/.claude', '/home/cem/.claude', '/home/dot/.claude']
    expect(homes.map((home) => [1, 2, 3, 4].find((number) => isInShard(home, { number, of: 4 })))).toEqual([4, 3, 1, 2])
  })

  it('are about as many in each part, and all of them without parts', () => {
    const homes = Array.from({ length: 1000 }, (_, index) => `/home/user-${String(index)}/.claude`)
    for (const number of [1, 2, 3, 4]) {
      const count = homes.filter((home) => isInShard(home, { number, of: 4 })).length
      expect([count > 180, count < 320]).toEqual([true, true])
    }
    expect(homes.every((home) => isInShard(home, undefined))).toBe(true)
  })
})
