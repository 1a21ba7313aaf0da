import { existsSync, lstatSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openDshRewind } from '../../../src/formats/dsh-rewind/index.js'
import type { Store } from '../../../src/formats/format.js'
import type { Report } from '../../../src/model/report.js'
import { repairJournals, type JournalOptions } from '../../../src/operations/repair/journals.js'
import { applyRedo, planRedo } from '../../../src/operations/restore/redo.js'
import { dshSession, DshStore } from '../../helpers/dsh.js'
import { dshStores, extractDsh, type DshFile } from '../../helpers/dsh-corpus.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { snapshotTree, withoutTimes } from '../../helpers/tree.js'

const now = Date.parse('2027-01-01T12:00:00Z')

function run(store: Store, home: string, options: JournalOptions = {}): Promise<Report> {
  const machine = { processStart: () => undefined, processExists: () => false, pidDomain: undefined }
  return repairJournals(store, { quietMs: 0, ...options }, { now, machine, token: 'abcdef01', home, windows: false })
}

const endings = dshStores().flatMap(({ name, expected }) => (expected.afterReconcile ?? []).map((after) => ({ name, after })))

describe.each(endings)('$name, $after.op of $after.opId', ({ name, after }) => {
  /** Here the product deletes a file on the word of a journal alone (section 6.2). */
  const guarded = name === 'hostile/journal-references'
  const rollBack = after.op === 'rollbackRestore'

  it('leaves the files and the journal as the product does, and redo undoes it', async () => {
    const { store, folder, workspace, session, root } = await extractDsh(name)
    const before = snapshotTree(workspace)
    const preview = await run(store, folder, { rollBack })
    expect(preview.applied).toBe(false)
    expect(snapshotTree(workspace)).toEqual(before)

    const report = await run(store, folder, { rollBack, apply: true, force: guarded && rollBack })
    expect(report.plan.filter(({ action }) => action !== 'close')).toEqual(preview.plan.filter(({ action }) => action !== 'close').concat(guarded && rollBack ? [expect.objectContaining({ action: 'delete' }) as never] : []))
    for (const [path, file] of Object.entries(after.changedFiles)) expectFile(join(workspace, path), file)
    const untouched = (tree: typeof before): unknown => Object.fromEntries(Object.entries(withoutTimes(tree)).filter(([path]) => !(path in after.changedFiles)))
    expect(untouched(snapshotTree(workspace))).toEqual(untouched(before))
    expect(stateOf(join(root, session.id), after.opId)).toBe(after.journalStateAfter)
    if (Object.keys(after.changedFiles).length > 0) applyRedo(planRedo(store, store.read(session, { now })), { sidecar: store.sidecar, now })
    expect(withoutTimes(snapshotTree(workspace))).toEqual(withoutTimes(before))
  })

  it.runIf(guarded && rollBack)('deletes nothing that the restore cannot have written, unless that is asked for', async () => {
    const { store, folder, workspace } = await extractDsh(name)
    const report = await run(store, folder, { rollBack: true, apply: true })
    expect(report.errors.map(({ message }) => message)).toEqual([expect.stringContaining('not what the restore wrote')])
    expect(report.exitCode).toBe(3)
    expect(existsSync(join(workspace, 'victim.txt'))).toBe(true)
  })
})

it('looks at all 6 endings of the corpus', () => {
  expect(endings).toHaveLength(6)
})

function expectFile(path: string, file: DshFile | null): void {
  expect(existsSync(path) ? readFileSync(path, 'utf8') : null).toBe(file === null ? null : (file.utf8 ?? ''))
}

function stateOf(folder: string, id: string): unknown {
  const name = readdirSync(folder).find((each) => each.endsWith(`journal-${id}.json`)) ?? ''
  return (JSON.parse(readFileSync(join(folder, name), 'utf8')) as { state: unknown }).state
}

interface World {
  readonly home: string
  readonly dsh: DshStore
  readonly store: Store
  readonly path: (name: string) => string
  readonly read: (name: string) => string | null
}

