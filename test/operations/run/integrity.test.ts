import { readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { integrity } from '../../../jobs/integrity.js'
import { bucketOf } from '../../../src/operations/run/bucket.js'
import type { Job } from '../../../src/operations/run/job.js'
import { dayMs, daysAgo, iso, now, openStore } from '../../helpers/removal.js'
import { uuidOf } from '../../helpers/identity.js'
import { H, H2, S1, S2, emptyRoot, snap, userLine, writeBackup, writeTranscript } from '../../helpers/store.js'
import { rowsOf, runOn } from './running.js'

const zone = process.env.TZ
afterEach(() => {
  if (zone === undefined) delete process.env.TZ
  else process.env.TZ = zone
})

/** Two sessions, each with a path of its own: two of one path would be taken for forks of one another. */
const sessions = [[S1, H], [S2, H2]] as const

/** A store with so many backups in each of two sessions. */
async function store(count: number): Promise<string> {
  const root = await emptyRoot()
  for (const [id, hash] of sessions) {
    const messages = Array.from({ length: count }, (_, index) => uuidOf(`${id}/${String(index)}`))
    const lines = messages.flatMap((message, index) => [
      userLine(message, { session: id, parent: messages[index - 1] ?? null, time: iso(daysAgo(1)) }),
      snap(message, { [`${hash}.md`]: `${hash}@v${String(index + 1)}` }, iso(daysAgo(1))),
    ])
    writeTranscript(root, '-p', id, lines, { mtime: daysAgo(1) })
    for (let version = 1; version <= count; version += 1) writeBackup(root, id, `${hash}@v${String(version)}`, `${id} line ${String(version)}\n`, { mtime: daysAgo(1) })
  }
  return root
}

/** Changes a byte as a bad disk does: size and times stay. */
function rot(path: string): void {
  const bytes = readFileSync(path)
  const { atime, mtime } = statSync(path)
  bytes[0] = (bytes[0] ?? 0) ^ 1
  writeFileSync(path, bytes)
  utimesSync(path, atime, mtime)
}

function damaged(findings: readonly { readonly id: string; readonly place?: { readonly path: string } }[]): string[] {
  return findings.filter(({ id }) => id === 'changed-after-seal').map(({ place }) => place?.path ?? '')
}

describe('the integrity job', () => {
  it('reads every backup once in seven nights, wherever they begin, and finds what rotted', async () => {
    const root = await store(20)
    await runOn(openStore(root), { name: 'seal', describe: '', steps: [{ step: 'verify' }] })
    const all = sessions.flatMap(([id, hash]) => Array.from({ length: 20 }, (_, index) => `file-history/${id}/${hash}@v${String(index + 1)}`))
    for (const path of all) rot(join(root, path))
    const nights: string[][] = []
    for (let night = 3; night < 10; night += 1) nights.push(damaged((await runOn(openStore(root), integrity, { now: now + night * dayMs })).findings))
    expect(nights.flat().sort()).toEqual(all.sort())
    expect(nights.filter((found) => found.length > 0).length).toBeGreaterThan(4)
    // The eighth night is the first one again.
    expect(damaged((await runOn(openStore(root), integrity, { now: now + 10 * dayMs })).findings).sort()).toEqual(nights[0]?.sort())
  })

  it('says which bucket it read, and seals what is new', async () => {
    const root = await store(3)
    const report = await runOn(openStore(root), integrity)
    expect(rowsOf(report)[0]).toMatchObject({ step: 'verify', state: 'done', message: expect.stringMatching(/^bucket [1-7] of 7$/) as string })
    expect(report.plan).toEqual([])
  })

  it('of a preview reads the same bucket', async () => {
    const root = await store(3)
    const [preview, done] = [await runOn(openStore(root), integrity, { apply: false }), await runOn(openStore(root), integrity)]
    expect(rowsOf(preview)[0]?.message).toBe(rowsOf(done)[0]?.message)
    expect(rowsOf(preview)[0]?.summary.digested).toBe(rowsOf(done)[0]?.summary.digested)
  })

  it('of the configuration may have another number of buckets', async () => {
    const root = await store(20)
    const job: Job = { name: 'thirds', describe: '', steps: [{ step: 'verify', buckets: 3 }] }
    const read = []
    for (let night = 0; night < 3; night += 1) read.push(Number(rowsOf(await runOn(openStore(root), job, { now: now + night * dayMs, apply: false }))[0]?.summary.digested))
    expect(read.reduce((sum, count) => sum + count, 0)).toBe(40)
    expect(Math.min(...read)).toBeGreaterThan(0)
  })
})

describe('the bucket of a day', () => {
  it.each(['UTC', 'Europe/Berlin', 'America/St_Johns', 'Pacific/Kiritimati'])('in %s advances by one every calendar day, also over the change of the clocks', (name) => {
    process.env.TZ = name
    // A job at half past midnight of the clock on the wall, for two years.
    const numbers = Array.from({ length: 730 }, (_, day) => {
      const sample = bucketOf(new Date(2026, 0, 1 + day, 0, 30).getTime(), 7)
      return sample.kind === 'bucket' ? sample.number : 0
    })
    expect(numbers.every((number, day) => day === 0 || number === ((numbers[day - 1] ?? 0) % 7) + 1)).toBe(true)
    expect(new Set(numbers)).toEqual(new Set([1, 2, 3, 4, 5, 6, 7]))
  })

  it('is the same all day, and from 1 to the number of buckets also before 1970', () => {
    process.env.TZ = 'Europe/Berlin'
    expect(bucketOf(new Date(2026, 5, 1, 0, 0).getTime(), 5)).toEqual(bucketOf(new Date(2026, 5, 1, 23, 59).getTime(), 5))
    expect(bucketOf(new Date(1969, 11, 30).getTime(), 5)).toEqual({ kind: 'bucket', number: 4, of: 5 })
    expect(bucketOf(now, 1)).toEqual({ kind: 'bucket', number: 1, of: 1 })
  })
})
