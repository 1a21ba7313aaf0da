import { expect, test } from 'vitest'
import { allowedRemovals, checkBrake, parseBrakeLimit } from '../../src/plan/brake.js'
import { BrakeError, UsageError } from '../../src/model/errors.js'

test.each([
  [50, 60, true],
  [51, 60, false],
  [51, 254, false],
  [51, 255, true],
  [200, 1000, true],
  [201, 1000, false],
  [950, 1000, false],
  [0, 0, true],
])('promise 5, R07: without a limit, %i of %i sessions may go: %s', (removed, total, allowed) => {
  const check = (): void => { checkBrake(removed, total) }
  if (allowed) expect(check).not.toThrow()
  else expect(check).toThrow(BrakeError)
})

test('R07: a limit lets a large plan run, and a lower one stops a small plan', () => {
  expect(() => { checkBrake(950, 1000, parseBrakeLimit('1000')) }).not.toThrow()
  expect(() => { checkBrake(950, 1000, parseBrakeLimit('95%')) }).not.toThrow()
  expect(() => { checkBrake(951, 1000, parseBrakeLimit('95%')) }).toThrow(BrakeError)
  expect(() => { checkBrake(1, 1000, parseBrakeLimit('0')) }).toThrow(BrakeError)
  expect(allowedRemovals(1000, { percent: 5 })).toBe(50)
})

test('R07: the error has its own exit code and names counts and flag', () => {
  const error = (() => {
    try {
      checkBrake(950, 1000)
    } catch (thrown) {
      return thrown
    }
    return undefined
  })()
  expect(error).toMatchObject({ exitCode: 4, code: 'BRAKE' })
  expect(String(error)).toMatch(/950 of 1000 sessions; at most 200/)
  expect(error).toHaveProperty('hint', expect.stringContaining('--max-delete 950'))
})

test.each(['', '-1', '1.5', '101%', 'many', '5 %', '%', '1e3'])('a limit of %j is refused', (text) => {
  expect(() => parseBrakeLimit(text)).toThrow(UsageError)
})
