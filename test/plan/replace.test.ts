import { appendFileSync, chmodSync, existsSync, linkSync, lstatSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { identityOf, statusOf } from '../../src/fs/identity.js'
import type { RemoveAction, ReplaceAction } from '../../src/plan/action.js'
import { applyPlan } from '../../src/plan/apply.js'
import { planItem } from '../../src/plan/planned-item.js'
import { recoverRuns } from '../../src/plan/recover.js'
import { restoreFromTrash } from '../../src/plan/restore.js'
import { parsePlan } from '../../src/plan/schema.js'
import type { StorePlace } from '../../src/plan/sidecar.js'
import { stagingPath } from '../../src/plan/sidecar.js'
import { writeStoreFile } from '../helpers/store.js'
import { day, hash, now, planOf, run1, sampleStore, sessionId, settleFolders, storeTree } from './sample.js'

const shared = 'history.jsonl'

async function storeWithShared(): Promise<StorePlace> {
  const store = await sampleStore(1)
  writeStoreFile(store.root, shared, 'one\ntwo\n', { mode: 0o640, mtime: now - day })
  settleFolders(store.root)
  return store
}

/** Stages bytes for a path; what stands at the path becomes `old`. */
function replacement(store: StorePlace, path: string, bytes: string, extra: Partial<ReplaceAction> = {}): ReplaceAction {
  const staged = stagingPath(store, 'new')
  writeFileSync(staged, bytes)
  const status = statusOf(staged)
  const old = planItem(store.root, { kind: 'leftover', path })?.item
  if (status === undefined) throw new Error('not staged')
  return { kind: 'replace', path, reason: 'purge', bytes: 4, staged: 'new', stagedIdentity: identityOf(status), ...(old === undefined ? {} : { old }), ...extra }
}

const read = (store: StorePlace, path: string): string => readFileSync(join(store.root, path), 'utf8')

test('promise 2: the new file takes the place and mode of the old one, which comes back from the trash exactly', async () => {
  const store = await storeWithShared()
  const before = storeTree(store.root)
  const result = await applyPlan(planOf(store, [replacement(store, shared, 'one\n')]), { now, runId: run1 })
  expect(result).toMatchObject({ exitCode: 0, errors: [], kept: [] })
  expect(read(store, shared)).toBe('one\n')
  expect(lstatSync(join(store.root, shared)).mode & 0o7777).toBe(0o640)
  expect(readdirSync(join(store.sidecar, 'staging'))).toEqual([])
  expect(await restoreFromTrash(store, run1)).toMatchObject({ restored: [shared], errors: [] })
  expect(storeTree(store.root)).toEqual(before)
})

test('R67: a file with other names is replaced by a new inode; the other names keep bytes, mode and time', async () => {
  const store = await storeWithShared()
  linkSync(join(store.root, shared), join(store.root, 'other-name'))
  settleFolders(store.root)
  const { ino, mtimeMs, mode } = lstatSync(join(store.root, 'other-name'))
  await applyPlan(planOf(store, [replacement(store, shared, 'one\n')]), { now, runId: run1 })
  expect(lstatSync(join(store.root, 'other-name'))).toMatchObject({ ino, mtimeMs, mode })
  expect(read(store, 'other-name')).toBe('one\ntwo\n')
  expect(lstatSync(join(store.root, shared)).ino).not.toBe(ino)
})

test('what was written to the old file since the plan keeps it, untouched', async () => {
  const store = await storeWithShared()
  const action = replacement(store, shared, 'one\n')
  appendFileSync(join(store.root, shared), 'three\n')
  const result = await applyPlan(planOf(store, [action]), { now, runId: run1 })
  expect(result).toMatchObject({ exitCode: 0, done: [], kept: [{ session: shared }] })
  expect(read(store, shared)).toBe('one\ntwo\nthree\n')
})

test('a line appended in the very moment of the swap is carried over to the new file', async () => {
  const store = await storeWithShared()
  const action = replacement(store, shared, 'one\n', { appendOnly: true })
  const path = join(store.root, shared)
  const rename = (from: string, to: string): void => {
    if (to === path) appendFileSync(path, 'three\n')
    renameSync(from, to)
  }
  expect(await applyPlan(planOf(store, [action]), { now, runId: run1, faults: { rename } })).toMatchObject({ exitCode: 0, errors: [] })
  expect(read(store, shared)).toBe('one\nthree\n')
})

test('without appendOnly a write in the very moment of the swap brings the old file back', async () => {
  const store = await storeWithShared()
  const path = join(store.root, shared)
  const action = replacement(store, shared, 'one\n')
  let written = false
  const rename = (from: string, to: string): void => {
    if (to === path && !written) appendFileSync(path, 'three\n')
    written = true
    renameSync(from, to)
  }
  expect(await applyPlan(planOf(store, [action]), { now, runId: run1, faults: { rename } })).toMatchObject({ kept: [{ session: shared }], errors: [] })
  expect(read(store, shared)).toBe('one\ntwo\nthree\n')
})

test('a lost backup is published where nothing was, with its folder; restore takes both away again', async () => {
  const store = await sampleStore(1)
  rmSync(join(store.root, 'file-history', sessionId(0)), { recursive: true })
  settleFolders(store.root)
  const before = storeTree(store.root)
  const path = `file-history/${sessionId(0)}/${hash(0)}@v1`
  const action = replacement(store, path, 'rebuilt', { session: sessionId(0) })
  expect(await applyPlan(planOf(store, [action]), { now, runId: run1 })).toMatchObject({ exitCode: 0, errors: [] })
  expect(read(store, path)).toBe('rebuilt')
  expect(await restoreFromTrash(store, run1)).toMatchObject({ errors: [] })
  expect(storeTree(store.root)).toEqual(before)
})

test('promise 2: something that appeared where nothing was is not overwritten', async () => {
  const store = await sampleStore(1)
  const path = `file-history/${sessionId(0)}/${hash(7)}@v1`
  const action = replacement(store, path, 'rebuilt', { session: sessionId(0) })
  writeStoreFile(store.root, path, 'theirs')
  expect(await applyPlan(planOf(store, [action]), { now, runId: run1 })).toMatchObject({ done: [], kept: [{ session: sessionId(0) }] })
  expect(read(store, path)).toBe('theirs')
})

test('promise 2: a restore does not overwrite a new file that was written to since', async () => {
  const store = await storeWithShared()
  await applyPlan(planOf(store, [replacement(store, shared, 'one\n')]), { now, runId: run1 })
  appendFileSync(join(store.root, shared), 'four\n')
  expect(await restoreFromTrash(store, run1)).toMatchObject({ exitCode: 3, restored: [], errors: [{ code: 'FENCE' }] })
  expect(read(store, shared)).toBe('one\nfour\n')
  expect(readFileSync(join(store.sidecar, 'trash', run1, 'history%2Ejsonl', 'files', shared), 'utf8')).toBe('one\ntwo\n')
})

test('a staged file that is not the one of the plan is not published', async () => {
  const store = await storeWithShared()
  const action = replacement(store, shared, 'one\n')
  appendFileSync(join(store.sidecar, 'staging', 'new'), 'x')
  expect(await applyPlan(planOf(store, [action]), { now, runId: run1 })).toMatchObject({ done: [], kept: [{ session: shared }] })
  expect(read(store, shared)).toBe('one\ntwo\n')
})

test('a file beside the root is replaced and comes back', async () => {
  const store = await sampleStore(1)
  const beside = join(store.root, '..', '.claude.json')
  writeFileSync(beside, '{"projects":{}}')
  chmodSync(beside, 0o600)
  const status = statusOf(beside)
  if (status === undefined) throw new Error('not there')
  const old = { path: '.claude.json', kind: 'leftover' as const, type: 'file' as const, mode: 0o600, identity: identityOf(status) }
  const action = replacement(store, '.claude.json', '{}', { old, beside: true })
  expect(await applyPlan(planOf(store, [action]), { now, runId: run1 })).toMatchObject({ exitCode: 0, errors: [], kept: [] })
  expect(readFileSync(beside, 'utf8')).toBe('{}')
  expect(await restoreFromTrash(store, run1)).toMatchObject({ errors: [] })
  expect(readFileSync(beside, 'utf8')).toBe('{"projects":{}}')
})

test.each(['before', 'after'])('promise 6: a run that died just %s the swap is settled by what stands at the path', async (when) => {
  const store = await storeWithShared()
  const before = storeTree(store.root)
  const path = join(store.root, shared)
  const action = replacement(store, shared, 'one\n')
  const rename = (from: string, to: string): void => {
    if (to === path && when === 'before') throw new Error('died')
    if (from.endsWith('.part')) throw new Error('died')
    renameSync(from, to)
  }
  // The undoing of a living run dies with it.
  const unlink = (): void => { throw new Error('died') }
  await applyPlan(planOf(store, [action]), { now, runId: run1, faults: { rename, unlink } })
  expect(existsSync(join(store.sidecar, 'trash', run1, 'history%2Ejsonl.part'))).toBe(true)
  const [run] = await recoverRuns(store, { now })
  expect(run).toMatchObject(when === 'before' ? { rolledBack: [shared], errors: [] } : { completed: [shared], errors: [] })
  expect(read(store, shared)).toBe(when === 'before' ? 'one\ntwo\n' : 'one\n')
  if (when === 'after') await restoreFromTrash(store, run1)
  expect(storeTree(store.root)).toEqual(before)
})

/** Removal of one backup of the sample session, which waits for `needs`. */
function waitingRemoval(store: StorePlace, needs: readonly string[]): RemoveAction {
  const path = `file-history/${sessionId(0)}/${hash(0)}@v1`
  const item = planItem(store.root, { kind: 'backups', path })?.item
  if (item === undefined) throw new Error('no backup there')
  return { kind: 'trash-backups', session: sessionId(0), reason: 'cap', bytes: 1, items: [item], needs }
}

function carried(store: StorePlace, path: string, text: string, extra: Partial<ReplaceAction> = {}): ReplaceAction {
  const old = planItem(store.root, { kind: 'leftover', path })?.item
  return { kind: 'replace', path, reason: 'cap', bytes: 0, content: Buffer.from(text).toString('base64'), ...(old === undefined ? {} : { old }), ...extra }
}

test('a plan that carries the new file itself publishes it through a file, and nothing of it is left aside', async () => {
  const store = await storeWithShared()
  const plan = parsePlan(JSON.parse(JSON.stringify(planOf(store, [carried(store, shared, 'one\n')]))), 'plan')
  expect(await applyPlan(plan, { now, runId: run1 })).toMatchObject({ exitCode: 0, errors: [], kept: [] })
  expect(read(store, shared)).toBe('one\n')
  expect(lstatSync(join(store.root, shared)).mode & 0o7777).toBe(0o640)
  expect(readdirSync(join(store.sidecar, 'staging'))).toEqual([])
  expect(await restoreFromTrash(store, run1)).toMatchObject({ restored: [shared], errors: [] })
  expect(read(store, shared)).toBe('one\ntwo\n')
})

test('the journal does not repeat the bytes that a plan carries', async () => {
  const store = await storeWithShared()
  await applyPlan(planOf(store, [carried(store, shared, 'one secret word\n')]), { now, runId: run1 })
  expect(readFileSync(join(store.sidecar, 'journals', `${run1}.jsonl`), 'utf8')).not.toContain(Buffer.from('one secret word\n').toString('base64'))
})

test('promise 4: a backup that waits for a rewritten file goes only when that file is in its place', async () => {
  const store = await storeWithShared()
  const removal = waitingRemoval(store, [shared])
  const late = carried(store, shared, 'one\n')
  appendFileSync(join(store.root, shared), 'three\n')
  const refused = await applyPlan(planOf(store, [late, removal]), { now, runId: run1 })
  expect(refused).toMatchObject({ done: [], kept: [{ session: shared }, { session: sessionId(0), reason: `${shared} is not the file that this run was to put there` }] })
  expect(existsSync(join(store.root, removal.items[0]?.path ?? ''))).toBe(true)

  const done = await applyPlan(planOf(store, [carried(store, shared, 'one\n'), removal]), { now, runId: `${run1}2` })
  expect(done).toMatchObject({ exitCode: 0, kept: [] })
  expect(existsSync(join(store.root, removal.items[0]?.path ?? ''))).toBe(false)
})
