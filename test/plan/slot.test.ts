import fc from 'fast-check'
import { expect, test } from 'vitest'
import { flatName, pathOfFlatName } from '../../src/plan/slot.js'

test('promise 2: a path with a folder has one name in the trash, which says the path', () => {
  expect(flatName('file-history/668cb1ae-ba7e-4bd7-8faf-d484de5ef60e')).toBe('file-history%2F668cb1ae-ba7e-4bd7-8faf-d484de5ef60e')
  expect(flatName('projects/-p%2Fq/100%.jsonl')).toBe('projects%2F-p%252Fq%2F100%25.jsonl')
  expect(pathOfFlatName('projects%2F-p%252Fq%2F100%25.jsonl')).toBe('projects/-p%2Fq/100%.jsonl')
})

test('promise 2: whatever the path, its name in the trash is one name that gives the path back', () => {
  const name = fc.string({ minLength: 1, maxLength: 20 }).map((text) => text.replaceAll('/', '%2F'))
  fc.assert(
    fc.property(fc.array(name, { minLength: 2, maxLength: 4 }), (names) => {
      const path = names.join('/')
      const flat = flatName(path)
      if (flat === undefined) return
      expect(flat).not.toContain('/')
      expect(pathOfFlatName(flat)).toBe(path)
    }),
  )
})

test('promise 2: names of our own are no paths, and a path without a folder or with too long a name is kept as it is', () => {
  expect([pathOfFlatName('receipt.json'), pathOfFlatName('files')]).toEqual([undefined, undefined])
  expect(flatName('history.jsonl')).toBeUndefined()
  expect(flatName(`projects/${'p'.repeat(133)}`)).toBeUndefined()
  expect(Buffer.byteLength(flatName(`projects/${'p'.repeat(132)}`) ?? '')).toBe(143)
})
