import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isPartOf, isRunId, newRunId, partRunId, runTime } from '../../src/plan/run-id.js'

const run = newRunId(Date.parse('2026-11-30T03:17:02.123Z'), '9f3c1a00')

test('a run is named by its time, and a part of it by two more digits', () => {
  expect(run).toBe('20261130T031702123Z-9f3c1a00')
  expect([partRunId(run, 1), partRunId(run, 2), partRunId(run, 255)]).toEqual([`${run}01`, `${run}02`, `${run}ff`])
})

test('a part is a run of its own, of the same time, and sorts after the run and before later parts', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 254 }), (nth) => {
      const [one, two] = [partRunId(run, nth), partRunId(run, nth + 1)]
      expect([isRunId(one), runTime(one), isPartOf(one, run)]).toEqual([true, runTime(run), true])
      expect([two, run, one].sort()).toEqual([run, one, two])
    }),
  )
})

test('only a run itself and its own parts belong to it: no other run, no prefix, nothing that is no run', () => {
  expect(isPartOf(run, run)).toBe(true)
  for (const whole of [run.slice(0, -2), run.slice(0, -1), '', '20261130', partRunId(run, 1)]) expect([whole, isPartOf(run, whole)]).toEqual([whole, whole === run.slice(0, -2)])
  expect(isPartOf(partRunId(run, 1), partRunId(run, 2))).toBe(false)
  expect(isPartOf('../../etc01', '../../etc')).toBe(false)
})
