import { appendFileSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { FileActs } from '../../src/plan/file-acts.js'
import { applyPlan } from '../../src/plan/apply.js'
import { writePlan } from '../../src/plan/plan-file.js'
import { restoreFromTrash } from '../../src/plan/restore.js'
import { listTrash } from '../../src/plan/trash.js'
import { temporaryFolder } from '../helpers/temp.js'
import { snapshotTree } from '../helpers/tree.js'
import { buildCore, runChild } from '../plan/child.js'
import { exists, expireAll, filesOf, hash, makeOutside, now, run1, run2, sampleStore, sessionId, slugOf, storeTree } from '../plan/sample.js'

const transcript = (n: number): string => `projects/${slugOf(n)}/${sessionId(n)}.jsonl`

let core: string
beforeAll(async () => {
  core = buildCore(await temporaryFolder(afterAll))
})

/** Swaps a folder for a link to another one. */
function swap(folder: string, target: string): void {
  renameSync(folder, `${folder}.swapped`)
  symlinkSync(target, folder)
}

test.each([
  ['a project folder', `projects/${slugOf(0)}`],
  ['projects itself', 'projects'],
  ['file-history itself', 'file-history'],
  ['the backups of the session', `file-history/${sessionId(0)}`],
])('promise 3, R55: %s swapped for a link between plan and act: nothing outside is touched, the session stays', async (_, folder) => {
  for (const noTrash of [false, true]) {
    const store = await sampleStore(1)
    const outside = makeOutside(store.root)
    for (const path of [`${sessionId(0)}.jsonl`, `${slugOf(0)}/${sessionId(0)}.jsonl`, `${sessionId(0)}/x`, `${hash(0)}@v1`]) {
      mkdirSync(join(outside, path, '..'), { recursive: true })
      if (!exists(join(outside, path))) writeFileSync(join(outside, path), 'not ours')
    }
    const plan = expireAll(store, 1)
    const files = filesOf(store.root)
    swap(join(store.root, folder), outside)
    const before = snapshotTree(outside)
    const result = await applyPlan(plan, { now, runId: run1, noTrash })
    expect(result.done).toEqual([])
    expect(result.errors.length + result.kept.length).toBe(1)
    expect(snapshotTree(outside)).toEqual(before)
    rmSync(store.sidecar, { recursive: true })
    expect(filesOf(store.root)).toEqual(files)
  }
})

test('promise 3: a folder swapped for a link amid the session: what was moved is put back, nothing outside is touched', async () => {
  const store = await sampleStore(1)
  const outside = makeOutside(store.root)
  writeFileSync(join(outside, `${sessionId(0)}.jsonl`), 'not ours')
  const before = snapshotTree(outside)
  const files = filesOf(store.root)
  let swapped = false
  const rename = (from: string, to: string): void => {
    renameSync(from, to)
    if (swapped) return
    swapped = true
    swap(join(store.root, 'projects', slugOf(0)), outside)
  }
  const result = await applyPlan(expireAll(store, 1), { now, runId: run1, faults: { rename } })
  expect(result).toMatchObject({ done: [], exitCode: 3, errors: [{ code: 'FENCE' }] })
  expect(snapshotTree(outside)).toEqual(before)
  expect(listTrash(store)).toEqual([])
  rmSync(store.sidecar, { recursive: true })
  expect(filesOf(store.root)).toEqual(files)
})

test('promise 3: another file slipped in between the last look and the rename is put back', async () => {
  const store = await sampleStore(1)
  const path = join(store.root, transcript(0))
  const rename = (from: string, to: string): void => {
    if (from === path && exists(path) && !exists(`${path}.theirs`)) {
      renameSync(path, `${path}.theirs`)
      writeFileSync(path, 'another file')
    }
    renameSync(from, to)
  }
  const result = await applyPlan(expireAll(store, 1), { now, runId: run1, faults: { rename } })
  expect(result).toMatchObject({ done: [], exitCode: 3, errors: [{ code: 'FENCE' }] })
  expect(exists(path)).toBe(true)
  expect(readdirSync(join(store.root, 'file-history', sessionId(0)))).toHaveLength(3)
})

test('an appender that writes to the transcript amid the session keeps the whole session', async () => {
  const store = await sampleStore(2)
  const before = storeTree(store.root)
  const rename: FileActs['rename'] = (from, to) => {
    if (from.endsWith(`file-history/${sessionId(0)}`)) appendFileSync(join(store.root, transcript(0)), '{"type":"user"}\n')
    renameSync(from, to)
  }
  const result = await applyPlan(expireAll(store, 2), { now, runId: run1, faults: { rename } })
  expect(result).toMatchObject({ exitCode: 0, errors: [], kept: [{ session: sessionId(0) }] })
  expect(result.done.map((item) => item.session)).toEqual([sessionId(1)])
  await restoreFromTrash(store, run1)
  expect(Object.keys(storeTree(store.root))).toEqual(Object.keys(before))
})

test('R105: another housekeeper that removes a transcript in the moment of the act is no error', async () => {
  const store = await sampleStore(1)
  const rename: FileActs['rename'] = (from, to) => {
    if (from.endsWith(transcript(0))) rmSync(from)
    renameSync(from, to)
  }
  expect(await applyPlan(expireAll(store, 1), { now, runId: run1, faults: { rename } })).toMatchObject({ exitCode: 0, errors: [] })
  expect(exists(join(store.root, transcript(0)))).toBe(false)
})

/** One whole run as a command does it: lock, recover, apply. */
const whole = `
  import { applyPlan } from './plan/apply.js'
  import { readPlan } from './plan/plan-file.js'
  import { recoverRuns } from './plan/recover.js'
  import { lockStore } from './plan/sidecar.js'
  const [file, runId, now, token] = process.argv.slice(-4)
  const processes = {
    processExists: (pid) => { try { process.kill(pid, 0); return true } catch { return false } },
    processStart: () => undefined,
  }
  const plan = readPlan(file)
  const lock = await lockStore(plan, { pid: process.pid, host: 'here', command: 'expire', now: Number(now), token, waitMs: 60_000, processes })
  await recoverRuns(plan, { now: Number(now) })
  const result = await applyPlan(plan, { now: Number(now), runId })
  lock.release()
  console.log(JSON.stringify({ done: result.done.filter((item) => !item.reason.includes('gone already')).map((item) => item.session), errors: result.errors }))
  process.exitCode = result.exitCode
`

test('promise 6, R105: two runs at once end like one: together they did the plan once, without an error', async () => {
  const sessions = 200
  const store = await sampleStore(sessions)
  const before = storeTree(store.root)
  const file = join(await temporaryFolder(), 'plan.json')
  writePlan(file, expireAll(store, sessions), 'a1')
  const ends = await Promise.all([
    runChild(core, whole, [file, run1, String(now), 'aa']),
    runChild(core, whole, [file, run2, String(now), 'bb']),
  ])
  for (const end of ends) expect(end).toMatchObject({ code: 0, stderr: '' })
  const done = ends.flatMap((end) => (JSON.parse(end.stdout) as { done: string[] }).done)
  expect(done.sort()).toEqual(store.sessions)
  expect(Object.values(storeTree(store.root)).filter((node) => node.type === 'file')).toEqual([])
  for (const run of new Set(listTrash(store).map((entry) => entry.runId))) await restoreFromTrash(store, run)
  expect(storeTree(store.root)).toEqual(before)
}, 120_000)

test('R105: two runs at once even without the lock lose nothing and end without an error', async () => {
  const sessions = 100
  const store = await sampleStore(sessions)
  const before = storeTree(store.root)
  const file = join(await temporaryFolder(), 'plan.json')
  writePlan(file, expireAll(store, sessions), 'a1')
  const unlocked = whole.replace(/const lock = .*\n/, '').replace('await recoverRuns', 'void recoverRuns; //').replace('lock.release()', '')
  const ends = await Promise.all([
    runChild(core, unlocked, [file, run1, String(now), 'aa']),
    runChild(core, unlocked, [file, run2, String(now), 'bb']),
  ])
  for (const end of ends) expect(end).toMatchObject({ code: 0, stderr: '' })
  for (const run of new Set(listTrash(store).map((entry) => entry.runId))) await restoreFromTrash(store, run)
  expect(Object.keys(storeTree(store.root))).toEqual(Object.keys(before))
}, 120_000)
