import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { BackupRecord } from '../../src/model/backup.js'
import { fold, HistoryFold } from '../../src/model/fold.js'
import type { History, HistoryEvent } from '../../src/model/history.js'
import { H, H2 } from '../helpers/store.js'
import { anyEvent, delta, record, salvaged, snapshot } from './history-events.js'

type Files = Readonly<Record<string, string | null>>

/** Checkpoint id to path to backup name, in order. */
function contents(history: History): (readonly [string, Files])[] {
  return history.checkpoints.map(({ id, files }) => [id, Object.fromEntries([...files].map(([path, { name }]) => [path, name]))])
}

function kinds(history: History): string[] {
  return history.anomalies.map(({ kind }) => kind)
}

describe('checkpoints', () => {
  test('R33: a delta is folded into the snapshot that it names', () => {
    const history = fold([snapshot('m1'), delta('m1', 'a.txt', `${H}@v1`), snapshot('m2', { 'a.txt': `${H}@v2` })])
    expect(contents(history)).toEqual([['m1', { 'a.txt': `${H}@v1` }], ['m2', { 'a.txt': `${H}@v2` }]])
    expect([...history.references.keys()]).toEqual([`${H}@v1`, `${H}@v2`])
    expect(history.anomalies).toEqual([])
  })

  test('R33: a delta never replaces a path that is there, but what it names counts as in use', () => {
    const history = fold([snapshot('m1', { 'a.txt': `${H}@v2` }), delta('m1', 'a.txt', `${H}@v3`)])
    expect(contents(history)).toEqual([['m1', { 'a.txt': `${H}@v2` }]])
    expect([...history.references.keys()]).toEqual([`${H}@v2`, `${H}@v3`])
  })

  test('a delta that stands before its snapshot is added when the snapshot comes, and then is as any other', () => {
    const history = fold([delta('m1', 'a.txt', `${H}@v2`), snapshot('m1', { b: `${H2}@v1` })])
    expect(contents(history)).toEqual([['m1', { b: `${H2}@v1`, 'a.txt': `${H}@v2` }]])
    expect(history.references.get(`${H}@v2`)).toMatchObject({ oldest: 0, newest: 0, pinned: false })
    expect(history.anomalies).toEqual([])
  })

  test('a delta of no snapshot at all is reported, and its backup is pinned', () => {
    const history = fold([snapshot('m1'), delta('m9', 'a.txt', `${H}@v2`)])
    expect(contents(history)).toEqual([['m1', {}]])
    expect(history.references.get(`${H}@v2`)).toMatchObject({ path: 'a.txt', pinned: true })
    expect(kinds(history)).toEqual(['odd-record'])
  })

  test('R38: the last snapshot of a checkpoint wins, all of them count as references, and it counts once', () => {
    const history = fold([
      snapshot('m1'),
      snapshot('m1', { a: `${H}@v1` }, { update: true }),
      snapshot('m1', { a: `${H}@v1`, b: `${H2}@v1` }, { update: true }),
    ])
    expect(contents(history)).toEqual([['m1', { a: `${H}@v1`, b: `${H2}@v1` }]])
    expect([...history.references.keys()]).toEqual([`${H}@v1`, `${H2}@v1`])
    expect(history.lines).toBe(3)
    expect(history.anomalies).toEqual([])
  })

  test('a path that a later snapshot of the same checkpoint leaves out is gone from it, its backup is still in use', () => {
    const history = fold([snapshot('m1', { a: `${H}@v1`, b: `${H2}@v1` }), snapshot('m1', { a: `${H}@v1` }, { update: true })])
    expect(contents(history)).toEqual([['m1', { a: `${H}@v1` }]])
    expect([...history.references.keys()]).toEqual([`${H}@v1`, `${H2}@v1`])
    expect([...history.tracked]).toEqual(['a', 'b'])
  })

  test('R49: a checkpoint with no tracked file is a checkpoint', () => {
    const history = fold([snapshot('m1'), snapshot('m2')])
    expect(contents(history)).toEqual([['m1', {}], ['m2', {}]])
  })

  test('order counts checkpoints as they were opened, also when lines of an older one follow', () => {
    const history = fold([snapshot('m1'), snapshot('m2', { a: `${H}@v2` }), snapshot('m1', { a: `${H}@v1` }, { update: true })])
    expect(history.checkpoints.map(({ id, order }) => [id, order])).toEqual([['m1', 0], ['m2', 1]])
    expect(history.references.get(`${H}@v1`)).toMatchObject({ oldest: 0, newest: 0 })
  })

  test('the time of a checkpoint is the one last recorded', () => {
    const history = fold([snapshot('m1', {}, { time: 'T1' }), snapshot('m1', {}, { time: 'T2', update: true }), snapshot('m1', {}, { update: true })])
    expect(history.checkpoints[0]?.time).toBe('T2')
  })

  test('paths are data: __proto__, constructor and the empty text are paths like any other', () => {
    const files = JSON.parse(`{"__proto__":"${H}@v1","constructor":"${H}@v2","":"${H}@v3"}`) as Record<string, string>
    const history = fold([snapshot('m1', files)])
    expect([...(history.checkpoints[0]?.files.keys() ?? [])]).toEqual(['__proto__', 'constructor', ''])
    expect([...history.tracked]).toEqual(['__proto__', 'constructor', ''])
  })
})

