import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, test } from 'vitest'
import { openDshRewind } from '../../../src/formats/dsh-rewind/index.js'
import type { Store } from '../../../src/formats/format.js'
import { newSession, unionPlans } from './two-roots.js'
import { mergeRoots } from '../../../src/operations/migrate/merge-roots.js'
import { resolutionsOf } from '../../../src/operations/migrate/resolutions.js'
import type { Report } from '../../../src/model/report.js'
import { cliIn } from '../../cli/world.js'
import { ageAll, dshSession, DshStore } from '../../helpers/dsh.js'
import { extractDsh, dshStores } from '../../helpers/dsh-corpus.js'
import { machineWith } from '../../helpers/removal.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { snapshotTree, withoutTimes } from '../../helpers/tree.js'

const now = Date.parse('2027-06-01T12:00:00Z')
const old = Date.parse('2026-10-01T12:00:00Z')

/** Two homes of one user: the old one, and the one that `DSH_HOME` names. */
async function twoRoots(): Promise<{ home: string; from: DshStore; to: DshStore }> {
  const home = await temporaryFolder()
  return { home, from: new DshStore(join(home, '.dsh')), to: new DshStore(join(home, 'new')) }
}

function opened(home: string, { root }: { readonly root: string }): Store {
  return openDshRewind(root, { home, env: { DSH_HOME: join(home, 'new') }, platform: 'linux' })
}

function run(home: string, to: { readonly root: string }, from: { readonly root: string }, apply = true, sessions: readonly string[] = []): Promise<Report> {
  return mergeRoots(opened(home, to), opened(home, from), { apply, quietPeriodMs: 0, sessions }, { now, machine: machineWith(), token: 'abcdef012345' })
}

const trees = (home: string): unknown => withoutTimes(snapshotTree(home))
const mergeable = dshStores().filter(({ name }) => !/^(?:gen3|cleanup|foreign|hostile)/.test(name))

describe.each(mergeable.map(({ name }) => name))('%s', (name) => {
  it('merged into an empty root plans the same for every target, down to the bytes, and its originals come back', async () => {
    const fixture = await extractDsh(name)
    ageAll(fixture.home, old)
    const to = new DshStore(join(fixture.folder, 'new'))
    const source = opened(fixture.folder, fixture)
    const before = resolutionsOf(source, source.read(fixture.session, { now }))
    const tree = snapshotTree(join(fixture.root, fixture.session.id))
    const report = await run(fixture.folder, to, fixture)
    if (report.kept.length > 0) {
      // What is no plain file, or cannot be told whose it is, stays where it is.
      expect(report.kept).toEqual([{ session: fixture.session.id, reason: expect.stringContaining('none of the plugin') as string }])
      expect(snapshotTree(join(fixture.root, fixture.session.id))).toEqual(tree)
      return
    }
    expect(report).toMatchObject({ errors: [], exitCode: 0, summary: { merged: 1 } })
    const target = opened(fixture.folder, to)
    expect(resolutionsOf(target, target.read(fixture.session, { now }))).toEqual(before)
    expect(existsSync(join(fixture.root, fixture.session.id))).toBe(false)
    for (const [path, node] of Object.entries(snapshotTree(to.folder(fixture.session.id)))) {
      expect(Number(BigInt(node.mtime) / 1_000_000n), path).toBeLessThanOrEqual(old)
    }
    expect((await run(fixture.folder, to, fixture)).plan).toEqual([])
    const cli = cliIn(fixture.folder, { env: { DSH_HOME: to.home } })
    const undone = await cli.json('trash', 'restore', String(report.runId), '--root', to.root, '--root', fixture.root)
    expect(undone).toMatchObject({ exitCode: 0, errors: [] })
    expect(withoutTimes(snapshotTree(join(fixture.root, fixture.session.id)))).toEqual(withoutTimes(tree))
  })
})

test('looks at the stores of the corpus, and most of them are merged', () => {
  expect(mergeable.length).toBeGreaterThan(25)
})

