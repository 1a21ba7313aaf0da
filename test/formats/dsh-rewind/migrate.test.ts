import { readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, it, test } from 'vitest'
import type { Checkpoint } from '../../../src/model/history.js'
import type { Report } from '../../../src/model/report.js'
import { migrate } from '../../../src/operations/migrate/migrate.js'
import { resolutionsOf } from '../../../src/operations/migrate/resolutions.js'
import { applyRestore } from '../../../src/operations/restore/apply.js'
import { planRestore } from '../../../src/operations/restore/plan.js'
import { openDshRewind } from '../../../src/formats/dsh-rewind/index.js'
import type { Store } from '../../../src/formats/format.js'
import { partRunId } from '../../../src/plan/run-id.js'
import { restoreFromTrash } from '../../../src/plan/restore.js'
import { dshStores, extractDsh, type DshFixture } from '../../helpers/dsh-corpus.js'
import { ageAll, dshSession, DshStore } from '../../helpers/dsh.js'
import { machineWith } from '../../helpers/removal.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { snapshotTree, withoutTimes } from '../../helpers/tree.js'
import { readByteRecords, readTextRecords } from './strict-readers.js'

const now = Date.parse('2027-06-01T12:00:00Z')
const old = Date.parse('2026-10-01T12:00:00Z')

function run(store: Store, options: { readonly apply?: boolean; readonly move?: { readonly from: string; readonly to: string } } = {}): Promise<Report> {
  return migrate(store, { apply: true, quietPeriodMs: 0, ...options }, { now, machine: machineWith(), token: 'abcdef012345' })
}

/** What is in the store besides times of a folder that only microseconds are kept of. */
function sessionsOf(store: Store): Record<string, unknown> {
  return withoutTimes(snapshotTree(store.root))
}

function targetsOf({ store, session, expected }: DshFixture): Checkpoint[] {
  const reading = store.read(session, { now })
  const words = [...new Set([...reading.history.checkpoints.map(({ id }) => id), ...expected.restores.map(({ target }) => String(target))])]
  return words.flatMap((word) => store.checkpointAt?.(session, reading, word) ?? [])
}

/** What a restore would do with every path, for every target. */
function plansOf(fixture: DshFixture): unknown {
  const { store, session, workspace, folder } = fixture
  const reading = store.read(session, { now })
  return targetsOf(fixture).map((checkpoint) => ({
    target: checkpoint.id,
    items: planRestore(store, reading, checkpoint, { home: folder }).items.map(({ path, decision }) => [relative(workspace, path), decision.action]),
  }))
}

function treesAfter(fixture: DshFixture, target: number): Record<string, unknown> {
  const { store, session, folder, workspace } = fixture
  const reading = store.read(session, { now })
  const checkpoint = store.checkpointAt?.(session, reading, String(target))
  if (checkpoint === undefined) throw new Error('the checkpoint was not found')
  applyRestore(planRestore(store, reading, checkpoint, { home: folder }), { sidecar: store.sidecar, now, partial: true })
  return withoutTimes(snapshotTree(workspace))
}

const fixtures = dshStores().filter(({ name }) => !name.startsWith('gen3') && !name.startsWith('cleanup'))
const textFixtures = fixtures.filter(({ name }) => name.startsWith('gen1'))

describe.each(fixtures.map(({ name }) => name))('%s', (name) => {
  it('plans the same for every target after it was migrated, a preview writes nothing, and a second run has nothing to do', async () => {
    const fixture = await extractDsh(name)
    const { store, session, folder } = fixture
    const before = snapshotTree(folder)
    const plans = plansOf(fixture)
    const resolutions = resolutionsOf(store, store.read(session, { now }))
    const interrupted = store.interruptedRestores?.(session).map(({ id, state, damaged }) => ({ id, state, damaged }))
    const preview = await run(store, { apply: false })
    expect(snapshotTree(folder)).toEqual(before)

    const applied = await run(store)
    expect(applied).toMatchObject({ errors: [], exitCode: 0, plan: preview.plan })
    expect(plansOf(fixture)).toEqual(plans)
    expect(resolutionsOf(store, store.read(session, { now }))).toEqual(resolutions)
    expect(store.interruptedRestores?.(session).map(({ id, state, damaged }) => ({ id, state, damaged }))).toEqual(interrupted)
    const after = sessionsOf(store)
    expect((await run(store)).plan).toEqual([])
    expect(sessionsOf(store)).toEqual(after)
  })
})

