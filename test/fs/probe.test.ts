import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { linkSync, mkdirSync, renameSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { isLarge, probeFolder, stampOf, tryDigest, type ProbeJob } from '../../src/fs/probe.js'
import { temporaryFolder } from '../helpers/temp.js'
import { needs } from '../helpers/unprivileged.js'

const digest = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex')

let folder = ''

beforeEach(async ({ onTestFinished }) => {
  folder = await temporaryFolder(onTestFinished)
})

describe('looking into a folder', () => {
  test('entries in the order of their names, each with what a stat says and the digest of its bytes', () => {
    writeFileSync(join(folder, 'b'), 'two', { mode: 0o640 })
    writeFileSync(join(folder, 'a'), '')
    linkSync(join(folder, 'b'), join(folder, 'c'))
    const { entries, mode, error } = probeFolder({ path: folder, digest: 'all' })
    expect([mode, error]).toEqual([0o700, undefined])
    expect(entries).toMatchObject([
      { name: 'a', node: 'file', size: 0, digest: digest(''), links: 1 },
      { name: 'b', node: 'file', size: 3, mode: 0o640, digest: digest('two'), links: 2 },
      { name: 'c', digest: digest('two'), links: 2 },
    ])
    expect(entries[1]?.inode).toBe(entries[2]?.inode)
  })

  test('files are opened when all are asked for, and none when only metadata is', () => {
    for (const name of ['a', 'b']) writeFileSync(join(folder, name), name)
    const digested = (job: ProbeJob['digest']): string[] =>
      probeFolder({ path: folder, digest: job }).entries.filter((entry) => entry.digest !== undefined).map(({ name }) => name)
    expect(digested('all')).toEqual(['a', 'b'])
    expect(digested('none')).toEqual([])
  })

  test('the stamp is another one after every change of bytes, size or file', () => {
    const path = join(folder, 'a')
    const stamp = (): string => probeFolder({ path: folder, digest: 'none' }).entries.map(stampOf)[0] ?? ''
    const stamps = ['x', 'xy', 'x'].map((text, index) => {
      writeFileSync(path, text)
      utimesSync(path, 1000 + index, 1000 + index)
      return stamp()
    })
    renameSync(path, join(folder, 'b'))
    writeFileSync(path, 'x')
    utimesSync(path, 1002, 1002)
    expect(new Set([...stamps, stamp()]).size).toBe(4)
  })

  test('R52: a replacement character in the bytes is noticed', () => {
    writeFileSync(join(folder, 'a'), 'x\ufffdy')
    writeFileSync(join(folder, 'b'), 'xy')
    expect(probeFolder({ path: folder, digest: 'all' }).entries.map(({ replaced }) => replaced)).toEqual([true, false])
  })

  test('R61: links, pipes, sockets and folders are named and never opened', (context) => {
    needs(context, 'fifo')
    symlinkSync('/etc/hostname', join(folder, 'link'))
    execFileSync('mkfifo', [join(folder, 'pipe')])
    mkdirSync(join(folder, 'sub'))
    const { entries } = probeFolder({ path: folder, digest: 'all' })
    expect(entries.map(({ name, node, digest: found }) => [name, node, found])).toEqual([
      ['link', 'a symbolic link', undefined],
      ['pipe', 'a pipe', undefined],
      ['sub', 'a folder', undefined],
    ])
  })

  test('a folder that is a link, a file or not there is an error, not a folder', () => {
    writeFileSync(join(folder, 'file'), 'x')
    symlinkSync(folder, join(folder, 'link'))
    expect(['file', 'link', 'none'].map((name) => probeFolder({ path: join(folder, name), digest: 'all' }).error)).toEqual(['ENOTDIR', 'ENOTDIR', 'ENOENT'])
  })

  test('sizes around one read are digested right', () => {
    for (const size of [(1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20]) {
      const bytes = Buffer.alloc(size, 'ab')
      writeFileSync(join(folder, 'a'), bytes)
      expect(probeFolder({ path: folder, digest: 'all' }).entries[0]?.digest).toBe(digest(bytes))
    }
  })
})

describe('digesting one file', () => {
  test('a large file is left out of its folder, and has the digest of its bytes on its own', () => {
    const path = join(folder, 'large')
    writeFileSync(path, 'head')
    truncateSync(path, 9 << 20)
    const [entry] = probeFolder({ path: folder, digest: 'all' }).entries
    expect(entry).toMatchObject({ name: 'large', deferred: true, size: 9 << 20 })
    expect(entry).not.toHaveProperty('digest')
    expect([isLarge({ size: 9 << 20 }), isLarge({ size: 8 << 20 })]).toEqual([true, false])
    expect(tryDigest(path)).toMatchObject({ digest: digest(Buffer.concat([Buffer.from('head'), Buffer.alloc((9 << 20) - 4)])) })
  })

  test('errors are codes; a link is not followed, a pipe not waited for', (context) => {
    needs(context, 'fifo')
    symlinkSync('/etc/hostname', join(folder, 'link'))
    execFileSync('mkfifo', [join(folder, 'pipe')])
    expect(tryDigest(join(folder, 'none'))).toEqual({ error: 'ENOENT' })
    for (const path of [folder, join(folder, 'link'), join(folder, 'pipe')]) expect(tryDigest(path)).toEqual({ error: 'NOT_REGULAR' })
  })
})
