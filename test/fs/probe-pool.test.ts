import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { linkSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { ProbePool } from '../../src/fs/probe-pool.js'
import { probeFolder } from '../../src/fs/probe.js'
import { temporaryFolder } from '../helpers/temp.js'
import { needs } from '../helpers/unprivileged.js'

const digest = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex')

let folder = ''

beforeEach(async ({ onTestFinished }) => {
  folder = await temporaryFolder(onTestFinished)
})

describe.each([0, 1, 2])('a pool of %d threads', (threads) => {
  async function withPool<T>(use: (pool: ProbePool) => Promise<T>): Promise<T> {
    const pool = new ProbePool(threads)
    try {
      return await use(pool)
    } finally {
      await pool.close()
    }
  }

  test('answers are those of their questions, in the order of the jobs, and say what looking in place says', async () => {
    const names = Array.from({ length: 40 }, (_, index) => `f${String(index)}`)
    for (const name of names) {
      mkdirSync(join(folder, name))
      writeFileSync(join(folder, name, name), name.repeat(1 + (Number(name.slice(1)) % 7) * 20_000))
    }
    linkSync(join(folder, 'f1', 'f1'), join(folder, 'f1', 'again'))
    const jobs = names.map((name) => [{ path: join(folder, name), digest: 'all' }, { path: folder, digest: 'none' }] as const)
    const answers = await withPool((pool) => Promise.all(jobs.map((each) => pool.folders(each))))
    expect(answers).toEqual(jobs.map((each) => each.map(probeFolder)))
    expect(answers[6]?.[0]?.entries[0]?.digest).toBe(digest('f6'.repeat(120_001)))
  })

  test('a large file is left for a job of its own', async () => {
    const path = join(folder, 'large')
    writeFileSync(path, 'head')
    truncateSync(path, 9 << 20)
    await withPool(async (pool) => {
      const [probed] = await pool.folders([{ path: folder, digest: 'all' }])
      expect(probed?.entries).toMatchObject([{ name: 'large', deferred: true, size: 9 << 20 }])
      expect(probed?.entries[0]).not.toHaveProperty('digest')
      expect(await pool.file(path)).toMatchObject({ digest: digest(Buffer.concat([Buffer.from('head'), Buffer.alloc((9 << 20) - 4)])) })
    })
  })

  test('errors come back as codes; a link is not followed, a pipe not waited for', async (context) => {
    needs(context, 'fifo')
    symlinkSync('/etc/hostname', join(folder, 'link'))
    execFileSync('mkfifo', [join(folder, 'pipe')])
    await withPool(async (pool) => {
      expect(await pool.file(join(folder, 'none'))).toEqual({ error: 'ENOENT' })
      for (const name of ['link', 'pipe']) expect(await pool.file(join(folder, name))).toEqual({ error: 'NOT_REGULAR' })
      expect(await pool.folders([{ path: join(folder, 'none'), digest: 'all' }])).toMatchObject([{ error: 'ENOENT', entries: [] }])
    })
  })

  test('a pool that did nothing closes', async () => {
    await withPool(async () => Promise.resolve())
  })
})