/** A restore of a, b (to A0, B0) and c (created since) that was cut off; files are as given. */
async function interruptedRestore(files: Readonly<Record<string, string | null>>, state = 'running', failed?: string): Promise<World> {
  const home = await temporaryFolder()
  const dsh = new DshStore(join(home, '.dsh'))
  dsh.markers()
  const path = (name: string): string => join(home, name)
  for (const [name, content] of Object.entries(files)) if (content !== null) writeFileSync(path(name), content)
  dsh.put('5/a.before', 'A0')
  for (const [index, content] of ['A1', 'B1', 'C1'].entries()) dsh.put(`rescue/op-1/${String(index)}.before`, content)
  const rescue = (index: number): object => ({ rescue: { blob: `rescue/op-1/${String(index)}.before` }, parent: home, done: index === 2 })
  dsh.putJson('journal-op-1.json', {
    version: 2,
    id: 'op-1',
    sessionId: dshSession,
    targetSeq: 4,
    startedAt: 1,
    state,
    actions: [
      { path: path('a'), action: 'restore', before: { blob: '5/a.before' }, ...rescue(0), ...(failed === undefined ? {} : { failed }) },
      { path: path('b'), action: 'restore', before: { text: 'B0' }, ...rescue(1) },
      { path: path('c'), action: 'delete', before: null, ...rescue(2) },
    ],
  })
  const store = openDshRewind(dsh.root, { home, env: {}, platform: 'linux' })
  return { home, dsh, store, path, read: (name) => (existsSync(path(name)) ? readFileSync(path(name), 'utf8') : null) }
}

function journalOf({ dsh }: World): Record<string, unknown> {
  return JSON.parse(readFileSync(join(dsh.folder(), 'journal-op-1.json'), 'utf8')) as Record<string, unknown>
}