describe.each(textFixtures.flatMap(({ name, expected }) => [...new Set(expected.restores.map(({ target }) => target))].map((target) => [name, target] as const)))('%s @%i', (name, target) => {
  it('restores the same tree from the migrated store', async () => {
    const [kept, migrated] = [await extractDsh(name), await extractDsh(name)]
    await run(migrated.store)
    expect(treesAfter(migrated, target)).toEqual(treesAfter(kept, target))
  })

  it('R113: a byte build by the page sees what a text build saw, and a text build sees nothing of ours', async () => {
    const { store, session, workspace } = await extractDsh(name)
    const folder = join(store.root, session.id)
    // A record that cannot be followed, or of which nobody knows the anchor, is left to the build that made it.
    const before = Object.entries(readTextRecords(folder, target)).filter(([path, result]) => result !== 'failed' && path !== join(workspace, 'low.txt'))
    await run(store)
    expect(readByteRecords(folder, target)).toEqual(Object.fromEntries(before))
    expect(Object.keys(readTextRecords(folder, target)).filter((path) => before.some(([each]) => each === path))).toEqual([])
  })
})

test('looks at all ten stores of the string era', () => {
  expect(textFixtures).toHaveLength(10)
})

/** The four records of R112, word by word, in the session `S`. */
async function reported(): Promise<{ readonly builder: DshStore; readonly store: Store; readonly folder: string }> {
  const home = join(await temporaryFolder(), '.dsh')
  const builder = new DshStore(home)
  builder.put('12/call_1.json', '{"callId":"call_1","anchorSeq":12,"path":"/p/a","before":"x\\u00e9\\n","time":1}')
  builder.put('12/call_2.json', '{"callId":"call_2","anchorSeq":12,"path":"/p/b","before":null,"time":2}')
  builder.put('12/call_3.json', '{"callId":"call_3","anchorSeq":12,"path":"/p/c","before":"\\ufffd","time":3}')
  builder.put('12/call_4.json', '{"callId":"call_4","anchorSeq":12,"path":"/p/d","before":5,"time":4}')
  ageAll(home, old)
  return { builder, store: opened(builder), folder: builder.folder() }
}

/** The conversations of a store are looked for once: one that is written later is seen by a store that is opened later. */
function opened({ home, root }: DshStore): Store {
  return openDshRewind(root, { home: join(home, '..'), env: {}, platform: 'linux' })
}

const textIn = (folder: string, name: string): string => readFileSync(join(folder, name), 'utf8')

test('R112: text becomes bytes beside a record, null stays null, lost bytes are marked, what is neither stays and is told', async () => {
  const { store, folder } = await reported()
  const corrupt = textIn(folder, '12/call_4.json')
  const report = await run(store)
  expect(report).toMatchObject({ errors: [], kept: [] })
  expect(report.plan.map(({ path }) => path.slice(dshSession.length + 1))).toEqual([
    '12/call_1.before', '12/call_1.json', '12/call_2.json', '12/call_3.before', '12/call_3.json', 'store',
  ])
  expect(textIn(folder, '12/call_1.json')).toBe('{"store":2,"callId":"call_1","file":"/p/a","time":1,"blob":"call_1.before","size":4}')
  expect(readFileSync(join(folder, '12/call_1.before'))).toEqual(Buffer.from([0x78, 0xc3, 0xa9, 0x0a]))
  expect(textIn(folder, '12/call_2.json')).toBe('{"store":2,"callId":"call_2","file":"/p/b","time":2,"blob":null,"size":0}')
  expect(textIn(folder, '12/call_3.json')).toBe('{"store":2,"callId":"call_3","file":"/p/c","time":3,"lossy":true,"blob":"call_3.before","size":3}')
  expect(readFileSync(join(folder, '12/call_3.before'))).toEqual(Buffer.from([0xef, 0xbf, 0xbd]))
  expect(textIn(folder, '12/call_4.json')).toBe(corrupt)
  expect(textIn(folder, 'store')).toBe('2')
  expect(report.findings).toContainEqual(expect.objectContaining({ id: 'damaged-record', place: { path: `${dshSession}/12/call_4.json` } }))
})

