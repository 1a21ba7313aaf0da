import { mkdirSync, renameSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { assertRealRoot, foldersAbove, insideRoot, joinSafe, parentOf, unsafePathReason } from '../../src/fs/safe-path.js'
import { FenceError } from '../../src/model/errors.js'
import { temporaryFolder } from '../helpers/temp.js'

test('promise 3: a relative path of plain names is joined to the root', () => {
  expect(joinSafe('/r', 'projects/-home-u/a.jsonl')).toBe('/r/projects/-home-u/a.jsonl')
  expect(joinSafe('/r', 'file-history/..hidden/x')).toBe('/r/file-history/..hidden/x')
})

test.each(['', '/etc/passwd', '..', '../x', 'a/../../x', 'a/./b', 'a//b', 'a/', './a', 'a\0b', 'a\\..\\b', 'C:', 'C:/x', 'a/c:b', 'bad\uFFFDname', 'x'.repeat(5000)])(
  'promise 3: %j is refused',
  (path) => {
    expect(() => joinSafe('/r', path)).toThrow(FenceError)
  },
)

test('promise 3: whatever is accepted stays below the root', () => {
  const name = fc.oneof(fc.constantFrom('..', '.', '', 'a', '-p', 'x@v1', '...', ' '), fc.string({ maxLength: 8 }))
  fc.assert(
    fc.property(fc.array(name, { minLength: 1, maxLength: 5 }), (names) => {
      const path = names.join('/')
      if (unsafePathReason(path) === undefined) expect(joinSafe('/r', path)).toBe(`/r/${path}`)
    }),
  )
})

test('R55: a folder on the way that is a link is refused, inside the root or outside; a missing one is no path', async () => {
  const root = await temporaryFolder()
  mkdirSync(join(root, 'a/b'), { recursive: true })
  expect(insideRoot(root, 'a/b/c')).toBe(join(root, 'a/b/c'))
  expect(insideRoot(root, 'top')).toBe(join(root, 'top'))
  expect(insideRoot(root, 'a/missing/c')).toBeUndefined()
  renameSync(join(root, 'a'), join(root, 'real'))
  symlinkSync(join(root, 'real'), join(root, 'a'))
  expect(() => insideRoot(root, 'a/b/c')).toThrow(FenceError)
  expect(() => insideRoot(root, 'a/b')).toThrow(/is a link/)
  // The link itself may be named: it is moved or removed as a link.
  expect(insideRoot(root, 'a')).toBe(join(root, 'a'))
})

test('promise 3: a root that is a link, or is gone, is refused', async () => {
  const folder = await temporaryFolder()
  mkdirSync(join(folder, 'real'))
  symlinkSync(join(folder, 'real'), join(folder, 'link'))
  expect(() => { assertRealRoot(join(folder, 'real')) }).not.toThrow()
  expect(() => { assertRealRoot(join(folder, 'link')) }).toThrow(FenceError)
  expect(() => { assertRealRoot(join(folder, 'none')) }).toThrow(FenceError)
})

test('folders above a path come outermost first', () => {
  expect(foldersAbove('a/b/c')).toEqual(['a', 'a/b'])
  expect(foldersAbove('a')).toEqual([])
  expect([parentOf('a/b/c'), parentOf('a')]).toEqual(['a/b', ''])
})