describe('references and originals', () => {
  test('a reference knows the oldest and the newest checkpoint that names it', () => {
    const history = fold([
      snapshot('m1', { a: `${H}@v1` }),
      snapshot('m2', { a: `${H}@v2` }),
      snapshot('m3', { a: `${H}@v1` }),
      snapshot('m4', {}),
    ])
    expect(history.references.get(`${H}@v1`)).toMatchObject({ path: 'a', version: 1, oldest: 0, newest: 2, pinned: false })
    expect(history.references.get(`${H}@v2`)).toMatchObject({ oldest: 1, newest: 1 })
  })

  test('names of damaged lines are pinned; only the shape of a backup name counts', () => {
    const history = fold([snapshot('m1', { a: `${H}@v1` }), salvaged(`${H}@v1`, `${H2}@v7`, `${H}@v0`, '../../x')])
    expect([...history.references.values()].map(({ name, pinned }) => [name, pinned])).toEqual([[`${H}@v1`, true], [`${H2}@v7`, true]])
    expect(history.references.get(`${H2}@v7`)).not.toHaveProperty('path')
  })

  test('a name first found in a damaged line gets its path from a good one', () => {
    const history = fold([salvaged(`${H}@v1`), snapshot('m1', { a: { name: `${H}@v1`, version: 1, time: 'T', parent: '/p' } })])
    expect(history.references.get(`${H}@v1`)).toMatchObject({ path: 'a', time: 'T', parent: '/p', pinned: true })
  })

  test('the original of a path is its first record of version 1, a "did not exist" as well (R34)', () => {
    const history = fold([snapshot('m1', { a: null, b: `${H}@v2` }), snapshot('m2', { a: `${H2}@v1`, b: `${H}@v1` })])
    expect(Object.fromEntries(history.originals)).toEqual({ a: { name: null, version: 1 }, b: { name: `${H}@v1`, version: 1 } })
  })

  test('a record that cannot be followed is no original and no reference', () => {
    const odd: BackupRecord = { name: '../../x', version: 1, unusable: 'not a backup name' }
    const history = fold([snapshot('m1', { a: odd })])
    expect([history.originals.size, history.references.size]).toEqual([0, 0])
    expect([...history.tracked]).toEqual(['a'])
  })
})

describe('anomalies', () => {
  const rows: readonly (readonly [string, readonly HistoryEvent[], readonly string[]])[] = [
    ['R44: a name that is no backup name', [snapshot('m1', { a: { name: '/etc/hosts', version: 1, unusable: 'no' } })], ['unsafe-name']],
    ['R45: an empty record', [snapshot('m1', { a: { name: null, version: 0, unusable: 'the record is empty' } })], ['odd-record']],
    ['a version that is not the one in the name', [snapshot('m1', { a: { name: `${H}@v2`, version: 3 } })], ['version-mismatch']],
    ['one version of one path with two names', [snapshot('m1', { a: `${H}@v2` }), snapshot('m2', { a: `${H2}@v2` })], ['conflicting-records']],
    ['one version both absent and present', [snapshot('m1', { a: null }), snapshot('m2', { a: `${H}@v1` })], ['conflicting-records']],
    ['R39: a checkpoint opened twice with another version', [snapshot('m1', { a: `${H}@v1` }), snapshot('m1', { a: `${H}@v3` })], ['duplicate-checkpoint']],
    ['R39: versions that go back in an update', [snapshot('m1', { a: `${H}@v3` }), snapshot('m1', { a: `${H}@v1` }, { update: true })], ['duplicate-checkpoint']],
    ['an update that goes on to a later version is none', [snapshot('m1', { a: `${H}@v1` }), snapshot('m1', { a: `${H}@v2` }, { update: true })], []],
    ['different paths may share a version', [snapshot('m1', { a: `${H}@v1`, b: `${H2}@v1` })], []],
  ]
  test.each(rows)('%s', (_, events, expected) => {
    expect(kinds(fold(events))).toEqual(expected)
  })

  test('an anomaly says where the line stands', () => {
    const event = { ...snapshot('m1', { a: { name: 'x', version: 1, unusable: 'no' } }), source: 1, offset: 4711 }
    expect(fold([event]).anomalies[0]).toMatchObject({ source: 1, offset: 4711 })
  })

  test('R43: what a flood of lines repeats is said once', () => {
    const state = new HistoryFold()
    for (let index = 0; index < 5000; index += 1) {
      state.add(snapshot('m1', { a: `${H}@v1` }))
      state.add(snapshot('m1', { a: `${H}@v3` }))
    }
    expect(state.finish().anomalies.length).toBeLessThanOrEqual(2)
  })
})

