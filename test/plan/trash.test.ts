import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { applyPlan } from '../../src/plan/apply.js'
import { touchTime } from '../../src/plan/folder-times.js'
import { restoreFromTrash } from '../../src/plan/restore.js'
import { flatName } from '../../src/plan/slot.js'
import { emptyTrash, listTrash } from '../../src/plan/trash.js'
import { NoMatchError } from '../../src/model/errors.js'
import { snapshotTree } from '../helpers/tree.js'
import { asNobody, giveAway, needs } from '../helpers/unprivileged.js'
import { day, expireAll, makeOutside, now, planOf, removalOf, run1, run2, sampleStore, sessionId, storeTree } from './sample.js'

test('the receipt says where everything was, why and when it went', async () => {
  const store = await sampleStore(1)
  const action = removalOf(store.root, 0)
  if (action === undefined) throw new Error('no session')
  await applyPlan(planOf(store, [{ ...action, project: '/home/u/p', lastActivity: 5 }]), { now, runId: run1 })
  const receipt: unknown = JSON.parse(readFileSync(join(store.sidecar, 'trash', run1, sessionId(0), 'receipt.json'), 'utf8'))
  expect(receipt).toMatchObject({
    schemaVersion: 1,
    runId: run1,
    command: 'expire',
    trashedAt: '2026-11-30T03:17:00.000Z',
    session: sessionId(0),
    project: '/home/u/p',
    lastActivity: 5,
    reason: 'older than 30 days',
    folders: [{ path: 'file-history', mode: 0o700, mtimeNs: '1700000000000000000' }, { path: 'todos' }, { path: 'projects' }, { path: 'projects/-home-u-p0' }],
  })
  expect(listTrash(store)).toMatchObject([{ runId: run1, session: sessionId(0), trashedAt: now, receiptLost: false, bytes: action.bytes }])
})

test('R20: the grace period counts from trashedAt, not from the age of the files; the exact threshold stays', async () => {
  const store = await sampleStore(2)
  await applyPlan(expireAll(store, 2), { now, runId: run1 })
  for (const at of [now, now + 30 * day]) {
    expect(await emptyTrash(store, { olderThan: 30 * day, now: at })).toMatchObject({ removed: [], errors: [], bytes: 0 })
  }
  const emptied = await emptyTrash(store, { olderThan: 30 * day, now: now + 30 * day + 1 })
  expect(emptied.removed.map((entry) => entry.session)).toEqual(store.sessions)
  // Six backups of 38 bytes by name, one inode shared; two transcripts, a leftover, a subagent.
  expect(emptied.bytes).toBe(38 * 6 + 22 * 2 + 2 + 3)
  expect(readdirSync(join(store.sidecar, 'trash'))).toEqual([])
  expect(readdirSync(join(store.sidecar, 'journals'))).toEqual([])
})

test('R20: what was put in the trash in the future of a clock stays', async () => {
  const store = await sampleStore(1)
  await applyPlan(expireAll(store, 1), { now: now + 400 * day, runId: run1 })
  expect((await emptyTrash(store, { olderThan: 7 * day, now })).removed).toEqual([])
})

test('R54: emptying removes read-only files and folders, and links without following them', async (context) => {
  needs(context, 'unprivileged')
  const store = await sampleStore(1)
  const outside = makeOutside(store.root)
  const companion = join(store.root, 'projects/-home-u-p0', sessionId(0))
  symlinkSync(outside, join(companion, 'way-out'))
  mkdirSync(join(companion, 'shut/inner'), { recursive: true })
  writeFileSync(join(companion, 'shut/inner/file'), 'x', { mode: 0o444 })
  chmodSync(join(companion, 'shut/inner'), 0o500)
  chmodSync(join(companion, 'shut'), 0o500)
  giveAway(join(store.root, '..'))
  // A name that is not valid UTF-8.
  writeFileSync(Buffer.concat([Buffer.from(`${companion}/shut/`), Buffer.from([0x62, 0xff, 0x64])]), 'x')
  const outsideBefore = snapshotTree(outside)
  await asNobody(() => applyPlan(expireAll(store, 1), { now, runId: run1 }))
  const emptied = await asNobody(() => emptyTrash(store, { olderThan: 0, now: now + 1 }))
  expect(emptied.errors).toEqual([])
  expect(readdirSync(join(store.sidecar, 'trash'))).toEqual([])
  expect(snapshotTree(outside)).toEqual(outsideBefore)
})

