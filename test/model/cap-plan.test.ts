import { describe, expect, it } from 'vitest'
import { keptCheckpoints, removableBackups } from '../../src/model/cap-plan.js'
import { fold } from '../../src/model/fold.js'
import type { History, HistoryEvent } from '../../src/model/history.js'

const A = 'aaaaaaaaaaaaaaaa'
const B = 'bbbbbbbbbbbbbbbb'

function snapshot(checkpoint: string, files: Readonly<Record<string, string | null>>, version?: number): HistoryEvent {
  const records = Object.entries(files).map(([path, name]) => [path, { name, version: version ?? Number(name?.split('@v')[1] ?? 1) }] as const)
  return { kind: 'snapshot', checkpoint, update: false, files: new Map(records), source: 0, offset: 0 }
}

function names(history: History, kept: readonly boolean[]): string[] {
  return removableBackups(history, kept).map(({ name }) => name)
}

describe('keptCheckpoints', () => {
  const history = fold(['m1', 'm2', 'm3', 'm4'].map((id) => snapshot(id, {})))

  it('keeps the newest by order, and those of every branch', () => {
    expect(keptCheckpoints(history, new Map(), 2)).toEqual([false, false, true, true])
    expect(keptCheckpoints(history, new Map([['m1', undefined], ['m2', 'm1'], ['m3', 'm1'], ['m4', 'm3']]), 1)).toEqual([false, true, false, true])
    expect(keptCheckpoints(history, new Map(), 4)).toEqual([true, true, true, true])
  })
})

describe('removableBackups', () => {
  it('takes only what lies wholly among dropped checkpoints', () => {
    const history = fold([snapshot('m1', { a: `${A}@v2` }), snapshot('m2', { a: `${A}@v3` }), snapshot('m3', { a: `${A}@v3` }), snapshot('m4', { a: `${A}@v4` })])
    expect(names(history, [false, false, false, true])).toEqual([`${A}@v2`, `${A}@v3`])
    expect(names(history, [false, false, true, true])).toEqual([`${A}@v2`])
    expect(names(history, [true, false, false, true])).toEqual([`${A}@v3`])
    expect(names(history, [true, true, true, true])).toEqual([])
  })

  it('R36: never version 1, by its name or by its record, and never what a path falls back to', () => {
    const odd = fold([snapshot('m1', { a: `${A}@v1`, b: `${B}@v7` }, 1), snapshot('m2', {})])
    expect(names(odd, [false, true])).toEqual([])
  })

  it('R74: never what only a damaged line names', () => {
    const history = fold([snapshot('m1', { a: `${A}@v2` }), { kind: 'salvage', names: [`${A}@v2`, `${A}@v9`], source: 0, offset: 9 }, snapshot('m2', {})])
    expect(names(history, [false, true])).toEqual([])
  })

  it('R34: a record that says "did not exist" names nothing to remove', () => {
    expect(names(fold([snapshot('m1', { a: null }), snapshot('m2', {})]), [false, true])).toEqual([])
  })
})