test('R112: half of a surrogate pair is a lost byte too, and fields of others are kept', async () => {
  const { builder, store, folder } = await reported()
  builder.put('12/call_5.json', '{"callId":"call_5","anchorSeq":12,"path":"/p/e","before":"\\ud800","time":5,"note":{"by":"another"},"parent":"/p","mode":384}')
  await run(store)
  expect(textIn(folder, '12/call_5.json')).toBe('{"store":2,"callId":"call_5","file":"/p/e","time":5,"lossy":true,"blob":"call_5.before","size":3,"note":{"by":"another"}}')
})

test('the age sweep of the plugin sees the times that it saw before, and a run is taken back to the byte', async () => {
  const { store, folder } = await reported()
  const before = snapshotTree(folder)
  const { runId } = await run(store)
  for (const [path, node] of Object.entries(snapshotTree(folder))) expect(Number(BigInt(node.mtime) / 1_000_000n), path).toBeLessThanOrEqual(old)
  expect((await restoreFromTrash(store, partRunId(String(runId), 1))).errors).toEqual([])
  expect(withoutTimes(snapshotTree(folder))).toEqual(withoutTimes(before))
})

describe('the marker of the session format, without which the plugin deletes the session', () => {
  const messages = [{ seq: 12, text: 'go', time: old }]

  test('it is written when the conversation is there and the groups are messages of it', async () => {
    const { builder, folder } = await reported()
    builder.log('/p', messages)
    const report = await run(opened(builder))
    expect(report.findings.map(({ id }) => id)).not.toContain('will-be-cleared')
    expect(textIn(folder, 'format')).toBe('3')
  })

  test.each([
    ['there is no conversation', () => undefined],
    ['a group is no message', (builder: DshStore) => builder.log('/p', [{ seq: 11, text: 'go', time: old }])],
    ['the conversation is of another version than its name says', (builder: DshStore) => builder.log('/p', messages, dshSession, { version: 4 })],
    ['the host converted the conversation from an older format', (builder: DshStore) => {
      const path = builder.log('/p', messages)
      writeFileSync(join(path, '..', 'session.jsonl'), readFileSync(path))
    }],
  ])('it is not, and the loss is foretold, when %s', async (_, arrange) => {
    const { builder, folder } = await reported()
    arrange(builder)
    const report = await run(opened(builder))
    expect(report.findings).toContainEqual(expect.objectContaining({ id: 'will-be-cleared' }))
    expect(() => textIn(folder, 'format')).toThrow('ENOENT')
  })

  test('a marker of another format says that the groups are numbered otherwise, and stays', async () => {
    const { builder, folder } = await reported()
    builder.log('/p', messages)
    builder.put('format', '2')
    expect((await run(opened(builder))).findings).toContainEqual(expect.objectContaining({ id: 'will-be-cleared' }))
    expect(textIn(folder, 'format')).toBe('2')
  })
})

test('an open journal of the first version is the second under its own name, with its texts; a finished one keeps every byte', async () => {
  const { builder, store, folder } = await reported()
  const action = { path: '/p/a', action: 'restore', before: 'new', rescue: null, done: false }
  const open = { version: 1, id: 'op-1', sessionId: dshSession, targetSeq: 12, startedAt: 5, state: 'running', actions: [action], by: 'x' }
  builder.putJson('restore-journal-op-1.json', open)
  builder.putJson('restore-journal-op-2.json', { ...open, id: 'op-2', state: 'completed' })
  builder.put('restore-journal-op-3.json', '{')
  const finished = textIn(folder, 'restore-journal-op-2.json')
  const report = await run(store)
  expect(JSON.parse(textIn(folder, 'restore-journal-op-1.json'))).toEqual({ ...open, version: 2, actions: [{ ...action, before: { text: 'new' } }] })
  expect(textIn(folder, 'restore-journal-op-2.json')).toBe(finished)
  expect(textIn(folder, 'restore-journal-op-3.json')).toBe('{')
  expect(report.findings).toContainEqual(expect.objectContaining({ id: 'damaged-journal' }))
})