describe('memory', () => {
  test('R43: equal snapshots share one map of files, and their content is what the lines say', () => {
    const state = new HistoryFold()
    const files = { a: `${H}@v1`, b: `${H2}@v4` }
    for (let index = 0; index < 500; index += 1) state.add(snapshot(`m${String(index)}`, files))
    const { checkpoints } = state.finish()
    expect(new Set(checkpoints.map((checkpoint) => checkpoint.files)).size).toBe(1)
    expect(Object.fromEntries(checkpoints[499]?.files ?? [])).toEqual({ a: record(`${H}@v1`), b: record(`${H2}@v4`) })
  })

  test('a delta on a checkpoint that shares its map changes no other checkpoint', () => {
    const history = fold([snapshot('m1', { a: `${H}@v1` }), snapshot('m2', { a: `${H}@v1` }), delta('m2', 'b', `${H2}@v1`)])
    expect(contents(history)).toEqual([['m1', { a: `${H}@v1` }], ['m2', { a: `${H}@v1`, b: `${H2}@v1` }]])
  })
})

/** The folding rules of the format page read as plainly as they can be, with no sharing: what `fold` must agree with. */
function plainly(events: readonly HistoryEvent[]): Map<string, Map<string, BackupRecord>> {
  const open = new Map<string, Map<string, BackupRecord>>()
  const early: (HistoryEvent & { kind: 'delta' })[] = []
  for (const event of events) {
    if (event.kind === 'snapshot') {
      const waiting = open.has(event.checkpoint) ? [] : early.filter(({ checkpoint }) => checkpoint === event.checkpoint)
      const files = new Map(event.files)
      for (const { path, record: own } of waiting) if (!files.has(path)) files.set(path, own)
      open.set(event.checkpoint, files)
    } else if (event.kind === 'delta') {
      const files = open.get(event.checkpoint)
      if (files === undefined) early.push(event)
      else if (!files.has(event.path)) files.set(event.path, event.record)
    }
  }
  return open
}

/** Leaves out deltas that stand before the snapshot they belong to. */
function inOrder(events: readonly HistoryEvent[]): HistoryEvent[] {
  const open = new Set<string>()
  return events.filter((event) => {
    if (event.kind === 'snapshot') open.add(event.checkpoint)
    return event.kind !== 'delta' || open.has(event.checkpoint)
  })
}

function namesOf(event: HistoryEvent): string[] {
  if (event.kind === 'salvage') return [...event.names]
  const records = event.kind === 'delta' ? [event.record] : [...event.files.values()]
  return records.flatMap(({ name, unusable }) => (name === null || unusable !== undefined ? [] : [name]))
}

describe('properties', () => {
  const someEvents = fc.array(anyEvent, { maxLength: 30 })

  test('sharing maps and records never changes what a checkpoint holds', () => {
    fc.assert(fc.property(someEvents, (events) => {
      const folded = fold(events).checkpoints.map(({ id, files }) => [id, new Map(files)] as const)
      expect(new Map(folded)).toEqual(plainly(events))
    }))
  })

  test('repeating any line right after itself changes nothing but the count of lines', () => {
    fc.assert(fc.property(someEvents.map(inOrder), fc.infiniteStream(fc.boolean()), (events, coins) => {
      const repeated = events.flatMap((event) => (coins.next().value ? [event, event, event] : [event]))
      expect({ ...fold(repeated), lines: 0 }).toEqual({ ...fold(events), lines: 0 })
    }))
  })

  test('a delta never changes a path that is there', () => {
    fc.assert(fc.property(someEvents, anyEvent, (events, last) => {
      fc.pre(last.kind === 'delta')
      const before = new Map(fold(events).checkpoints.map(({ id, files }) => [id, files]))
      for (const { id, files } of fold([...events, last]).checkpoints) {
        for (const [path, own] of before.get(id) ?? []) expect(files.get(path)).toEqual(own)
      }
    }))
  })

  test('the union of references never loses a name, whatever is folded away', () => {
    fc.assert(fc.property(someEvents, (events) => {
      expect(new Set(fold(events).references.keys())).toEqual(new Set(events.flatMap(namesOf)))
    }))
  })

  test('more lines only ever add references and widen their spans', () => {
    fc.assert(fc.property(someEvents, someEvents, (first, second) => {
      const whole = fold([...first, ...second])
      for (const { name, newest, pinned } of fold(first).references.values()) {
        const later = whole.references.get(name)
        expect(later?.newest).toBeGreaterThanOrEqual(pinned ? 0 : newest)
      }
    }))
  })
})
