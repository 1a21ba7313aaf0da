import { describe, expect, test } from 'vitest'
import { fold } from '../../src/model/fold.js'
import type { HistoryEvent } from '../../src/model/history.js'
import { findCheckpoint, resolve } from '../../src/model/resolve.js'
import { H, H2 } from '../helpers/store.js'
import { delta, snapshot } from './history-events.js'

function resolved(checkpoint: string, events: readonly HistoryEvent[]): Record<string, string> {
  const history = fold(events)
  const target = findCheckpoint(history, checkpoint)
  if (target === undefined) throw new Error(`no checkpoint ${checkpoint}`)
  const words = [...resolve(history, target)].map(([path, found]): [string, string] => [path, found.state === 'backup' ? found.name : found.state])
  return Object.fromEntries(words)
}

describe('what a path was at a checkpoint', () => {
  test('R33: the delta of the turn gives the bytes before the edit', () => {
    const events = [snapshot('m1'), delta('m1', 'a.txt', `${H}@v1`), snapshot('m2', { 'a.txt': `${H}@v2` })]
    expect(resolved('m1', events)).toEqual({ 'a.txt': `${H}@v1` })
    expect(resolved('m2', events)).toEqual({ 'a.txt': `${H}@v2` })
  })

  test('a path first touched later was what its version 1 holds', () => {
    expect(resolved('m1', [snapshot('m1'), snapshot('m2', { a: `${H}@v1` }), snapshot('m3', { a: `${H}@v2` })])).toEqual({ a: `${H}@v1` })
  })

  test('a path whose version 1 says "did not exist" was absent before', () => {
    expect(resolved('m1', [snapshot('m1'), snapshot('m2', { a: null }), snapshot('m3', { a: `${H}@v2` })])).toEqual({ a: 'absent' })
  })

  test('R34: absent and a named backup are never the same, and the disk has no say in it', () => {
    expect(resolved('m1', [snapshot('m1', { a: null, b: `${H}@v1` })])).toEqual({ a: 'absent', b: `${H}@v1` })
  })

  test('a path with no record of its own and no version 1 anywhere is left alone', () => {
    expect(resolved('m1', [snapshot('m1', { b: `${H2}@v1` }), snapshot('m2', { a: `${H}@v2` })])).toEqual({ b: `${H2}@v1` })
  })

  test('R44: a record that cannot be followed resolves to unknown, never to absent and never to version 1', () => {
    const odd = { name: '../../x', version: 2, unusable: 'not a backup name' }
    expect(resolved('m2', [snapshot('m1', { a: `${H}@v1` }), snapshot('m2', { a: odd })])).toEqual({ a: 'unknown' })
    expect(resolved('m1', [snapshot('m1', { a: { name: null, version: 0, unusable: 'the record is empty' } })])).toEqual({ a: 'unknown' })
  })

  test('R49: a checkpoint without files knows only what has an original', () => {
    expect(resolved('m1', [snapshot('m1'), delta('m1', 'a', `${H}@v1`)])).toEqual({ a: `${H}@v1` })
    expect(resolved('m1', [snapshot('m1')])).toEqual({})
  })
})

describe('finding a checkpoint', () => {
  const history = fold(['abc', 'abcd', 'xyz'].map((id) => snapshot(id)))
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['abc', 'abc'],
    ['abcd', 'abcd'],
    ['x', 'xyz'],
    ['ab', undefined],
    ['q', undefined],
  ]
  test.each(rows)('%s finds %s', (text, id) => {
    expect(findCheckpoint(history, text)?.id).toBe(id)
  })
})