test('links keep their chain while every record of it changes its generation, also into a record that is bytes already', async () => {
  const { builder, store, folder } = await reported()
  const first = builder.bytes({ anchor: 13, call: 'b', file: '/p/z', before: 'zz', time: 10 })
  const second = builder.link({ anchor: 14, call: 'c', file: '/p/z', ref: first.replace('/', '\\'), time: 11, era: 1 })
  builder.link({ anchor: 15, call: 'd', file: '/p/z', ref: second, time: 12, era: 1 })
  await run(store)
  expect(textIn(folder, '14/c.json')).toBe(`{"store":2,"callId":"c","file":"/p/z","ref":"${first}","time":11}`)
  expect(textIn(folder, '15/d.json')).toBe('{"store":2,"callId":"d","file":"/p/z","ref":"14/c.json","time":12}')
  expect(readByteRecords(folder, 15)['/p/z']).toBe(Buffer.from('zz').toString('base64'))
})

test('a session of a newer store version is refused, and nothing of it changes', async () => {
  const { builder, store, folder } = await reported()
  builder.put('store', '3')
  const before = snapshotTree(folder)
  expect((await run(store)).kept).toEqual([{ session: dshSession, reason: expect.stringContaining('newer') as string }])
  expect(snapshotTree(folder)).toEqual(before)
})

describe('a project that moved', () => {
  const move = { from: '/p', to: '/q/new' }

  test('R45: paths and pins change by whole names in both generations; a neighbour, the bytes and the rest of a record stay', async () => {
    const { builder, store, folder } = await reported()
    builder.put('13/e.before', 'e')
    builder.putJson('13/e.json', { store: 2, callId: 'e', file: '/p/sub/e', time: 7, parent: '/p/sub', mode: 420, blob: 'e.before', size: 1, extra: '/p/e' })
    builder.bytes({ anchor: 13, call: 'n', file: '/p2/n', before: 'n', time: 8, parent: '/p2' })
    builder.log('/p', [{ seq: 12, text: 'go', time: old }])
    const before = snapshotTree(folder)
    const report = await run(opened(builder), { move })
    expect(report).toMatchObject({ errors: [], kept: [], findings: [{ id: 'conversation-left' }] })
    expect(JSON.parse(textIn(folder, '13/e.json'))).toEqual({ store: 2, callId: 'e', file: '/q/new/sub/e', time: 7, parent: '/q/new/sub', mode: 420, blob: 'e.before', size: 1, extra: '/p/e' })
    expect(JSON.parse(textIn(folder, '12/call_1.json'))).toEqual({ callId: 'call_1', anchorSeq: 12, path: '/q/new/a', before: 'x\u00e9\n', time: 1 })
    expect(JSON.parse(textIn(folder, '12/call_4.json'))).toMatchObject({ path: '/q/new/d', before: 5 })
    const after = snapshotTree(folder)
    for (const path of Object.keys(before).filter((each) => each.endsWith('.before') || each.includes('/n-'))) expect(after[path]).toEqual(before[path])
    expect((await run(store, { move })).plan).toEqual([])
  })

  test('a session with an open journal is refused: the journal is followed by the old paths', async () => {
    const { builder, store, folder } = await reported()
    builder.putJson('journal-op-1.json', { version: 2, id: 'op-1', sessionId: dshSession, targetSeq: 12, startedAt: 5, state: 'running', actions: [] })
    const before = snapshotTree(folder)
    expect((await run(store, { move })).kept).toEqual([{ session: dshSession, reason: expect.stringContaining('repair --journals') as string }])
    expect(snapshotTree(folder)).toEqual(before)
  })

  test('two records that would be of one file are not put together', async () => {
    const { builder, store } = await reported()
    builder.text({ anchor: 12, call: 'x', file: '/q/new/a', before: 'other', time: 9 })
    expect((await run(store, { move })).kept).toEqual([{ session: dshSession, reason: expect.stringContaining('one file') as string }])
  })
})
