import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { AnchoredFolder } from '../../src/fs/anchored-folder.js'
import { digestStretch, inspectBackup, openInFolder, sameBytes } from '../../src/fs/content.js'
import { temporaryFolder } from '../helpers/temp.js'
import { needs } from '../helpers/unprivileged.js'

const block = 256 * 1024

describe('bytes in a folder', () => {
  const sizes = [0, 1, block - 1, block, block + 1, 2 * block, 2 * block + 7]

  it.each(sizes)('two files of %i bytes are the same until one bit differs', async (size) => {
    const base = await temporaryFolder()
    const folder = AnchoredFolder.open(base)
    const bytes = Buffer.alloc(size, 'abcdefg')
    writeFileSync(join(base, 'one'), bytes)
    writeFileSync(join(base, 'packed'), Buffer.concat([Buffer.from('before'), bytes, Buffer.from('after')]))
    const stretch = { offset: 6, size }
    expect(sameBytes(join(base, 'one'), folder, 'packed', stretch)).toBe(true)
    expect(digestStretch(folder, 'packed', stretch)).toBe(createHash('sha256').update(bytes).digest('hex'))
    writeFileSync(join(base, 'longer'), Buffer.concat([bytes, Buffer.from('a')]))
    expect(sameBytes(join(base, 'longer'), folder, 'packed', stretch)).toBe(false)
    if (size > 0) {
      bytes[size - 1] = (bytes[size - 1] ?? 0) ^ 1
      writeFileSync(join(base, 'other'), bytes)
      expect(sameBytes(join(base, 'other'), folder, 'packed', stretch)).toBe(false)
      writeFileSync(join(base, 'shorter'), bytes.subarray(0, size - 1))
      expect(sameBytes(join(base, 'shorter'), folder, 'packed', stretch)).toBe(false)
    }
    folder.close()
  })

  it('a link is not followed and a pipe is not waited for', async (context) => {
    needs(context, 'fifo')
    const base = await temporaryFolder()
    const folder = AnchoredFolder.open(base)
    writeFileSync(join(base, 'file'), 'x')
    symlinkSync('file', join(base, 'link'))
    execFileSync('mkfifo', [join(base, 'pipe')])
    expect(() => openInFolder(folder, 'link')).toThrow(/ELOOP/)
    expect(() => openInFolder(folder, 'pipe')).toThrow(/plain file/)
    expect(inspectBackup(folder, 'link', undefined)).toEqual({ kind: 'not-regular' })
    expect(inspectBackup(folder, 'pipe', undefined)).toEqual({ kind: 'not-regular' })
    expect(inspectBackup(folder, 'gone', undefined)).toEqual({ kind: 'missing' })
    folder.close()
  })
})
