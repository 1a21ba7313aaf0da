import { describe, expect, test } from 'vitest'
import { finding, findingKinds, isAtLeast, isFindingId, placeText, remedyOf, type FindingId } from '../../src/model/finding.js'

describe('findings', () => {
  test('a finding has the severity and the remedy of its kind', () => {
    expect(finding('missing-backup', 'gone', { session: 's', path: 'p', offset: 3 })).toEqual({
      id: 'missing-backup',
      severity: 'error',
      session: 's',
      place: { path: 'p', offset: 3 },
      message: 'gone',
      remedy: 'rewind-admin repair',
    })
  })

  test('severity and remedy can be given; without a place there is none', () => {
    expect(finding('torn-tail', 'cut', { severity: 'info', remedy: 'wait' })).toEqual({ id: 'torn-tail', severity: 'info', message: 'cut', remedy: 'wait' })
  })

  test('a kind that nothing needs doing about has no remedy', () => {
    expect(remedyOf('pruned-backup')).toBeUndefined()
    expect(finding('pruned-backup', 'x')).not.toHaveProperty('remedy')
  })

  test('severities are ordered, and ignored findings are below every floor', () => {
    const reached = (['error', 'warn', 'info', 'ignore'] as const).map((severity) => isAtLeast(severity, 'warn'))
    expect(reached).toEqual([true, true, false, false])
    expect(isAtLeast('ignore', 'ignore')).toBe(false)
  })

  test('ids are known by name, and by nothing that every object has', () => {
    expect(['missing-backup', 'wide-mode', 'constructor', '__proto__', ''].map(isFindingId)).toEqual([true, true, false, false, false])
  })

  test('every error says what to do about it', () => {
    const mute = (Object.keys(findingKinds) as FindingId[]).filter((id) => findingKinds[id].severity === 'error' && remedyOf(id) === undefined)
    expect(mute).toEqual([])
  })

  test('a place is one word', () => {
    expect([placeText({ path: 'a' }), placeText({ path: 'a', offset: 0 })]).toEqual(['a', 'a#0'])
  })
})
