import { describe, expect, test } from 'vitest'
import { defaultCap, isWithinCap } from '../../src/model/cap.js'
import { fold } from '../../src/model/fold.js'
import type { HistoryEvent } from '../../src/model/history.js'
import { H, H2 } from '../helpers/store.js'
import { salvaged, snapshot } from './history-events.js'

/** Versions of `H` that something within the cap names. */
function within(events: readonly HistoryEvent[], cap: number): number[] {
  const history = fold(events)
  return [...history.references.values()].filter((reference) => isWithinCap(history, reference, cap)).map(({ version }) => version)
}

function edits(count: number): HistoryEvent[] {
  return Array.from({ length: count }, (_, index) => snapshot(`m${String(index + 1)}`, { a: `${H}@v${String(index + 1)}` }))
}

describe('the newest checkpoints', () => {
  test('R35: of 150 checkpoints that name a version each, the cap of 100 covers v51 to v150', () => {
    expect(defaultCap).toBe(100)
    expect(within(edits(150), defaultCap)).toEqual(Array.from({ length: 100 }, (_, index) => index + 51))
  })

  test('exactly 100 checkpoints are all within, the 101st drops the first', () => {
    expect(within(edits(100), 100)).toHaveLength(100)
    expect(within(edits(101), 100)).not.toContain(1)
    expect(within(edits(101), 100)).toContain(2)
  })

  test('R38: checkpoints are counted, not lines', () => {
    const updates = Array.from({ length: 300 }, () => snapshot('m2', { a: `${H}@v2` }, { update: true }))
    expect(within([snapshot('m1', { a: `${H}@v1` }), snapshot('m2', { a: `${H}@v2` }), ...updates], 2)).toEqual([1, 2])
  })

  test('a backup that an old and a new checkpoint name is within', () => {
    const events = [...edits(5), snapshot('m6', { b: { name: `${H}@v1`, version: 1 } })]
    expect(within(events, 1)).toEqual([1])
  })

  test('what only a damaged line names is always within: nobody knows whose it is', () => {
    expect(within([salvaged(`${H2}@v9`), ...edits(3)], 1)).toEqual([9, 3])
  })
})
