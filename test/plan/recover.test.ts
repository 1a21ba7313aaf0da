import { appendFileSync, linkSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { applyPlan } from '../../src/plan/apply.js'
import { recoverRuns } from '../../src/plan/recover.js'
import { restoreFromTrash } from '../../src/plan/restore.js'
import { flatName } from '../../src/plan/slot.js'
import { listTrash } from '../../src/plan/trash.js'
import { stagingPath, type StorePlace } from '../../src/plan/sidecar.js'
import { NewerFormatError } from '../../src/model/errors.js'
import { writeStoreFile } from '../helpers/store.js'
import { capOf, exists, expireAll, now, planOf, run1, run2, sampleStore, sessionId, slugOf, storeTree } from './sample.js'

const transcript = (n: number): string => `projects/${slugOf(n)}/${sessionId(n)}.jsonl`

/**
 * A run over the first session that stopped before its transcript was moved: made from a whole run by undoing its end, the
 * way a kill leaves it.
 */
async function stopBeforeTranscript(store: StorePlace): Promise<string> {
  await applyPlan(expireAll(store, 1), { now, runId: run1 })
  const whole = join(store.sidecar, 'trash', run1, sessionId(0))
  mkdirSync(dirname(join(store.root, transcript(0))), { recursive: true, mode: 0o700 })
  renameSync(join(whole, flatName(transcript(0)) ?? ''), join(store.root, transcript(0)))
  renameSync(whole, `${whole}.part`)
  const journal = join(store.sidecar, 'journals', `${run1}.jsonl`)
  const lines = readFileSync(journal, 'utf8').split('\n')
  const started = lines.findIndex((line) => line.includes('"t":"started"'))
  writeFileSync(journal, `${lines.slice(0, started + 1).join('\n')}\n`)
  return journal
}

test('promise 6: a half-moved session goes on into the trash when nothing of it was touched', async () => {
  const store = await sampleStore(1)
  const before = storeTree(store.root)
  await stopBeforeTranscript(store)
  expect(await recoverRuns(store, { now })).toEqual([{ runId: run1, completed: [sessionId(0)], rolledBack: [], errors: [] }])
  expect(exists(join(store.root, transcript(0)))).toBe(false)
  expect(listTrash(store)).toMatchObject([{ session: sessionId(0), receiptLost: false }])
  expect(await recoverRuns(store, { now })).toEqual([])
  await restoreFromTrash(store, run1)
  expect(storeTree(store.root)).toEqual(before)
})

test('promise 6: it is put back when its transcript was written to since', async () => {
  const store = await sampleStore(1)
  const before = storeTree(store.root)
  await stopBeforeTranscript(store)
  appendFileSync(join(store.root, transcript(0)), '{"type":"user"}\n')
  expect(await recoverRuns(store, { now })).toEqual([{ runId: run1, completed: [], rolledBack: [sessionId(0)], errors: [] }])
  expect(Object.keys(storeTree(store.root))).toEqual(Object.keys(before))
  expect(readdirSync(join(store.sidecar, 'trash'))).toEqual([])
})

test('promise 6: it is put back when it is live now, or pinned', async () => {
  const store = await sampleStore(1)
  const before = storeTree(store.root)
  await stopBeforeTranscript(store)
  const [run] = await recoverRuns(store, { now, stillAllowed: () => 'it is live' })
  expect(run).toMatchObject({ rolledBack: [sessionId(0)], completed: [], errors: [] })
  expect(storeTree(store.root)).toEqual(before)
})

test('promise 6: a session that was resumed after the kill gets its old backups beside its new ones', async () => {
  const store = await sampleStore(1)
  await stopBeforeTranscript(store)
  const fresh = 'ffffffffffffffff@v4'
  writeStoreFile(store.root, `file-history/${sessionId(0)}/${fresh}`, 'new')
  const [run] = await recoverRuns(store, { now })
  expect(run).toMatchObject({ rolledBack: [sessionId(0)], errors: [] })
  expect(readdirSync(join(store.root, 'file-history', sessionId(0)))).toEqual(expect.arrayContaining([fresh]))
  expect(readdirSync(join(store.root, 'file-history', sessionId(0)))).toHaveLength(4)
})

test('promise 2: what would overwrite something new stays in the trash, with an error, and can be restored later', async () => {
  const store = await sampleStore(1)
  await stopBeforeTranscript(store)
  const leftover = `todos/${sessionId(0)}-agent-${sessionId(0)}.json`
  writeStoreFile(store.root, leftover, 'newer')
  const [run] = await recoverRuns(store, { now })
  expect(run).toMatchObject({ rolledBack: [], errors: [{ code: 'OCCUPIED', path: leftover }] })
  expect(readFileSync(join(store.root, leftover), 'utf8')).toBe('newer')
  rmSync(join(store.root, leftover))
  expect(await restoreFromTrash(store, run1)).toMatchObject({ paths: [leftover], errors: [] })
})

test('promise 6: single backups are put back when the transcript was written to since', async () => {
  const store = await sampleStore(1)
  const before = storeTree(store.root)
  await applyPlan(planOf(store, [capOf(store.root, 0)]), { now, runId: run1 })
  const whole = join(store.sidecar, 'trash', run1, sessionId(0))
  renameSync(whole, `${whole}.part`)
  truncateSync(join(store.sidecar, 'journals', `${run1}.jsonl`), readFileSync(join(store.sidecar, 'journals', `${run1}.jsonl`)).indexOf('{"t":"done"'))
  appendFileSync(join(store.root, transcript(0)), '{"type":"user"}\n')
  expect(await recoverRuns(store, { now })).toMatchObject([{ rolledBack: [sessionId(0)], errors: [] }])
  expect(Object.keys(storeTree(store.root))).toEqual(Object.keys(before))
})

test('promise 6: a journal cut at any byte leaves the session whole, on one side or the other', async () => {
  const sample = await sampleStore(1)
  const length = readFileSync(await stopBeforeTranscript(sample)).length
  for (let cut = 0; cut <= length; cut += 97) {
    const store = await sampleStore(1)
    const before = storeTree(store.root)
    truncateSync(await stopBeforeTranscript(store), cut)
    const runs = await recoverRuns(store, { now })
    expect(runs, `cut at ${String(cut)}`).toMatchObject([{ errors: [] }])
    expect(exists(join(store.root, transcript(0)))).toBe(false)
    await restoreFromTrash(store, run1)
    expect(Object.keys(storeTree(store.root))).toEqual(Object.keys(before))
  }
})

test.each(['receipt', 'journal', 'both'])('promise 6: without its %s a half-moved session still ends whole', async (lost) => {
  const store = await sampleStore(1)
  const before = storeTree(store.root)
  const journal = await stopBeforeTranscript(store)
  if (lost !== 'receipt') rmSync(journal)
  if (lost !== 'journal') truncateSync(join(store.sidecar, 'trash', run1, `${sessionId(0)}.part`, 'receipt.json'), 17)
  const [run] = await recoverRuns(store, { now })
  // With neither there is nothing that says what was meant, so it is kept.
  expect(run).toMatchObject(lost === 'both' ? { rolledBack: [sessionId(0)], errors: [] } : { completed: [sessionId(0)], errors: [] })
  if (lost !== 'both') await restoreFromTrash(store, run1)
  expect(Object.keys(storeTree(store.root))).toEqual(Object.keys(before))
})

test('promise 4: what a newer version of ours left is refused', async () => {
  const store = await sampleStore(1)
  const journal = await stopBeforeTranscript(store)
  writeFileSync(journal, readFileSync(journal, 'utf8').replace('"schemaVersion":1', '"schemaVersion":2'))
  await expect(recoverRuns(store, { now })).rejects.toThrow(NewerFormatError)
  expect(exists(join(store.root, transcript(0)))).toBe(true)
})

test('a store without a sidecar has nothing to recover and gets none', async () => {
  const store = await sampleStore(1)
  const before = storeTree(store.root)
  expect(await recoverRuns(store, { now })).toEqual([])
  expect(exists(store.sidecar)).toBe(false)
  expect(storeTree(store.root)).toEqual(before)
})

test('promise 6: a whole run is left alone by recovery, and another run can follow', async () => {
  const store = await sampleStore(2)
  await applyPlan(expireAll(store, 1), { now, runId: run1 })
  expect(await recoverRuns(store, { now })).toEqual([])
  expect(await applyPlan(expireAll(store, 2), { now, runId: run2 })).toMatchObject({ exitCode: 0 })
  await expect(applyPlan(expireAll(await sampleStore(1), 1), { now, runId: '../x' })).rejects.toThrow(/not the name of a run/)
})

test('promise 6: a file that a killed run made and did not take away, and that may be a second name of a published one, goes', async () => {
  const store = await sampleStore(1)
  const left = stagingPath(store, 'left')
  linkSync(join(store.root, transcript(0)), left)
  const before = readFileSync(left)
  expect(await recoverRuns(store, { now })).toEqual([])
  expect(exists(left)).toBe(false)
  expect(readFileSync(join(store.root, transcript(0)))).toEqual(before)
})
