import { linkSync, lstatSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { atomicWrite } from '../../src/fs/atomic-write.js'
import { temporaryFolder } from '../helpers/temp.js'

test('R54: the new file has exactly the mode asked for, whatever the umask', async () => {
  const folder = await temporaryFolder()
  for (const umask of [0o000, 0o077, 0o777]) {
    const before = process.umask(umask)
    try {
      atomicWrite(join(folder, 'a'), Buffer.from([0, 255, 10]), { mode: 0o640, token: 'a1' })
    } finally {
      process.umask(before)
    }
    expect(lstatSync(join(folder, 'a')).mode & 0o7777).toBe(0o640)
  }
  expect([...readFileSync(join(folder, 'a'))]).toEqual([0, 255, 10])
  atomicWrite(join(folder, 'b'), Buffer.from('x'), { token: 'a1' })
  expect(lstatSync(join(folder, 'b')).mode & 0o7777).toBe(0o600)
  expect(readdirSync(folder).sort()).toEqual(['a', 'b'])
})

test('R67: other names of the old inode keep the old bytes', async () => {
  const folder = await temporaryFolder()
  writeFileSync(join(folder, 'a'), 'old')
  linkSync(join(folder, 'a'), join(folder, 'b'))
  atomicWrite(join(folder, 'a'), Buffer.from('new'), { token: 'a1' })
  expect(readFileSync(join(folder, 'b'), 'utf8')).toBe('old')
  expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('new')
})

test('R55: a link at the path is replaced, and what it points to keeps its bytes', async () => {
  const folder = await temporaryFolder()
  writeFileSync(join(folder, 'outside'), 'mine')
  symlinkSync(join(folder, 'outside'), join(folder, 'a'))
  atomicWrite(join(folder, 'a'), Buffer.from('new'), { token: 'a1' })
  expect(lstatSync(join(folder, 'a')).isFile()).toBe(true)
  expect(readFileSync(join(folder, 'outside'), 'utf8')).toBe('mine')
})

test('R55: a link planted at the temporary name is not written through, and stays', async () => {
  const folder = await temporaryFolder()
  writeFileSync(join(folder, 'outside'), 'mine')
  symlinkSync(join(folder, 'outside'), join(folder, 'a.a1.tmp'))
  expect(() => { atomicWrite(join(folder, 'a'), Buffer.from('new'), { token: 'a1' }) }).toThrow(/EEXIST/)
  expect(readFileSync(join(folder, 'outside'), 'utf8')).toBe('mine')
  expect(readdirSync(folder).sort()).toEqual(['a.a1.tmp', 'outside'])
})

test('a target that is a folder fails and leaves no temporary file', async () => {
  const folder = await temporaryFolder()
  expect(() => { atomicWrite(folder, Buffer.from('x'), { token: 'a1' }) }).toThrow()
  expect(readdirSync(join(folder, '..')).filter((name) => name.endsWith('.a1.tmp'))).toEqual([])
})