test('promise 2: a restore overwrites nothing: what is in the way stays, its item waits in the trash, the rest comes back', async () => {
  const store = await sampleStore(1)
  await applyPlan(expireAll(store, 1), { now, runId: run1 })
  const leftover = `todos/${sessionId(0)}-agent-${sessionId(0)}.json`
  writeFileSync(join(store.root, leftover), 'newer')
  const back = await restoreFromTrash(store, run1)
  expect(back).toMatchObject({ restored: [], exitCode: 3, errors: [{ code: 'OCCUPIED', path: leftover }] })
  expect(readFileSync(join(store.root, leftover), 'utf8')).toBe('newer')
  expect(existsSync(join(store.root, `projects/-home-u-p0/${sessionId(0)}.jsonl`))).toBe(true)
  expect(readFileSync(join(store.sidecar, 'trash', run1, sessionId(0), flatName(leftover) ?? ''), 'utf8')).toBe('[]')
  rmSync(join(store.root, leftover))
  expect(await restoreFromTrash(store, run1)).toMatchObject({ restored: [sessionId(0)], errors: [], paths: [leftover] })
})

test('promise 2: backups come back into a folder that appeared at their place, beside what is in it', async () => {
  const store = await sampleStore(1)
  await applyPlan(expireAll(store, 1), { now, runId: run1 })
  const folder = join(store.root, 'file-history', sessionId(0))
  mkdirSync(folder)
  writeFileSync(join(folder, 'keep.txt'), 'theirs')
  const back = await restoreFromTrash(store, run1)
  expect(back).toMatchObject({ restored: [sessionId(0)], errors: [] })
  expect(readFileSync(join(folder, 'keep.txt'), 'utf8')).toBe('theirs')
  expect(readdirSync(folder).length).toBeGreaterThan(1)
})

test('promise 2: a backup of the same name in the way stays, and the session is not listed until it is whole', async () => {
  const store = await sampleStore(1)
  const folder = join(store.root, 'file-history', sessionId(0))
  const [name = ''] = readdirSync(folder)
  await applyPlan(expireAll(store, 1), { now, runId: run1 })
  mkdirSync(folder)
  writeFileSync(join(folder, name), 'newer')
  const transcript = join(store.root, `projects/-home-u-p0/${sessionId(0)}.jsonl`)
  const back = await restoreFromTrash(store, run1)
  expect(back).toMatchObject({ restored: [], exitCode: 3, errors: [{ code: 'OCCUPIED', path: `file-history/${sessionId(0)}/${name}` }] })
  expect(readFileSync(join(folder, name), 'utf8')).toBe('newer')
  expect(existsSync(transcript)).toBe(false)
  rmSync(join(folder, name))
  expect(await restoreFromTrash(store, run1)).toMatchObject({ restored: [sessionId(0)], errors: [] })
  expect(existsSync(transcript)).toBe(true)
})

test('R55: a restore does not go through a folder that became a link', async () => {
  const store = await sampleStore(1)
  const outside = makeOutside(store.root)
  await applyPlan(expireAll(store, 1), { now, runId: run1 })
  rmSync(join(store.root, 'file-history'), { recursive: true })
  symlinkSync(outside, join(store.root, 'file-history'))
  const outsideBefore = snapshotTree(outside)
  expect(await restoreFromTrash(store, run1)).toMatchObject({ exitCode: 3, restored: [] })
  expect(snapshotTree(outside)).toEqual(outsideBefore)
  expect(existsSync(join(store.sidecar, 'trash', run1, sessionId(0), `file-history%2F${sessionId(0)}`))).toBe(true)
})

