import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isBackupName, isUuid, parseBackupName } from '../../src/model/names.js'
import { H, S1 } from '../helpers/store.js'

describe('backup names', () => {
  test('sixteen hex digits, @v, and a version from 1', () => {
    expect(parseBackupName(`${H}@v12`)).toEqual({ pathHash: H, version: 12 })
    expect(isBackupName('0123456789abcdef@v1')).toBe(true)
  })

  const unsafe = [
    '../../victim', '/etc/hosts', 'C:\\x', `${H}@v1/../../x`, `${H}@v0`, `${H}@v01`, H.repeat(4), 'con', '', '.', '..',
    `${H}@v`, `${H}@v1 `, ` ${H}@v1`, `${H}@v1\n`, `${H}@v1\0`, `${H}@V1`, `${H.toUpperCase()}@v1`, `${H}a@v1`, H.slice(1) + '@v1',
    `${H}@v1.bak`, `${H}@v-1`, `${H}@v1e3`, `${H}@v9007199254740993`, `${H}@v\u0661`, '__proto__', 'constructor',
  ]
  test.each(unsafe)('R44: %j is none', (name) => {
    expect(parseBackupName(name)).toBeUndefined()
    expect(isBackupName(name)).toBe(false)
  })

  test('R44: no text with a separator, a dot or a NUL is ever one', () => {
    fc.assert(fc.property(fc.string(), fc.constantFrom('/', '\\', '.', '\0', ':'), fc.string(), (before, mark, after) => {
      expect(isBackupName(`${before}${mark}${after}`)).toBe(false)
    }))
  })
})

describe('session ids', () => {
  test('a lower-case UUID', () => {
    expect(isUuid(S1)).toBe(true)
  })

  test.each([S1.toUpperCase().replaceAll('1', 'A'), `${S1}x`, `../${S1}`, S1.slice(1), `${S1}\n`, '1e5', ''])('%j is none', (text) => {
    expect(isUuid(text)).toBe(false)
  })
})
