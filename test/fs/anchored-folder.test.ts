import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { AnchoredFolder } from '../../src/fs/anchored-folder.js'
import { FenceError } from '../../src/model/errors.js'
import { temporaryFolder } from '../helpers/temp.js'

describe('a folder held open (R55)', () => {
  it('is not opened when it is a link, lies behind one, or is a file', async () => {
    const base = await temporaryFolder()
    mkdirSync(join(base, 'real', 'sub'), { recursive: true })
    symlinkSync('real', join(base, 'link'))
    writeFileSync(join(base, 'file'), '')
    for (const name of ['link', 'link/sub', 'file']) expect(() => AnchoredFolder.open(join(base, name)), name).toThrow(FenceError)
    expect(() => AnchoredFolder.open(join(base, 'gone'))).toThrow(/ENOENT/)
  })

  it('knows when its path no longer leads to it', async () => {
    const base = await temporaryFolder()
    const path = join(base, 'a')
    mkdirSync(path)
    const folder = AnchoredFolder.open(path)
    expect(folder.isInPlace()).toBe(true)
    renameSync(path, join(base, 'b'))
    expect(folder.isInPlace()).toBe(false)
    mkdirSync(path)
    expect(folder.isInPlace()).toBe(false)
    folder.close()
  })

  it('names in it stay in it when the path is swapped for a link', async () => {
    const base = await temporaryFolder()
    const [path, outside] = [join(base, 'a'), join(base, 'outside')]
    for (const each of [path, outside]) mkdirSync(each)
    const folder = AnchoredFolder.open(path)
    // Only systems that can look names up from an open folder can promise this.
    const isAnchored = folder.at('x') !== join(path, 'x')
    renameSync(path, join(base, 'b'))
    symlinkSync(outside, path)
    if (isAnchored) {
      writeFileSync(folder.at('x'), 'here')
      expect(readFileSync(join(base, 'b', 'x'), 'utf8')).toBe('here')
    }
    expect(readdirSync(outside)).toEqual([])
    expect(folder.isInPlace()).toBe(false)
    folder.close()
  })

  it('makes folders in itself, and refuses a link that stands there', async () => {
    const base = await temporaryFolder()
    mkdirSync(join(base, 'a'))
    symlinkSync('/', join(base, 'a', 'link'))
    const folder = AnchoredFolder.open(join(base, 'a'))
    const first = folder.makeFolder('new', 0o700)
    const second = folder.makeFolder('new', 0o700)
    expect([first.made, second.made, first.folder.path]).toEqual([true, false, join(base, 'a', 'new')])
    expect(statSync(join(base, 'a', 'new')).mode & 0o777).toBe(0o700)
    expect(() => folder.makeFolder('link', 0o700)).toThrow(FenceError)
    for (const each of [first.folder, second.folder, folder]) each.close()
    expect(existsSync(join(base, 'a', 'new'))).toBe(true)
  })
})
