import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { nightly } from '../../../jobs/nightly.js'
import type { Store } from '../../../src/formats/format.js'
import type { PathProbe } from '../../../src/fs/path-probe.js'
import { NoStoreError } from '../../../src/model/errors.js'
import { reportOn, type StoresReport } from '../../../src/operations/report/report.js'
import { readTombstones } from '../../../src/operations/tombstones.js'
import { runJob } from '../../../src/operations/run/run-job.js'
import type { JobContext } from '../../../src/operations/run/steps.js'
import { linkIntoSession } from '../../helpers/damage.js'
import { uuidOf } from '../../helpers/identity.js'
import { configOf, machineWith, now, openStore, restore, session } from '../../helpers/removal.js'
import { H, H2, S1, S2, emptyRoot, snap, writeBackup, writeStoreFile } from '../../helpers/store.js'
import { snapshotTree } from '../../helpers/tree.js'

const probe: PathProbe = { realPath: (path) => path, foldsCase: () => false, presence: (path) => (path.startsWith('/tmp/run-') ? 'gone' : 'there') }

function contextOf(): Omit<JobContext, 'apply'> {
  const machine = machineWith({ [process.pid]: '1' })
  return {
    runId: '20261130T120000000Z-00000001',
    config: configOf(),
    lock: { pid: process.pid, host: 'here', processes: machine, waitMs: 0 },
    now,
    monotonic: () => 0,
    machine,
    random: () => 0,
    threads: 0,
  }
}

function report(...stores: Store[]): Promise<StoresReport> {
  return reportOn(stores, nightly, { ...contextOf(), probe })
}

/** Bytes of all files below folders, each inode once, as coreutils count them. */
function bytesByDu(...folders: string[]): number {
  const rows = execFileSync('find', [...folders, '-type', 'f', '-printf', '%D:%i %s\n'], { encoding: 'utf8' }).trimEnd().split('\n')
  return [...new Set(rows)].reduce((sum, row) => sum + Number(row.split(' ')[1]), 0)
}

interface StoreJson {
  readonly areas: Readonly<Record<string, number>>
  readonly projects: readonly { readonly project: string; readonly bytes: number; readonly sessions: number }[]
  readonly sessions: readonly { readonly id: string; readonly totalBytes: number; readonly companionBytes: number }[]
  readonly paths: readonly { readonly path: string; readonly bytes: number }[]
  readonly versions: unknown
  readonly retention: unknown
  readonly goneProjects: readonly { readonly pattern: string; readonly count: number; readonly projects: readonly string[] }[]
  readonly removed: readonly Readonly<Record<string, unknown>>[]
  readonly nextNight: { readonly actions: number; readonly bytes: number; readonly refused: readonly string[] }
}

function storeOf({ report: { extra } }: StoresReport): StoreJson {
  const [first] = (extra?.stores ?? []) as unknown as StoreJson[]
  if (first === undefined) throw new Error('no store')
  return first
}

/** Three projects of known sizes, with companions, a linked backup, and leftovers of a session that is gone. */
async function threeProjects(): Promise<string> {
  const root = await emptyRoot()
  const S3 = uuidOf('third')
  session(root, '-a', S1, 1, { cwd: '/w/a', lines: [snap('m-1111', { 'x.md': `${H}@v1`, 'y.md': `${H2}@v1` }, new Date(now).toISOString())] })
  session(root, '-b', S2, 2, { cwd: '/w/b' })
  session(root, '-c', S3, 3, { cwd: '/w/c' })
  writeBackup(root, S1, `${H}@v1`, 'x'.repeat(5000))
  writeBackup(root, S1, `${H2}@v1`, 'y'.repeat(700))
  writeBackup(root, S2, `${H}@v2`, 'z'.repeat(20_000))
  linkIntoSession(root, S1, `${H}@v1`, S2)
  writeStoreFile(root, `projects/-c/${S3}/tool-results/t.txt`, 'r'.repeat(3000))
  writeStoreFile(root, `projects/-c/${S3}/subagents/agent-1.jsonl`, `{}\n`)
  writeStoreFile(root, `session-env/${uuidOf('gone')}/env.sh`, 'e'.repeat(90))
  return root
}