describe('a session in both roots', () => {
  async function both(): Promise<Awaited<ReturnType<typeof twoRoots>>> {
    const roots = await twoRoots()
    const { from, to } = roots
    from.text({ anchor: 1, call: 'a', file: '/p/a', before: null, time: 1 })
    const first = from.text({ anchor: 7, call: 'b', file: '/p/a', before: 'one', time: 2 })
    from.link({ anchor: 13, call: 'c', file: '/p/a', ref: first, time: 3, era: 1 })
    from.text({ anchor: 13, call: 'd', file: '/p/only-old', before: 'old', time: 4 })
    to.bytes({ anchor: 13, call: 'e', file: '/p/a', before: 'later', time: 9 })
    to.bytes({ anchor: 19, call: 'f', file: '/p/a', before: 'two', time: 10 })
    to.bytes({ anchor: 19, call: 'g', file: '/p/only-new', before: Buffer.from([0, 255]), time: 11 })
    return roots
  }

  test('has the records of both: the earliest one at or after a message decides', async () => {
    const { home, from, to } = await both()
    ageAll(home, old)
    const before = trees(home)
    expect((await run(home, to, from, false)).plan).toHaveLength(5)
    expect(trees(home)).toEqual(before)
    expect(await run(home, to, from)).toMatchObject({ errors: [], kept: [] })
    expect(unionPlans(opened(home, to), now)).toEqual({
      1: { '/p/a': 'absent', '/p/only-old': 'old', '/p/only-new': '\u0000\ufffd' },
      7: { '/p/a': 'one', '/p/only-old': 'old', '/p/only-new': '\u0000\ufffd' },
      13: { '/p/a': 'one', '/p/only-old': 'old', '/p/only-new': '\u0000\ufffd' },
      19: { '/p/a': 'two', '/p/only-new': '\u0000\ufffd' },
    })
    expect(existsSync(from.folder())).toBe(false)
  })

  test.each([
    ['a record of the same name with other bytes', (from: DshStore, to: DshStore) => { from.put('19/x.json', '{"a":1}'); to.put('19/x.json', '{"a":2}') }, '19/x.json is not the same'],
    ['a side file with other permission bits, which a restore would give', (from: DshStore, to: DshStore) => { from.put('19/x.before', 'x'); chmodSync(to.put('19/x.before', 'x'), 0o755) }, '19/x.before is not the same'],
    ['a file that is none of the plugin\'s', (from: DshStore) => { from.put('13/notes.txt', 'mine') }, 'none of the plugin'],
    ['a newer store version', (from: DshStore) => { from.put('store', '3') }, 'newer'],
    ['groups numbered by another format', (from: DshStore, to: DshStore) => { from.put('format', '2'); to.put('format', '3') }, 'by format 3'],
    ['groups of which nobody can tell how they are numbered, beside a marker', (_: DshStore, to: DshStore) => { to.put('format', '3') }, 'nobody knows which'],
  ])('stays in both, and the report says so: %s', async (_, arrange, words) => {
    const { home, from, to } = await both()
    arrange(from, to)
    ageAll(home, old)
    const before = trees(home)
    const report = await run(home, to, from)
    expect(report).toMatchObject({ plan: [], errors: [] })
    expect(report.kept).toEqual([{ session: dshSession, reason: expect.stringContaining(words) as string }])
    expect(trees(home)).toEqual(before)
  })

  test('is merged when the conversation proves that the old groups are numbered as the new ones', async () => {
    const { home, from, to } = await both()
    to.put('format', '3')
    to.log('/p', [1, 7, 13, 19].map((seq) => ({ seq, text: 'go', time: old })))
    ageAll(home, old)
    expect(await run(home, to, from)).toMatchObject({ errors: [], kept: [], summary: { merged: 1 } })
    expect(readFileSync(join(to.folder(), 'format'), 'utf8')).toBe('3')
  })

  test('keeps an open journal with what it needs', async () => {
    const { home, from, to } = await both()
    const action = { path: '/p/a', action: 'restore', before: { blob: '7/keep.before' }, rescue: { blob: 'rescue/op-1/0.before' }, done: false }
    from.putJson('journal-op-1.json', { version: 2, id: 'op-1', sessionId: dshSession, targetSeq: 7, startedAt: 5, state: 'running', actions: [action] })
    from.put('rescue/op-1/0.before', 'rescued')
    from.put('7/keep.before', 'kept')
    ageAll(home, old)
    await run(home, to, from)
    expect(opened(home, to).interruptedRestores?.({ id: dshSession, members: [] })).toHaveLength(1)
    expect(readFileSync(join(to.folder(), 'rescue/op-1/0.before'), 'utf8')).toBe('rescued')
  })
})

