import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { pathProbe } from '../../src/fs/path-probe.js'
import { temporaryFolder } from '../helpers/temp.js'

describe('pathProbe', () => {
  it('R96: resolves links, and says so when a path cannot be resolved', async () => {
    const folder = await temporaryFolder()
    mkdirSync(join(folder, 'real'))
    symlinkSync(join(folder, 'real'), join(folder, 'link'))
    expect(pathProbe.realPath(join(folder, 'link'))).toBe(join(folder, 'real'))
    expect(pathProbe.realPath(join(folder, 'none'))).toBeUndefined()
    expect(pathProbe.realPath('C:\\none\0')).toBeUndefined()
  })

  it('R95: two folders that differ in case only show a file system that tells them apart', async () => {
    const folder = await temporaryFolder()
    mkdirSync(join(folder, 'name'))
    const before = pathProbe.foldsCase(join(folder, 'name'))
    if (before === true) return
    mkdirSync(join(folder, 'NAME'))
    expect(pathProbe.foldsCase(join(folder, 'name'))).toBe(false)
    expect(pathProbe.foldsCase(join(folder, 'name', 'not', 'there'))).toBe(false)
  })

  it('R28: a folder is gone only when the one above it is there', async () => {
    const folder = await temporaryFolder()
    expect(pathProbe.presence(folder)).toBe('there')
    expect(pathProbe.presence(join(folder, 'gone'))).toBe('gone')
    expect(pathProbe.presence(join(folder, 'unmounted', 'p'))).toBe('unknown')
  })
})