describe('the report', () => {
  it('R86, R68: its bytes by area, session and project are those that coreutils count by inode', async () => {
    const root = await threeProjects()
    const result = await report(openStore(root))
    const { areas, projects, sessions } = storeOf(result)
    expect(areas).toEqual({
      transcripts: ['-a', '-b', '-c'].reduce((sum, slug) => sum + bytesByDu(...readdirSync(join(root, 'projects', slug)).filter((name) => name.endsWith('.jsonl')).map((name) => join(root, 'projects', slug, name))), 0),
      backups: 25_700,
      companions: 3003,
      leftovers: 90,
      own: 0,
    })
    const all = bytesByDu(join(root, 'projects'), join(root, 'file-history'), join(root, 'session-env'))
    expect(result.report.summary).toMatchObject({ sessions: 3, backups: 4, bytes: all, ownBytes: 0 })
    expect(sessions.reduce((sum, { totalBytes }) => sum + totalBytes, 0)).toBe(all - 90)
    expect(projects.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(all - 90)
    expect(projects.map(({ project }) => project)).toEqual(['/w/b', '/w/a', '/w/c'])
    expect(sessions.map(({ id, companionBytes }) => [id, companionBytes])).toEqual([[S2, 0], [S1, 0], [uuidOf('third'), 3003]])
  })

  it('R86, R93: names bytes per path and counts per version, with the retention that counts', async () => {
    const root = await threeProjects()
    writeStoreFile(root, 'settings.json', '{"cleanupPeriodDays":12}')
    const { paths, versions, retention } = storeOf(await report(openStore(root)))
    expect(paths).toEqual([{ path: 'x.md', bytes: 5000 }, { path: 'y.md', bytes: 700 }])
    expect(versions).toEqual({ v1: 3, v2: 1 })
    expect(retention).toMatchObject({ days: 12, source: expect.stringContaining('settings.json') as string })
  })

  it('never writes: neither into a store nor beside it', async () => {
    const root = await threeProjects()
    session(root, '-a', uuidOf('old'), 60, { cwd: '/w/a' })
    const before = snapshotTree(root)
    await report(openStore(root))
    expect(snapshotTree(root)).toEqual(before)
  })

  it('says what the next night would do, and that night does it', async () => {
    const root = await threeProjects()
    const old = uuidOf('old')
    session(root, '-a', old, 60, { cwd: '/w/a' })
    const store = openStore(root)
    const { report: preview } = await report(store)
    expect(preview.plan.map(({ action, session: id }) => [action, id])).toContainEqual(['trash-session', old])
    expect(storeOf(await report(store)).nextNight).toMatchObject({ actions: preview.plan.length, bytes: preview.summary.nextBytes, refused: [] })
    const night = await runJob([store], nightly, { ...contextOf(), apply: true })
    expect(night.plan).toEqual(preview.plan)
  })

  it('R12: names removed sessions with their size and run, the newest first, and not those that came back', async () => {
    const root = await threeProjects()
    const old = [uuidOf('old/1'), uuidOf('old/2')]
    for (const id of old) session(root, '-a', id, 60, { cwd: '/w/a' })
    const size = statSync(join(root, 'projects/-a', `${old[0] ?? ''}.jsonl`)).size
    const store = openStore(root)
    await runJob([store], nightly, { ...contextOf(), apply: true })
    const removed = storeOf(await report(store)).removed.filter(({ session: id }) => old.includes(String(id)))
    expect(removed).toHaveLength(2)
    expect(removed[0]).toMatchObject({ bytes: size, command: 'expire', project: '/w/a', removedAt: '2026-11-30T12:00:00.000Z' })
    expect(readTombstones(store).length).toBeGreaterThanOrEqual(2)
    await restore(store, String(removed[0]?.runId))
    expect(storeOf(await report(store)).removed.filter(({ session: id }) => old.includes(String(id)))).toEqual([])
  })

  it('R91: takes projects whose folder is gone together, and names each', async () => {
    const root = await emptyRoot()
    for (let index = 0; index < 100; index += 1) session(root, `-tmp-run-${String(index)}`, uuidOf(`run/${String(index)}`), 1, { cwd: `/tmp/run-${String(index)}` })
    const { goneProjects } = storeOf(await report(openStore(root)))
    expect(goneProjects.map(({ pattern, count }) => [pattern, count])).toEqual([['/tmp/run-*', 100]])
    expect(goneProjects[0]?.projects).toContain('/tmp/run-99')
  })

  it('tells what stops the next night, and is itself no failure', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 60)
    writeStoreFile(root, 'settings.json', '{"cleanupPeriodDays":"365"}')
    const result = await report(openStore(root))
    expect(storeOf(result).nextNight.refused.join()).toContain('settings.json')
    expect(result.report).toMatchObject({ exitCode: 0, errors: [] })
  })

  it('of several stores shows the good ones when one cannot be read, and says so', async () => {
    const root = await threeProjects()
    const good = openStore(root)
    const broken: Store = { ...good, root: '/broken', inventory: () => { throw new NoStoreError('nothing is recognised') } }
    const { report: result, stores } = await report(broken, good)
    expect(stores.map((facts) => facts.root)).toEqual([root])
    expect(result).toMatchObject({ exitCode: 10, errors: [{ code: 'NO_STORE', path: '/broken', message: 'nothing is recognised' }] })
    await expect(report(broken)).rejects.toThrow(NoStoreError)
  })

  it('with our own folder damaged shows the rest and ends with 3', async () => {
    const root = await threeProjects()
    mkdirSync(join(root, '.rewind-admin/tombstones.jsonl'), { recursive: true })
    chmodSync(join(root, '.rewind-admin'), 0o700)
    const { report: result } = await report(openStore(root))
    expect(result).toMatchObject({ exitCode: 3, errors: [{ code: 'EISDIR' }], summary: { sessions: 3 } })
  })
})
