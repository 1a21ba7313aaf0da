import { linkSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { RetentionUnknowableError } from '../../../src/model/errors.js'
import { parseSize } from '../../../src/model/size.js'
import { planExpire, type ExpireOptions, type Expiry } from '../../../src/operations/expire.js'
import { measure, sessionTotal } from '../../../src/operations/report/measure.js'
import { uuidOf } from '../../helpers/identity.js'
import { carry, configOf, dayMs, daysAgo, expireOptions, keptOf, machineWith, now, openStore, plannedSessions, session } from '../../helpers/removal.js'
import { emptyRoot, H, writeBackup, writeStoreFile } from '../../helpers/store.js'

const id = (name: string): string => uuidOf(`budget/${name}`)
const size = 10_000

/** Sessions by their age in days, each with one backup of 10,000 bytes; transcripts have 400 to 500 bytes. */
async function storeOf(ages: Readonly<Record<string, number>>): Promise<string> {
  const root = await emptyRoot()
  writeStoreFile(root, 'settings.json', '{"cleanupPeriodDays": 365}')
  for (const [name, age] of Object.entries(ages)) {
    session(root, '-p', id(name), age)
    writeBackup(root, id(name), `${H}@v1`, Buffer.alloc(size, name), { mtime: daysAgo(age) })
  }
  return root
}

function plan(root: string, maxBytes: number, options: Partial<ExpireOptions> = {}): Expiry {
  return planExpire(openStore(root), expireOptions({ maxBytes, maxDelete: { count: 1000 }, ...options }), { now, machine: machineWith() })
}

const bytesIn = (root: string): number => sessionTotal(measure(openStore(root)).areas)
const names = (...given: readonly string[]): string[] => given.map(id).sort()

describe('R86: a budget in bytes', () => {
  it('takes the oldest sessions, and no more than it takes; the others may stay, whatever the period says', async () => {
    const root = await storeOf({ a: 300, b: 200, c: 100, d: 50, e: 10 })
    const before = bytesIn(root)
    const removal = plan(root, 35_000)
    expect(plannedSessions(removal)).toEqual(names('a', 'b'))
    expect(removal.plan.actions.map(({ session: each }) => each)).toEqual([id('a'), id('b')])
    expect(keptOf(removal)[id('c')]).toContain('it may stay, since the sessions take up no more than 35000 bytes with it')
    const freed = removal.plan.actions.reduce((sum, { bytes }) => sum + bytes, 0)
    expect(removal.summary.budget).toEqual({ maxBytes: 35_000, bytes: before, left: before - freed })

    expect((await carry(openStore(root), removal)).errors).toEqual([])
    expect(bytesIn(root)).toBe(before - freed)
    expect(plannedSessions(plan(root, 35_000))).toEqual([])
  })

  it('of sessions that were last active at the same time takes the largest first', async () => {
    const root = await storeOf({ small: 60, young: 5 })
    session(root, '-p', id('large'), 60)
    writeBackup(root, id('large'), `${H}@v1`, Buffer.alloc(5 * size), { mtime: daysAgo(60) })
    expect(plannedSessions(plan(root, 40_000))).toEqual(names('large'))
  })

  it('changes nothing while the sessions take up no more: the limit itself is within it', async () => {
    const root = await storeOf({ a: 400, b: 300 })
    expect(plannedSessions(plan(root, bytesIn(root)))).toEqual([])
    expect(plannedSessions(plan(root, bytesIn(root) - 1))).toEqual(names('a'))
  })

  it('keeps the guards: pins, protected and young sessions, periods of our own; and says when that is too much', async () => {
    const root = await storeOf({ pinned: 300, broken: 250, period: 200, goes: 90, floor: 0.9 })
    session(root, '-p', id('period'), 200, { cwd: '/home/u/clients' })
    const config = configOf({ pins: { sessions: [id('pinned')] }, periods: [{ project: '/home/u/clients', days: 365 }] })
    const removal = plan(root, 0, { config, protectedSessions: new Map([[id('broken'), 'verify found damage']]) })
    expect(plannedSessions(removal)).toEqual(names('goes'))
    expect(keptOf(removal)[id('floor')]).toContain('within the period of 1 day (the floor of --max-bytes)')
    expect(removal.findings.map(({ id: found, severity }) => [found, severity])).toContainEqual(['over-budget', 'warn'])
    expect(plan(root, 1_000_000).findings.map(({ id: found }) => found)).not.toContain('over-budget')
  })

  it('with an age takes nothing that is younger', async () => {
    const root = await storeOf({ a: 300, b: 100, c: 20 })
    const removal = plan(root, 0, { olderThanMs: 90 * dayMs })
    expect(plannedSessions(removal)).toEqual(names('a', 'b'))
    expect(keptOf(removal)[id('c')]).toContain('within the period of 90 days (--older-than)')
  })

  it('stops at settings that cannot be used, at a clock that looks wrong, and at the brake', async () => {
    const root = await storeOf({ a: 500, b: 450 })
    const stopped = plan(root, 0, { clockCheck: true })
    expect([stopped.plan.actions, stopped.summary.budget]).toEqual([[], { maxBytes: 0, bytes: bytesIn(root), left: bytesIn(root) }])
    expect(plan(root, 0, { maxDelete: { count: 1 } }).refusal?.code).toBe('BRAKE')
    writeStoreFile(root, 'settings.json', '{"cleanupPeriodDays": "365"}')
    expect(() => plan(root, 0)).toThrow(RetentionUnknowableError)
  })

  it('R68: a backup that a younger session links too frees nothing, so that more has to go', async () => {
    const root = await storeOf({ old: 300, middle: 200, young: 5 })
    mkdirSync(join(root, `file-history/${id('fork')}`))
    session(root, '-p', id('fork'), 2)
    linkSync(join(root, `file-history/${id('old')}/${H}@v1`), join(root, `file-history/${id('fork')}/${H}@v1`))
    expect(bytesIn(root)).toBeLessThan(3 * size + 4 * 500)
    const removal = plan(root, 25_000)
    expect(plannedSessions(removal)).toEqual(names('old', 'middle'))
    const [old] = removal.plan.actions
    expect(old?.bytes).toBe(statSync(join(root, `projects/-p/${id('old')}.jsonl`)).size)
  })

  it('counts what is left of sessions without a transcript, the oldest of them with the others', async () => {
    const root = await storeOf({ orphan: 300, a: 200, b: 5 })
    rmSync(join(root, `projects/-p/${id('orphan')}.jsonl`))
    expect(plannedSessions(plan(root, 25_000))).toEqual(names('orphan'))
  })
})

it.each([
  ['0', 0],
  ['500', 500],
  ['2K', 2048],
  ['3M', 3_145_728],
  ['1G', 1_073_741_824],
  ['2T', 2_199_023_255_552],
  ['', undefined],
  ['1.5G', undefined],
  ['-1', undefined],
  ['1g', undefined],
  ['99999999T', undefined],
])('the size %j is %d bytes', (text, bytes) => {
  expect(parseSize(text)).toBe(bytes)
})