test('what was merged in part is finished by the next run', async () => {
  const { home, from, to } = await twoRoots()
  from.bytes({ anchor: 1, call: 'a', file: '/p/a', before: 'x', time: 1, mode: 0o644 })
  from.bytes({ anchor: 7, call: 'b', file: '/p/a', before: 'y', time: 2 })
  to.bytes({ anchor: 1, call: 'a', file: '/p/a', before: 'x', time: 1, mode: 0o644 })
  ageAll(home, old)
  const report = await run(home, to, from)
  expect(report.plan.map(({ action }) => action)).toEqual(['write', 'write', 'trash'])
  expect(unionPlans(opened(home, to), now)).toEqual({ 1: { '/p/a': 'x' }, 7: { '/p/a': 'y' } })
})

test('other sessions stay as they are, and one that was not asked for stays in its root', async () => {
  const { home, from, to } = await twoRoots()
  newSession(from, 'session-a')
  newSession(from, 'session-b')
  newSession(to, 'session-c')
  ageAll(home, old)
  const before = snapshotTree(to.folder('session-c'))
  expect((await run(home, to, from, true, ['session-b'])).summary).toMatchObject({ sessions: 1, merged: 1 })
  expect(existsSync(from.folder('session-a'))).toBe(true)
  expect(existsSync(to.folder('session-a'))).toBe(false)
  expect(snapshotTree(to.folder('session-c'))).toEqual(before)
})

test('a session that was used just now stays', async () => {
  const { home, from, to } = await twoRoots()
  newSession(from, 'session-a')
  ageAll(home, now - 1000)
  const report = await mergeRoots(opened(home, to), opened(home, from), { apply: true, quietPeriodMs: 60_000 }, { now, machine: machineWith(), token: 'abcdef012345' })
  expect(report.kept).toEqual([{ session: 'session-a', reason: expect.stringContaining('quiet period') as string }])
})

describe('on the command line', () => {
  test('both roots are found, the one that the plugin uses is the one that stays', async () => {
    const { home, from, to } = await twoRoots()
    newSession(from, 'session-a')
    newSession(to, 'session-b')
    ageAll(home, Date.parse('2026-10-01T00:00:00Z'))
    const cli = cliIn(home, { env: { DSH_HOME: to.home } })
    const preview = await cli.json('migrate', '--merge-roots', '--store', 'dsh-rewind')
    expect(preview).toMatchObject({ applied: false, summary: { merged: 1 } })
    expect(existsSync(to.folder('session-a'))).toBe(false)
    const applied = await cli.json('migrate', '--merge-roots', '--store', 'dsh-rewind', '--apply')
    expect(applied).toMatchObject({ exitCode: 0, plan: preview.plan })
    expect(existsSync(to.folder('session-a'))).toBe(true)
    expect(existsSync(from.folder('session-a'))).toBe(false)
    expect(lstatSync(from.root).isDirectory()).toBe(true)
  })

  test('one root alone, or a move at the same time, is a mistake', async () => {
    const { home, from, to } = await twoRoots()
    newSession(from, 'session-a')
    mkdirSync(to.root, { recursive: true })
    writeFileSync(join(home, 'x'), '')
    const cli = cliIn(home)
    expect((await cli('migrate', '--merge-roots', '--root', from.root)).exitCode).toBe(2)
    expect((await cli('migrate', '--merge-roots', '--move', '/a', '/b', '--root', from.root)).exitCode).toBe(2)
  })
})
