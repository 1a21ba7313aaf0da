import { chmodSync, existsSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Transfer } from '../../src/fs/link-or-copy.js'
import { temporaryFolder } from '../helpers/temp.js'

function failing(code: string): Error {
  return Object.assign(new Error(code), { code })
}

async function twoFiles(): Promise<{ folder: string; from: string; to: string }> {
  const folder = await temporaryFolder()
  const from = join(folder, 'from')
  writeFileSync(from, Buffer.from([0, 0xff, 10, 13, 200]))
  chmodSync(from, 0o640)
  utimesSync(from, 1_700_000_000, 1_700_000_001)
  return { folder, from, to: join(folder, 'to') }
}

describe('a second name for the same bytes', () => {
  it('is a hard link where that can be had', async () => {
    const { from, to } = await twoFiles()
    expect(new Transfer({ method: 'link' }).take(from, to, 'a')).toBe('linked')
    expect(statSync(to).ino).toBe(statSync(from).ino)
  })

  it.each(['EXDEV', 'EPERM', 'EISDIR', 'EMLINK', 'ENOTSUP', 'ENOSYS'])('%s leads to a copy with bytes, mode and time, decided once (R65)', async (code) => {
    const { folder, from, to } = await twoFiles()
    let links = 0
    const link = (): never => {
      links += 1
      throw failing(code)
    }
    const transfer = new Transfer({ method: 'link', acts: { link } })
    expect(transfer.take(from, to, 'a')).toBe('copied')
    expect(transfer.take(from, join(folder, 'other'), 'a')).toBe('copied')
    expect(links).toBe(1)
    const made = statSync(to)
    expect([readFileSync(to).equals(readFileSync(from)), made.mode & 0o7777, made.mtimeMs, made.ino === statSync(from).ino]).toEqual([true, 0o640, 1_700_000_001_000, false])
    expect(transfer.take(from, join(folder, 'elsewhere'), 'b')).toBe('copied')
    expect(links).toBe(2)
  })

  it.each(['ENOSPC', 'EIO', 'EACCES', 'ENOENT'])('%s is an error, and nothing is copied (R65)', async (code) => {
    const { from, to } = await twoFiles()
    const transfer = new Transfer({ method: 'link', acts: { link: () => { throw failing(code) } } })
    expect(() => transfer.take(from, to, 'a')).toThrow(code)
    expect(existsSync(to)).toBe(false)
  })

  it('a copy that fails at 50 % leaves nothing (R65)', async () => {
    const { from, to } = await twoFiles()
    const copy = (source: string, path: string): never => {
      writeFileSync(path, readFileSync(source).subarray(0, 2))
      throw failing('EIO')
    }
    expect(() => new Transfer({ method: 'copy', acts: { copy } }).take(from, to, 'a')).toThrow('EIO')
    expect(existsSync(to)).toBe(false)
  })

  it('never takes the place of something', async () => {
    const { from, to } = await twoFiles()
    for (const method of ['link', 'copy', 'reflink'] as const) {
      writeFileSync(to, 'mine')
      expect(() => new Transfer({ method }).take(from, to, 'a')).toThrow('EEXIST')
      expect(readFileSync(to, 'utf8')).toBe('mine')
    }
  })

  it('reflink falls back to a copy where blocks cannot be shared, with mode and time', async () => {
    const { from, to } = await twoFiles()
    const transfer = new Transfer({ method: 'reflink', acts: { clone: () => { throw failing('ENOTSUP') } } })
    expect(transfer.take(from, to, 'a')).toBe('copied')
    expect([readFileSync(to).equals(readFileSync(from)), statSync(to).mode & 0o7777, statSync(to).mtimeMs]).toEqual([true, 0o640, 1_700_000_001_000])
  })

  it('copies no link and reads no pipe in place of a file (R55)', async () => {
    const { folder, from, to } = await twoFiles()
    const link = join(folder, 'link')
    symlinkSync(from, link)
    expect(() => new Transfer({ method: 'copy' }).take(link, to, 'a')).toThrow('ELOOP')
    expect(() => new Transfer({ method: 'copy' }).take(folder, to, 'a')).toThrow('not a plain file')
    expect(existsSync(to)).toBe(false)
  })

  it('asks before the first byte is copied, and not before a link', async () => {
    const { folder, from, to } = await twoFiles()
    const asked: string[] = []
    const beforeCopying = (): never => {
      asked.push('asked')
      throw failing('ENOSPC')
    }
    expect(new Transfer({ method: 'link', beforeCopying }).take(from, to, 'a')).toBe('linked')
    expect(asked).toEqual([])
    expect(() => new Transfer({ method: 'copy', beforeCopying }).take(from, join(folder, 'other'), 'a')).toThrow('ENOSPC')
    expect(existsSync(join(folder, 'other'))).toBe(false)
  })
})
