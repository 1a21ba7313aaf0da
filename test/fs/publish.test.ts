import { existsSync, linkSync, mkdirSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { publishBytes, publishFile, publishFolder, sweepTemporary, temporaryNameOf } from '../../src/fs/publish.js'
import { temporaryFolder } from '../helpers/temp.js'

const now = Date.parse('2026-12-01T00:00:00.000Z')
const run = { pid: 100, token: 'aa' }

describe('temporary names of killed runs (R87)', () => {
  it('go when their process is gone, when they are ours from before, or old; all else stays', async () => {
    const folder = await temporaryFolder()
    const make = (name: string, age: number): string => {
      mkdirSync(join(folder, name))
      utimesSync(join(folder, name), (now - age) / 1000, (now - age) / 1000)
      return join(folder, name)
    }
    const [dead, before, old] = [make('.rewind-admin-7-ab', 0), make('.rewind-admin-100-ab', 0), make('.rewind-admin-8-ab', 25 * 3_600_000)]
    const stays = [make('.rewind-admin-8-cd', 3_600_000), make(temporaryNameOf(run), 0), make('.rewind-admin-x', 0), make('rewind-admin-7-ab', 0)]
    expect(sweepTemporary(folder, run, (pid) => pid === 8 || pid === 100, now).sort()).toEqual([before, dead, old].sort())
    expect(stays.filter((path) => !existsSync(path))).toEqual([])
  })

  it('take a name of a linked file away and leave the file, its mode and its time as they are (R67)', async () => {
    const folder = await temporaryFolder()
    const kept = join(folder, 'kept')
    writeFileSync(kept, 'bytes', { mode: 0o400 })
    mkdirSync(join(folder, '.rewind-admin-7-ab'))
    linkSync(kept, join(folder, '.rewind-admin-7-ab', 'kept'))
    const before = statSync(kept)
    sweepTemporary(folder, run, () => false, now)
    const after = statSync(kept)
    expect([after.nlink, after.mode, after.mtimeMs, readFileSync(kept, 'utf8')]).toEqual([1, before.mode, before.mtimeMs, 'bytes'])
  })

  it('a link with such a name is removed, not followed', async () => {
    const folder = await temporaryFolder()
    mkdirSync(join(folder, 'elsewhere'))
    writeFileSync(join(folder, 'elsewhere', 'mine'), '')
    symlinkSync(join(folder, 'elsewhere'), join(folder, '.rewind-admin-7-ab'))
    expect(sweepTemporary(folder, run, () => false, now)).toHaveLength(1)
    expect(existsSync(join(folder, 'elsewhere', 'mine'))).toBe(true)
  })
})

describe('publishing', () => {
  it('never overwrites a file', async () => {
    const folder = await temporaryFolder()
    writeFileSync(join(folder, 'new'), 'new')
    writeFileSync(join(folder, 'there'), 'old')
    expect(() => { publishFile(join(folder, 'new'), join(folder, 'there')) }).toThrow('EEXIST')
    expect([readFileSync(join(folder, 'there'), 'utf8'), existsSync(join(folder, 'new'))]).toEqual(['old', true])
    publishFile(join(folder, 'new'), join(folder, 'free'))
    expect([readFileSync(join(folder, 'free'), 'utf8'), existsSync(join(folder, 'new'))]).toEqual(['new', false])
  })

  it('never takes the place of a folder', async () => {
    const folder = await temporaryFolder()
    mkdirSync(join(folder, 'new'))
    mkdirSync(join(folder, 'there'))
    expect(publishFolder(join(folder, 'new'), join(folder, 'there'))).toBe(false)
    expect(publishFolder(join(folder, 'new'), join(folder, 'free'))).toBe(true)
  })

  it('writes bytes once, readable by their owner only, and refuses to overwrite others', async () => {
    const path = join(await temporaryFolder(), 'picture')
    expect([publishBytes(path, Buffer.from([1, 2])), publishBytes(path, Buffer.from([1, 2]))]).toEqual([true, false])
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(() => publishBytes(path, Buffer.from([1, 3]))).toThrow('was not overwritten')
    expect(readFileSync(path)).toEqual(Buffer.from([1, 2]))
  })
})
