import { appendFileSync, chmodSync, linkSync, lstatSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { applyPlan } from '../../src/plan/apply.js'
import { planItem } from '../../src/plan/planned-item.js'
import { restoreFromTrash } from '../../src/plan/restore.js'
import { listTrash } from '../../src/plan/trash.js'
import { writeStoreFile } from '../helpers/store.js'
import { sameTree, snapshotTree } from '../helpers/tree.js'
import { asNobody, giveAway, needs } from '../helpers/unprivileged.js'
import { backup, capOf, day, exists, expireAll, hash, makeOutside, now, planOf, removalOf, run1, run2, sampleStore, sessionId, settleFolders, storeTree } from './sample.js'

test('promise 2, R60: trash and restore give back the same tree: bytes, modes, times, links, folders that were removed', async () => {
  const store = await sampleStore(6)
  const before = storeTree(store.root)
  const result = await applyPlan(expireAll(store, 6), { now, runId: run1 })
  expect(result).toMatchObject({ errors: [], kept: [], exitCode: 0 })
  expect(result.done.map((item) => item.session)).toEqual(store.sessions)
  expect(readdirSync(join(store.root, 'projects'))).toEqual([])
  expect(readdirSync(join(store.root, 'file-history'))).toEqual([])
  const back = await restoreFromTrash(store, run1)
  expect(back).toMatchObject({ errors: [], exitCode: 0 })
  expect([...back.restored].sort()).toEqual(store.sessions)
  expect(storeTree(store.root)).toEqual(before)
  expect(listTrash(store)).toEqual([])
})

test('promise 2: one session of a run comes back alone, into a project folder that is made again as it was', async () => {
  const store = await sampleStore(4)
  const before = storeTree(store.root)
  await applyPlan(expireAll(store, 4), { now, runId: run1 })
  await restoreFromTrash(store, run1, { session: sessionId(1) })
  const alone = storeTree(store.root)
  const own = Object.keys(before).filter((path) => path.includes(sessionId(1)))
  expect(own.length).toBeGreaterThan(4)
  for (const path of own) expect({ ...alone[path], nlink: 0, inode: '' }).toEqual({ ...before[path], nlink: 0, inode: '' })
  expect(alone[`projects/-home-u-p1`]).toEqual({ ...before['projects/-home-u-p1'], nlink: 2 })
  await restoreFromTrash(store, run1)
  expect(storeTree(store.root)).toEqual(before)
})

test('promise 2: the transcript is moved last and put back last', async () => {
  const store = await sampleStore(1)
  const moved: string[] = []
  const plan = expireAll(store, 1)
  const spy = (from: string, to: string): void => {
    moved.push(from.slice(store.root.length + 1))
    renameSync(from, to)
  }
  await applyPlan(plan, { now, runId: run1, faults: { rename: spy } })
  expect(moved.filter((path) => !path.startsWith('.rewind-admin'))).toEqual([
    `file-history/${sessionId(0)}`,
    `todos/${sessionId(0)}-agent-${sessionId(0)}.json`,
    `projects/-home-u-p0/${sessionId(0)}`,
    `projects/-home-u-p0/${sessionId(0)}.jsonl`,
  ])
  const back: string[] = []
  const link = (from: string, to: string): void => {
    back.push(to)
    linkSync(from, to)
  }
  await restoreFromTrash(store, run1, { faults: { link } })
  expect(back.at(-1)).toBe(join(store.root, `projects/-home-u-p0/${sessionId(0)}.jsonl`))
})

test('promise 2: an action for single backups takes those and nothing else, and the folder keeps its time', async () => {
  const store = await sampleStore(2)
  const before = storeTree(store.root)
  const result = await applyPlan(planOf(store, [capOf(store.root, 0), capOf(store.root, 1)]), { now, runId: run1 })
  expect(result).toMatchObject({ exitCode: 0, errors: [], kept: [] })
  const gone = [0, 1].map((n) => `file-history/${sessionId(n)}/${hash(n)}@v2`)
  const expected = Object.fromEntries(Object.entries(before).filter(([path]) => !gone.includes(path)))
  expect(storeTree(store.root)).toEqual(expected)
  await restoreFromTrash(store, run1)
  expect(storeTree(store.root)).toEqual(before)
})

test('R14, R15: a folder with foreign content or memory stays, with all that is foreign in it', async () => {
  const store = await sampleStore(1)
  writeStoreFile(store.root, 'projects/-home-u-p0/memory/MEMORY.md', 'remember', { mtime: now - 400 * day })
  writeStoreFile(store.root, 'file-history/README', 'mine', { mtime: now - 400 * day })
  settleFolders(store.root)
  const before = storeTree(store.root)
  await applyPlan(expireAll(store, 1), { now, runId: run1 })
  expect(readFileSync(join(store.root, 'projects/-home-u-p0/memory/MEMORY.md'), 'utf8')).toBe('remember')
  expect(readdirSync(join(store.root, 'projects/-home-u-p0'))).toEqual(['memory'])
  expect(readdirSync(join(store.root, 'file-history'))).toEqual(['README'])
  expect(storeTree(store.root)['projects/-home-u-p0']?.mtime).toBe(before['projects/-home-u-p0']?.mtime)
  await restoreFromTrash(store, run1)
  expect(storeTree(store.root)).toEqual(before)
})

test('promise 3: a path that leaves the root is refused and nothing of its session moves', async () => {
  const store = await sampleStore(1)
  const outside = makeOutside(store.root)
  const before = storeTree(store.root)
  const outsideBefore = snapshotTree(outside)
  const action = removalOf(store.root, 0)
  if (action === undefined) throw new Error('no session')
  for (const path of ['../outside/secret', '/etc/hostname', 'projects/../../outside/secret', 'projects//x', '..\\outside', 'a\0b']) {
    const bad = { ...action, items: [...action.items, { ...action.items[0], path, kind: 'leftover' } as (typeof action.items)[number]] }
    const result = await applyPlan(planOf(store, [bad]), { now, runId: run1 }).catch((error: unknown) => error)
    expect(result).toMatchObject({ exitCode: 3 })
    expect(storeTree(store.root)).toEqual(before)
    sameTree(outside, outsideBefore)
    rmSync(store.sidecar, { recursive: true, force: true })
    settleFolders(store.root)
  }
})

test('R55: links in a store are moved as links and what they point to is not touched', async () => {
  const store = await sampleStore(1)
  const outside = makeOutside(store.root)
  rmSync(join(store.root, 'file-history', sessionId(0)), { recursive: true })
  symlinkSync(outside, join(store.root, 'file-history', sessionId(0)))
  settleFolders(store.root)
  const outsideBefore = snapshotTree(outside)
  const before = storeTree(store.root)
  for (const noTrash of [false, true]) {
    const result = await applyPlan(expireAll(store, 1), { now, runId: run1, noTrash })
    expect(result).toMatchObject({ exitCode: 0, errors: [] })
    expect(exists(join(store.root, 'file-history', sessionId(0)))).toBe(false)
    sameTree(outside, outsideBefore)
    if (noTrash) continue
    await restoreFromTrash(store, run1)
    expect(storeTree(store.root)).toEqual(before)
  }
})

test('promise 3: what changed, grew or was replaced since the plan is kept whole, with the reason', async () => {
  const changes: [string, (root: string) => void][] = [
    ['transcript grew', (root) => { appendFileSync(join(root, `projects/-home-u-p0/${sessionId(0)}.jsonl`), '{}\n') }],
    ['a backup came', (root) => { writeStoreFile(root, `file-history/${sessionId(0)}/${hash(0)}@v4`, 'new') }],
    ['subagent wrote', (root) => { appendFileSync(join(root, `projects/-home-u-p0/${sessionId(0)}/subagents/agent-1.jsonl`), '{}\n') }],
    ['replaced', (root) => {
      const path = join(root, `projects/-home-u-p0/${sessionId(0)}.jsonl`)
      const bytes = readFileSync(path)
      renameSync(path, `${path}.old`)
      writeFileSync(path, bytes)
      rmSync(`${path}.old`)
    }],
    ['became a folder', (root) => {
      const path = join(root, `todos/${sessionId(0)}-agent-${sessionId(0)}.json`)
      rmSync(path)
      mkdirSync(path)
    }],
  ]
  for (const [name, change] of changes) {
    const store = await sampleStore(2)
    const plan = expireAll(store, 2)
    change(store.root)
    const before = storeTree(store.root)
    const result = await applyPlan(plan, { now, runId: run1 })
    expect(result.kept.map((item) => item.session), name).toEqual([sessionId(0)])
    expect(result.kept[0]?.reason, name).toMatch(/since the plan|no longer/)
    expect(result.done.map((item) => item.session), name).toEqual([sessionId(1)])
    expect(result.exitCode, name).toBe(0)
    const after = storeTree(store.root)
    for (const path of Object.keys(before).filter((path) => path.includes(sessionId(0)))) expect(after[path], name).toBeDefined()
  }
})

test('promise 4: backups whose transcript was written to since the plan stay', async () => {
  const store = await sampleStore(1)
  const plan = planOf(store, [capOf(store.root, 0)])
  appendFileSync(join(store.root, `projects/-home-u-p0/${sessionId(0)}.jsonl`), '{}\n')
  const result = await applyPlan(plan, { now, runId: run1 })
  expect(result).toMatchObject({ done: [], exitCode: 0, kept: [{ session: sessionId(0) }] })
  expect(exists(backup(store.root, 0, 2))).toBe(true)
})

test('promise 4: a session that becomes live between plan and act is kept, even just before its transcript', async () => {
  const store = await sampleStore(2)
  const before = storeTree(store.root)
  const never = await applyPlan(expireAll(store, 2), { now, runId: run1, stillAllowed: (session) => (session === sessionId(0) ? 'it is live' : true) })
  expect(never.kept).toEqual([{ session: sessionId(0), reason: 'it is live' }])
  await restoreFromTrash(store, run1)
  let asked = 0
  const late = await applyPlan(expireAll(store, 1), { now, runId: run2, stillAllowed: () => ((asked += 1) > 1 ? 'it is live' : true) })
  expect(asked).toBe(2)
  expect(late).toMatchObject({ done: [], kept: [{ session: sessionId(0), reason: 'it is live' }], exitCode: 0 })
  expect(storeTree(store.root)).toEqual(before)
})

test('R105: what is gone already counts as done, whole sessions and parts of one', async () => {
  const store = await sampleStore(2)
  const plan = expireAll(store, 2)
  rmSync(join(store.root, `todos/${sessionId(0)}-agent-${sessionId(0)}.json`))
  for (const path of [`projects/-home-u-p1/${sessionId(1)}.jsonl`, `file-history/${sessionId(1)}`]) rmSync(join(store.root, path), { recursive: true })
  const result = await applyPlan(plan, { now, runId: run1 })
  expect(result).toMatchObject({ exitCode: 0, errors: [], kept: [] })
  expect(result.done.map((item) => [item.session, item.reason.includes('gone already')])).toEqual([
    [sessionId(0), false],
    [sessionId(1), true],
  ])
  expect(listTrash(store).map((entry) => entry.session)).toEqual([sessionId(0)])
})

test('R68: freed bytes are those of inodes whose last name goes', async () => {
  const store = await sampleStore(2)
  // Version 1 of session 0 is linked into session 1: 38 bytes each backup; transcripts 22, leftover 2, subagent 3.
  const first = await applyPlan(planOf(store, [removalOf(store.root, 0)]), { now, runId: run1 })
  expect(first.bytes).toBe(38 * 2 + 22 + 2 + 3)
  await restoreFromTrash(store, run1)
  const both = await applyPlan(expireAll(store, 2), { now, runId: run2 })
  expect(both.bytes).toBe(38 * 6 + 22 * 2 + 2 + 3)
})

test('R67: removing a session does not change a mode or time of another one that shares its inodes', async () => {
  const store = await sampleStore(2)
  const shared = join(store.root, 'file-history', sessionId(1), `${hash(0)}@v1`)
  const { mode, mtimeMs, ino } = lstatSync(shared)
  await applyPlan(planOf(store, [removalOf(store.root, 0)]), { now, runId: run1, noTrash: true })
  expect(lstatSync(shared)).toMatchObject({ mode, mtimeMs, ino, nlink: 1 })
})

test('promise 10, R54: sidecar, trash and receipts are private, and nothing in them is wider than its source', async () => {
  const store = await sampleStore(3)
  const modes = new Map(Object.entries(storeTree(store.root)).flatMap(([, node]) => (node.sha256 === undefined ? [] : [[node.sha256, node.mode]])))
  const umask = process.umask(0)
  try {
    await applyPlan(expireAll(store, 3), { now, runId: run1 })
  } finally {
    process.umask(umask)
  }
  for (const [path, node] of Object.entries(snapshotTree(store.sidecar))) {
    const source = modes.get(node.sha256 ?? '')
    if (source !== undefined) expect(node.mode, path).toBe(source)
    else if (!path.includes(`files/`) || node.type === 'folder') expect(node.mode, path).toBe(node.type === 'folder' ? '700' : '600')
  }
})

test('R54: folders without write permission and files of every mode go to the trash, come back and can be removed for good', async (context) => {
  needs(context, 'unprivileged')
  const store = await sampleStore(1)
  for (const [index, mode] of [0o600, 0o755, 0o444, 0o000, 0o4755].entries()) {
    writeStoreFile(store.root, `file-history/${sessionId(0)}/${hash(90 + index)}@v1`, 'x', { mode, mtime: now })
  }
  settleFolders(store.root)
  chmodSync(join(store.root, 'file-history', sessionId(0)), 0o500)
  giveAway(join(store.root, '..'))
  const before = storeTree(store.root)
  const plan = await asNobody(() => expireAll(store, 1))
  expect(await asNobody(() => applyPlan(plan, { now, runId: run1 }))).toMatchObject({ exitCode: 0, errors: [] })
  expect(await asNobody(() => restoreFromTrash(store, run1))).toMatchObject({ errors: [] })
  expect(storeTree(store.root)).toEqual(before)
  expect(await asNobody(() => applyPlan(plan, { now, runId: run2, noTrash: true }))).toMatchObject({ exitCode: 0, errors: [] })
  expect(exists(join(store.root, 'file-history', sessionId(0)))).toBe(false)
  expect(readdirSync(join(store.sidecar, 'trash'))).toEqual([])
})

test('a privileged user who works on the store of another one leaves the sidecar to that one', async (context) => {
  needs(context, 'unprivileged')
  const store = await sampleStore(1)
  giveAway(join(store.root, '..'))
  await applyPlan(expireAll(store, 1), { now, runId: run1 })
  const owner = lstatSync(store.root).uid
  for (const path of Object.keys(snapshotTree(store.sidecar))) expect(lstatSync(join(store.sidecar, path)).uid, path).toBe(owner)
  expect(await asNobody(() => restoreFromTrash(store, run1))).toMatchObject({ errors: [] })
})

test('--no-trash removes for good and leaves nothing in the trash', async () => {
  const store = await sampleStore(4)
  const result = await applyPlan(expireAll(store, 4), { now, runId: run1, noTrash: true })
  expect(result).toMatchObject({ exitCode: 0, errors: [] })
  expect(readdirSync(join(store.sidecar, 'trash'))).toEqual([])
  expect(Object.values(storeTree(store.root)).filter((node) => node.type === 'file')).toEqual([])
  // Twelve backups of their own and two that are linked twice; four transcripts, two leftovers, two subagents.
  expect(result.bytes).toBe(38 * 12 + 22 * 4 + 2 * 2 + 3 * 2)
})

test('a plan of nothing makes no sidecar', async () => {
  const store = await sampleStore(1)
  const before = snapshotTree(store.root)
  expect(await applyPlan(planOf(store, []), { now, runId: run1 })).toMatchObject({ exitCode: 0, done: [] })
  sameTree(store.root, before)
})

test('SIGTERM ends the run after the session in work, with exit code 143; SIGINT with 130', async () => {
  for (const [reason, exitCode] of [['SIGTERM', 143], ['SIGINT', 130]] as const) {
    const store = await sampleStore(4)
    const stop = new AbortController()
    const result = await applyPlan(expireAll(store, 4), {
      now,
      runId: run1,
      signal: stop.signal,
      onItem: ({ index }) => { if (index === 1) stop.abort(reason) },
    })
    expect(result).toMatchObject({ interrupted: true, exitCode })
    expect(result.done.map((item) => item.session)).toEqual([sessionId(0), sessionId(1)])
    expect(exists(join(store.root, `projects/-home-u-p2/${sessionId(2)}.jsonl`))).toBe(true)
    await restoreFromTrash(store, run1)
  }
})

test('the same session in two actions of one plan gets two places in the trash', async () => {
  const store = await sampleStore(1)
  const before = storeTree(store.root)
  const other = planItem(store.root, { kind: 'backups', path: `file-history/${sessionId(0)}/${hash(0)}@v3` })
  if (other === undefined) throw new Error('no backup')
  const second = { kind: 'trash-backups' as const, session: sessionId(0), reason: 'x', bytes: 1, items: [other.item] }
  const result = await applyPlan(planOf(store, [capOf(store.root, 0), second]), { now, runId: run1 })
  expect(result).toMatchObject({ exitCode: 0, errors: [], kept: [] })
  expect(listTrash(store)).toHaveLength(2)
  await restoreFromTrash(store, run1)
  expect(storeTree(store.root)).toEqual(before)
})
