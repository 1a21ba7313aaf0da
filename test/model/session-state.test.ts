import { expect, test } from 'vitest'
import type { BackupRecord } from '../../src/model/backup.js'
import { fold } from '../../src/model/fold.js'
import type { HistoryEvent } from '../../src/model/history.js'
import { resolve } from '../../src/model/resolve.js'
import { mergeStates, movedPath, movedState, relativeKey, stateOf, withState, type SessionState } from '../../src/model/session-state.js'

const record = (name: string | null, version = 1): BackupRecord => ({ name, version })
const H = 'aaaaaaaaaaaaaaaa'

function event(checkpoint: string, files: Readonly<Record<string, BackupRecord>>, offset = 0): HistoryEvent {
  return { kind: 'snapshot', checkpoint, update: false, files: new Map(Object.entries(files)), source: 0, offset }
}

function stateFrom(events: readonly HistoryEvent[], project = '/p'): SessionState {
  const reading = { id: 's', project, folders: [project], history: fold(events), transcriptBytes: 0, findings: [], damaged: false, busy: false }
  const state = stateOf(reading)
  if (state === undefined) throw new Error('no state')
  return state
}

const three = [
  event('one', { a: record(null) }),
  event('two', { a: record(`${H}@v2`, 2) }),
  event('three', { a: record(`${H}@v3`, 3), '/p/b': record(null) }),
]

test('absolute keys inside the project become relative, all others stay as they are', () => {
  expect([...(stateFrom(three).checkpoints[2]?.files.keys() ?? [])]).toEqual(['a', 'b'])
  expect(relativeKey('/p/x/../y', '/p')).toBe('y')
  expect(relativeKey('/p', '/p')).toBe('/p')
  expect(relativeKey('/pp/a', '/p')).toBe('/pp/a')
  expect(relativeKey('/p/..hidden', '/p')).toBe('..hidden')
  expect(relativeKey('/other/a', undefined)).toBe('/other/a')
})

test('checkpoints that the transcript lost come back at their place, with what they name', () => {
  const state = stateFrom(three)
  const { history, added } = withState(fold(three.slice(2)), state, '/p')
  expect(added).toEqual(['one', 'two'])
  expect(history.checkpoints.map(({ id, order }) => [id, order])).toEqual([['one', 0], ['two', 1], ['three', 2]])
  const [first, second] = history.checkpoints
  if (first === undefined || second === undefined) throw new Error('no checkpoint')
  expect(resolve(history, first).get('a')).toMatchObject({ state: 'absent' })
  expect(resolve(history, second).get('a')).toMatchObject({ state: 'backup', name: `${H}@v2` })
  expect(history.references.get(`${H}@v2`)).toMatchObject({ oldest: 1, newest: 1, pinned: false })
  expect(history.references.get(`${H}@v3`)).toMatchObject({ oldest: 2, newest: 2 })
})

test('a hole in the middle is filled in the middle', () => {
  const state = stateFrom(three)
  const { history } = withState(fold([three[0], three[2]].filter((each) => each !== undefined)), state, '/p')
  expect(history.checkpoints.map(({ id }) => id)).toEqual(['one', 'two', 'three'])
  expect(history.references.get(`${H}@v3`)).toMatchObject({ oldest: 2, newest: 2 })
})

test('what the transcript says itself is never changed by the state', () => {
  const other = fold([event('two', { a: record(`${H}@v9`, 9) })])
  const { history } = withState(other, stateFrom(three), '/p')
  expect(history.checkpoints.find(({ id }) => id === 'two')?.files.get('a')).toEqual(record(`${H}@v9`, 9))
})

test('a state grows and forgets no checkpoint when the transcript was cut', () => {
  const merged = mergeStates(stateFrom(three), stateFrom([event('three', { a: record(`${H}@v3`, 3) }), event('four', { a: record(`${H}@v4`, 4) })]))
  expect(merged.checkpoints.map(({ id }) => id)).toEqual(['one', 'two', 'three', 'four'])
  expect(mergeStates(merged, stateFrom(three)).checkpoints.map(({ id }) => id)).toEqual(['one', 'two', 'three', 'four'])
})

test('R45: a project moves by whole names: a neighbour with the same beginning stays where it is', () => {
  expect(movedPath('/a/b', '/a/b', '/c')).toBe('/c')
  expect(movedPath('/a/b/x', '/a/b', '/c')).toBe('/c/x')
  expect(movedPath('/a/bc/x', '/a/b', '/c')).toBe('/a/bc/x')
  const state = movedState(stateFrom([event('one', { '/a/b/f': { name: `${H}@v1`, version: 1, parent: '/a/b' }, '/a/bc/f': record(null) })], '/a/b'), '/a/b', '/c')
  expect(state.project).toBe('/c')
  expect(state.checkpoints[0]?.files).toEqual(new Map([['f', { name: `${H}@v1`, version: 1, parent: '/c' }], ['/a/bc/f', record(null)]]))
})

test('keys are data, whatever they are called', () => {
  const state = stateFrom([event('one', Object.fromEntries([['constructor', record(null)]]))])
  expect([...(state.checkpoints[0]?.files.keys() ?? [])]).toEqual(['constructor'])
})