test.each([
  ['lost', (receipt: string) => { rmSync(receipt) }],
  ['cut', (receipt: string) => { truncateSync(receipt, 40) }],
  ['empty', (receipt: string) => { truncateSync(receipt, 0) }],
])('promise 2: a receipt that is %s is made up from the journal', async (_, damage) => {
  const store = await sampleStore(2)
  const before = storeTree(store.root)
  const actions = [0, 1].map((n) => ({ ...removalOf(store.root, n), emptied: [] }) as ReturnType<typeof removalOf>)
  await applyPlan(planOf(store, actions), { now, runId: run1 })
  damage(join(store.sidecar, 'trash', run1, sessionId(0), 'receipt.json'))
  expect(listTrash(store)[0]).toMatchObject({ session: sessionId(0), trashedAt: now, receiptLost: true, reason: 'older than 30 days' })
  expect(await restoreFromTrash(store, run1)).toMatchObject({ errors: [] })
  expect(storeTree(store.root)).toEqual(before)
})

test('promise 2: without receipt and journal the places in the trash say where everything was', async () => {
  const store = await sampleStore(2)
  const before = storeTree(store.root)
  const actions = [0, 1].map((n) => ({ ...removalOf(store.root, n), emptied: [] }) as ReturnType<typeof removalOf>)
  await applyPlan(planOf(store, actions), { now, runId: run1 })
  rmSync(join(store.sidecar, 'trash', run1, sessionId(0), 'receipt.json'))
  rmSync(join(store.sidecar, 'journals'), { recursive: true })
  expect(listTrash(store)[0]).toMatchObject({ session: sessionId(0), trashedAt: now, receiptLost: true })
  expect(await restoreFromTrash(store, run1)).toMatchObject({ errors: [] })
  expect(storeTree(store.root)).toEqual(before)
})

test('R60: folder times come back to the nanosecond where the system can set them', async () => {
  const store = await sampleStore(1)
  try {
    execFileSync('touch', ['-m', '-d', '@1700000001.123456789', join(store.root, 'file-history')])
  } catch {
    return
  }
  const exact = lstatSync(join(store.root, 'file-history'), { bigint: true }).mtimeNs
  await applyPlan(expireAll(store, 1), { now, runId: run1 })
  await restoreFromTrash(store, run1, { exactTime: touchTime((file, args) => execFileSync(file, [...args])) })
  expect(lstatSync(join(store.root, 'file-history'), { bigint: true }).mtimeNs).toBe(exact)
})

test('a folder that somebody wrote to since keeps its newer time after a restore', async () => {
  const store = await sampleStore(1)
  await applyPlan(expireAll(store, 1), { now, runId: run1 })
  utimesSync(join(store.root, 'file-history'), 1_790_000_000, 1_790_000_000)
  await restoreFromTrash(store, run1)
  expect(lstatSync(join(store.root, 'file-history')).mtimeMs).toBe(1_790_000_000_000)
})

test('two runs can be put back in any order', async () => {
  for (const order of [[run1, run2], [run2, run1]]) {
    const store = await sampleStore(4)
    const before = storeTree(store.root)
    await applyPlan(planOf(store, [removalOf(store.root, 0), removalOf(store.root, 2)]), { now, runId: run1 })
    await applyPlan(planOf(store, [removalOf(store.root, 1), removalOf(store.root, 3)]), { now, runId: run2 })
    for (const run of order) expect(await restoreFromTrash(store, run)).toMatchObject({ errors: [] })
    expect(storeTree(store.root)).toEqual(before)
  }
})

test('a run or session that the trash does not hold is no match', async () => {
  const store = await sampleStore(1)
  await applyPlan(expireAll(store, 1), { now, runId: run1 })
  await expect(restoreFromTrash(store, run2)).rejects.toThrow(NoMatchError)
  await expect(restoreFromTrash(store, '../..')).rejects.toThrow(NoMatchError)
  await expect(restoreFromTrash(store, run1, { session: sessionId(9) })).rejects.toThrow(NoMatchError)
})
