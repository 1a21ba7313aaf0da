import { describe, expect, it } from 'vitest'
import { newestOnBranches, tipsOf, type CheckpointTree } from '../../src/model/branches.js'

/** a – b – c – d, and b – x – y. */
const forked: CheckpointTree = new Map([['a', undefined], ['b', 'a'], ['c', 'b'], ['d', 'c'], ['x', 'b'], ['y', 'x']])

describe('newestOnBranches', () => {
  it('finds the tips: checkpoints that no other one follows', () => {
    expect(tipsOf(forked)).toEqual(['d', 'y'])
    expect(tipsOf(new Map())).toEqual([])
  })

  it.each([
    [1, ['d', 'y']],
    [2, ['c', 'd', 'x', 'y']],
    [3, ['b', 'c', 'd', 'x', 'y']],
    [9, ['a', 'b', 'c', 'd', 'x', 'y']],
  ])('keeps the newest %i of each branch, what both share included', (count, kept) => {
    expect([...newestOnBranches(forked, count)].sort()).toEqual(kept)
  })

  it('keeps checkpoints whose parents go in a circle: no tip leads to them', () => {
    const circle: CheckpointTree = new Map([['p', 'q'], ['q', 'p'], ['a', undefined], ['b', 'a'], ['c', 'b']])
    expect([...newestOnBranches(circle, 1)].sort()).toEqual(['c', 'p', 'q'])
  })

  it('takes a parent that is no checkpoint of the tree for the end of the branch', () => {
    expect([...newestOnBranches(new Map([['b', 'gone'], ['c', 'b']]), 3)].sort()).toEqual(['b', 'c', 'gone'])
  })
})