describe('an interrupted restore', () => {
  it('32: is finished from where the disk stands, whatever the journal says was done', async () => {
    const world = await interruptedRestore({ a: 'A0', b: 'B1', c: 'C1' })
    const report = await run(world.store, world.home, { apply: true })
    expect(report.plan.map(({ action, path }) => [action, path])).toEqual([
      ['restore', world.path('b')],
      ['delete', world.path('c')],
      ['close', `${dshSession}/journal-op-1.json`],
    ])
    expect(['a', 'b', 'c'].map(world.read)).toEqual(['A0', 'B0', null])
    expect(journalOf(world)).toMatchObject({ version: 2, state: 'completed', finishedAt: now, actions: [{ done: true }, { done: true, before: { text: 'B0' } }, { done: true }] })
    expect(await run(world.store, world.home, { apply: true })).toMatchObject({ plan: [], summary: { journals: 0 } })
  })

  it('32: is rolled back to exactly the state before', async () => {
    const world = await interruptedRestore({ a: 'A0', b: 'B1', c: 'C1' })
    await run(world.store, world.home, { apply: true, rollBack: true })
    expect(['a', 'b', 'c'].map(world.read)).toEqual(['A1', 'B1', 'C1'])
    expect(journalOf(world)).toMatchObject({ state: 'rolled-back' })
  })

  it('33, 37: is closed without a change when everything is as it should be', async () => {
    const world = await interruptedRestore({ a: 'A0', b: 'B0', c: null })
    const report = await run(world.store, world.home, { apply: true })
    expect(report.plan.map(({ action }) => action)).toEqual(['close'])
    expect(journalOf(world)).toMatchObject({ state: 'completed' })
    expect(existsSync(join(world.store.sidecar, 'redo'))).toBe(false)
  })

  it.each(['rollback-running', 'recovery-required'])('35: can only be rolled back from %s', async (state) => {
    const world = await interruptedRestore({ a: 'A0', b: 'B1', c: null }, state)
    await run(world.store, world.home, { apply: true })
    expect(['a', 'b', 'c'].map(world.read)).toEqual(['A1', 'B1', 'C1'])
    expect(journalOf(world)).toMatchObject({ state: 'rolled-back' })
  })

  it('36: gets all bytes of a half-written file', async () => {
    const world = await interruptedRestore({ a: 'A', b: 'B0', c: null })
    await run(world.store, world.home, { apply: true })
    expect(world.read('a')).toBe('A0')
  })

  it('stays open when bytes that it needs are gone; the other paths are done', async () => {
    const world = await interruptedRestore({ a: 'A1', b: 'B1', c: 'C1' })
    rmSync(join(world.dsh.folder(), '5', 'a.before'))
    const report = await run(world.store, world.home, { apply: true })
    expect(report).toMatchObject({ exitCode: 3, errors: [{ path: world.path('a') }], summary: { closed: 0 } })
    expect(['a', 'b', 'c'].map(world.read)).toEqual(['A1', 'B0', null])
    expect(journalOf(world)).toMatchObject({ state: 'running' })
  })

  it('R52: does not write text that lost bytes, unless that is asked for', async () => {
    const world = await interruptedRestore({ a: 'A0', b: 'B1', c: null })
    const path = join(world.dsh.folder(), 'journal-op-1.json')
    writeFileSync(path, readFileSync(path, 'utf8').replace('"B0"', '"B\ufffd"'))
    expect(await run(world.store, world.home, { apply: true })).toMatchObject({ exitCode: 3 })
    expect(world.read('b')).toBe('B1')
    expect(await run(world.store, world.home, { apply: true, force: true })).toMatchObject({ exitCode: 0 })
    expect(world.read('b')).toBe('B\ufffd')
  })

  it('leaves a path alone whose state before could not be saved', async () => {
    const world = await interruptedRestore({ a: 'A0', b: 'B0', c: null })
    const path = join(world.dsh.folder(), 'journal-op-1.json')
    writeFileSync(path, readFileSync(path, 'utf8').replace('"rescue":{"blob":"rescue/op-1/0.before"}', '"rescue":null,"rescueError":"EACCES"'))
    const report = await run(world.store, world.home, { apply: true, rollBack: true, force: true })
    expect(report.errors.map(({ message }) => message)).toEqual([expect.stringContaining('EACCES')])
    expect(world.read('a')).toBe('A0')
  })

  it('R13: is left alone while the session is in use', async () => {
    const world = await interruptedRestore({ a: 'A1', b: 'B1', c: 'C1' })
    const quiet = lstatSync(world.dsh.folder()).mtimeMs
    const report = await run(world.store, world.home, { apply: true, quietMs: now - quiet + 60_000 })
    expect(report).toMatchObject({ plan: [], kept: [{ session: dshSession }] })
    expect(world.read('a')).toBe('A1')
  })

  it('R113: is left alone in a store of a newer version', async () => {
    const world = await interruptedRestore({ a: 'A1', b: 'B1', c: 'C1' })
    world.dsh.put('store', '3')
    expect(await run(world.store, world.home, { apply: true })).toMatchObject({ plan: [], summary: { journals: 0 } })
    expect(journalOf(world)).toMatchObject({ state: 'running' })
  })

  it('R114: that cannot be read is kept and reported, and so are those with references that lead out', async () => {
    const { store, folder, workspace, root, session } = await extractDsh('hostile/journal-references')
    const before = snapshotTree(root)
    const report = await run(store, folder, { apply: true })
    expect(report.findings.map(({ id, place }) => [id, place?.path.split('/').at(-1)])).toEqual(['op-abs', 'op-back', 'op-seg', 'op-up'].map((id) => ['damaged-journal', `journal-${id}.json`]))
    expect(snapshotTree(root)).toEqual(before)
    expect(existsSync(join(workspace, 'victim.txt'))).toBe(true)
    expect(store.read(session, { now }).findings.map(({ id }) => id)).toEqual(['damaged-journal', 'damaged-journal', 'open-journal', 'damaged-journal', 'damaged-journal'])
  })

  it('of version 1 keeps its name and becomes version 2 (section 2.6)', async () => {
    const { store, folder, root, session } = await extractDsh('gen1c-string-journal/interrupted-restore')
    await run(store, folder, { apply: true })
    const name = 'restore-journal-op-mubbym7s-nl2v8023.json'
    expect(readdirSync(join(root, session.id)).filter((each) => each.includes('journal'))).toEqual([name])
    expect(JSON.parse(readFileSync(join(root, session.id, name), 'utf8'))).toMatchObject({ version: 2, state: 'completed', actions: [{ before: { text: 'A0\n' }, rescue: { text: 'A1\n' } }, {}, { before: null }] })
  })
})
