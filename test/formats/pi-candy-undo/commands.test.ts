import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseState, serialiseState, type State } from '../../../src/formats/pi-candy-undo/state.js'
import { cliIn, type Cli, type Envelope } from '../../cli/world.js'
import { uuidOf } from '../../helpers/identity.js'
import { PiAgent, piPlaces, type PiPlaces } from '../../helpers/pi.js'
import { extractPi, type PiStore } from '../../helpers/pi-corpus.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { snapshotTree, type Tree } from '../../helpers/tree.js'

const later = '2026-12-10T00:00:00.000Z'

interface Home extends PiPlaces {
  readonly cli: Cli
  readonly agent: PiAgent
}

/** A session of two files and three prompts: a.txt is there before, b.txt is created. All of it is a day old. */
async function home(): Promise<Home> {
  const places = piPlaces(await temporaryFolder())
  const agent = new PiAgent(places, 'notes')
  agent.byHand('a.txt', 'a0\n')
  agent.prompt('one')
  agent.edit('a.txt', 'a1\n')
  agent.prompt('two')
  agent.edit('a.txt', 'a2\n')
  agent.edit('b.txt', 'b1\n', 0o600)
  agent.prompt('three')
  agent.age('2026-11-29T09:00:00.000Z')
  return { ...places, agent, cli: cliIn(places.home) }
}

/** Command lines on a store of the corpus. */
function on({ root, sessions, base }: PiStore): Cli {
  const cli = cliIn(base)
  const args = ['--root', root, '--conversations', sessions]
  const given = (argv: readonly string[]): readonly string[] => [...argv, ...args, ...(argv.includes('--now') ? [] : ['--now', later])]
  return Object.assign((...argv: readonly string[]) => cli(...given(argv)), { home: base, json: (...argv: readonly string[]) => cli.json(...given(argv)) })
}

function stateOf(path: string): State {
  const parsed = parseState(readFileSync(path))
  if (parsed.kind !== 'state') throw new Error(JSON.stringify(parsed))
  return parsed.state
}

function contentOf({ project }: PiPlaces): Record<string, string> {
  return Object.fromEntries(readdirSync(project).sort().map((name) => [name, readFileSync(join(project, name), 'utf8')]))
}

function ids(envelope: Envelope): unknown[] {
  return envelope.findings.map(({ id, session }) => `${String(session).slice(-3)} ${String(id)}`)
}

describe('the commands on a store of pi', () => {
  it('find it where pi keeps it, with its sessions, checkpoints and cap', async () => {
    const { cli, root, agent, project } = await home()
    const status = await cli.json('status')
    expect(status.root).toBe(root)
    expect(status.stores).toMatchObject([{ format: 'pi-candy-undo', sessions: 1, checkpoints: 4, backups: 4, retention: { days: 30, source: 'default' } }])
    expect((await cli.json('list')).sessions).toMatchObject([{ id: agent.session, project, checkpoints: 4, backups: 4, live: false }])
    expect((await cli.json('doctor')).stores).toHaveLength(1)
  })

  it('show the checkpoints with the words of their messages, and what each would bring back', async () => {
    const { cli, agent } = await home()
    const { checkpoints } = (await cli.json('show', agent.session)) as unknown as { checkpoints: { text: string | null; files: { path: string; state: string }[] }[] }
    expect(checkpoints.map(({ text }) => text)).toEqual([null, 'one', 'two', 'three'])
    expect(checkpoints[2]?.files).toMatchObject([{ path: 'a.txt', state: 'present' }, { path: 'b.txt', state: 'absent' }])
  })

  it('find it where the settings say, and read the retention of all layers', async () => {
    const { cli, root, home: folder, project } = await home()
    const elsewhere = join(folder, 'kept')
    renameSync(root, elsewhere)
    const settings = join(folder, '.pi', 'agent', 'settings.json')
    writeFileSync(settings, JSON.stringify({ candyUndo: { storageDir: '~/kept', maxSnapshotsPerSession: 3, cleanupPeriodDays: 7 } }))
    mkdirSync(join(project, '.pi'))
    writeFileSync(join(project, '.pi', 'settings.json'), JSON.stringify({ candyUndo: { cleanupPeriodDays: null } }))
    const status = await cli.json('status')
    expect(status.root).toBe(elsewhere)
    expect(status.stores).toMatchObject([{ retention: { days: 7 } }])
    expect(ids(await cli.json('verify'))).toContain(`${String(status.sessions === undefined ? '' : (status.sessions as { id: string }[])[0]?.id.slice(-3))} over-cap`)

    writeFileSync(settings, JSON.stringify({ candyUndo: { storageDir: '~/kept', cleanupPeriodDays: 0 } }))
    expect((await cli.json('status')).stores).toMatchObject([{ retention: { days: 'never' } }])
    expect((await cli.json('expire', '--now', '2027-11-01T00:00:00.000Z')).plan).toEqual([])

    writeFileSync(settings, JSON.stringify({ candyUndo: { storageDir: '~/kept', cleanupPeriodDays: '365' } }))
    expect((await cli.json('expire', '--apply')).exitCode).toBe(65)
  })

  it('rewind by the id of a message, leave a redo point that the plugin can read, and redo by its stack', async () => {
    const world = await home()
    const { cli, agent } = world
    const [, two = ''] = agent.messages
    const before = stateOf(agent.statePath)
    world.agent.byHand('a.txt', 'by hand\n')
    const preview = await cli.json('rewind', agent.session, two)
    expect(preview.changes).toMatchObject([{ action: 'restore' }, { action: 'delete' }])
    expect(readFileSync(agent.statePath).equals(serialiseState(before))).toBe(true)

    expect((await cli.json('rewind', agent.session, two, '--apply')).exitCode).toBe(0)
    expect(contentOf(world)).toEqual({ 'a.txt': 'a1\n' })
    const after = stateOf(agent.statePath)
    const point = after.snapshots.at(-1)
    expect(point).toMatchObject({ kind: 'redo-point', createdAt: '2026-11-30T12:00:00.000Z' })
    expect(after.redo).toMatchObject([{ type: 'code', restoreKey: point?.key, oldLeafId: null }])
    expect(after.snapshots.slice(0, -1)).toEqual(before.snapshots)
    const saved = point?.files.get('a.txt')
    expect(saved?.version).toBe(4)
    expect(readFileSync(join(world.root, agent.session, 'backups', saved?.backupFileName ?? ''), 'utf8')).toBe('by hand\n')

    expect((await cli.json('redo', agent.session)).changes).toHaveLength(2)
    expect((await cli.json('redo', agent.session, '--apply')).exitCode).toBe(0)
    expect(contentOf(world)).toEqual({ 'a.txt': 'by hand\n', 'b.txt': 'b1\n' })
    expect(statSync(join(world.project, 'b.txt')).mode & 0o777).toBe(0o600)
    expect(stateOf(agent.statePath).redo).toEqual([])
    expect((await cli.json('redo', agent.session, '--apply')).exitCode).toBe(1)
  })

  it('take a number above every one present for a redo point, never a name that is there (weakness 7)', async () => {
    const world = await home()
    const { cli, agent } = world
    const folder = join(world.root, agent.session, 'backups')
    const hash = readdirSync(folder)[0]?.slice(0, 16) ?? ''
    const key = stateOf(agent.statePath).trackedFiles.find((path) => stateOf(agent.statePath).originals.get(path)?.backupFileName?.startsWith(hash)) ?? 'a.txt'
    writeFileSync(join(folder, `${hash}@v9`), 'stale\n')
    utimesSync(join(folder, `${hash}@v9`), new Date('2026-11-29T09:00:00Z'), new Date('2026-11-29T09:00:00Z'))
    await cli.json('rewind', agent.session, agent.messages[0] ?? '', '--apply')
    const version = stateOf(agent.statePath).snapshots.at(-1)?.files.get(key)?.version
    expect(version).toBe(key === 'a.txt' ? 10 : 3)
    expect(readFileSync(join(folder, `${hash}@v9`), 'utf8')).toBe('stale\n')
  })

  it('expire whole sessions by their last activity, and bring them back from the trash as they were', async () => {
    const { cli, agent, root, home: folder } = await home()
    agent.age('2026-10-01T09:00:00.000Z')
    mkdirSync(join(root, 'not-a-session'))
    writeFileSync(join(root, 'not-a-session', 'notes.txt'), 'mine')
    const before = snapshotTree(root)
    const run = await cli.json('expire', '--apply', '--no-clock-check', '--now', '2027-02-01T00:00:00.000Z')
    expect(run).toMatchObject({ exitCode: 0, applied: true })
    expect(existsSync(join(root, agent.session))).toBe(false)
    expect(readFileSync(join(root, 'not-a-session', 'notes.txt'), 'utf8')).toBe('mine')
    expect(existsSync(join(folder, '.pi', '.rewind-admin', 'file-history', 'trash'))).toBe(true)
    expect(existsSync(agent.conversationPath)).toBe(true)
    const restored = await cli.json('trash', 'restore', run.runId ?? '')
    expect(restored.exitCode).toBe(0)
    expect(entriesBelow(snapshotTree(root), agent.session)).toEqual(entriesBelow(before, agent.session))
  })

  it('purge the sessions of a project, and nothing that is not of it', async () => {
    const { cli, agent, root, project, home: folder } = await home()
    const other = new PiAgent({ ...piPlaces(folder), project: join(folder, 'other') }, 'other')
    other.age('2026-11-29T09:00:00.000Z')
    expect((await cli.json('purge', project, '--apply')).exitCode).toBe(0)
    expect(readdirSync(root)).toEqual([other.session])
    expect(existsSync(agent.conversationPath)).toBe(true)
  })

  it('run the nightly job from end to end', async () => {
    const { cli, root } = await home()
    const before = snapshotTree(root)
    const { stdout, exitCode, stderr } = await cli('run', 'nightly', '--apply')
    expect(exitCode, stdout + stderr).toBe(0)
    expect(snapshotTree(root)).toEqual(before)
  })
})

function entriesBelow(tree: Tree, folder: string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(tree).filter(([path]) => path.startsWith(`${folder}/`)))
}

describe('cap', () => {
  it.each(['a-basic', 'b-binary-modes-names', 'c1-redo-stack', 'c2-redo-overflow', 'd1-fork-fresh', 'e1-cap', 'e3-cap-one', 'f1-deleted'])(
    'of %s keeps the snapshots and backups that the plugin keeps, at every cap',
    async (scenario) => {
      const { oracle } = await extractPi(scenario)
      const caps = oracle.cap ?? []
      expect(caps.length).toBeGreaterThan(0)
      for (const { session, max, keptSnapshotIds, backupsKept } of caps) {
        const extracted = await extractPi(scenario)
        const run = await on(extracted).json('cap', '--session', session, '--max', String(max), '--apply')
        expect(run.exitCode, `${session} ${String(max)}`).toBe(0)
        const state = stateOf(join(extracted.root, session, 'state.json'))
        expect(state.snapshots.map(({ id }) => id), `${session} ${String(max)}`).toEqual(keptSnapshotIds)
        expect(readdirSync(join(extracted.root, session, 'backups')).sort()).toEqual([...backupsKept].sort())
      }
    },
    60_000,
  )
})

describe('fork', () => {
  const target = uuidOf('pi fork')
  const source = '019b0000-0000-7000-8000-000000000118'

  it('makes what the plugin makes: the state under the new id without a redo stack, the named backups linked', async () => {
    const extracted = await extractPi('d1-fork-fresh')
    const { root } = extracted
    const made = '019b0000-0000-7000-8000-000000000119'
    const run = await on(extracted).json('fork', source, target)
    expect(run).toMatchObject({ exitCode: 0, linked: 7, copied: 0 })
    expect(readFileSync(join(root, target, 'state.json'), 'utf8').replaceAll(target, made)).toBe(readFileSync(join(root, made, 'state.json'), 'utf8'))
    for (const name of readdirSync(join(root, made, 'backups'))) {
      expect(statSync(join(root, target, 'backups', name)).ino).toBe(statSync(join(root, source, 'backups', name)).ino)
    }
    expect(readdirSync(root).sort()).toEqual([source, made, target].sort())
  })

  it('links what the state names and no orphan (weakness 7)', async () => {
    const extracted = await extractPi('j1-crash-orphan')
    const run = await on(extracted).json('fork', '019b0000-0000-7000-8000-000000000150', target)
    expect(run.exitCode).toBe(0)
    expect(readdirSync(join(extracted.root, target, 'backups'))).toEqual(['e4723ca56658f19d@v1'])
  })

  it.each([
    ['a session that exists (weakness 14)', 'd1-fork-fresh', source, '019b0000-0000-7000-8000-000000000119'],
    ['a session with a cut state (weakness 15)', 'n-damaged', '019b0000-0000-7000-8000-000000000160', target],
    ['a session without a state', 'n-damaged', '019b0000-0000-7000-8000-000000000163', target],
    ['a session with a damaged snapshot', 'n-damaged', '019b0000-0000-7000-8000-000000000166', target],
    ['a session of a newer version', 'n-damaged', '019b0000-0000-7000-8000-000000000161', target],
  ])('refuses %s and changes nothing', async (_, scenario, from, to) => {
    const extracted = await extractPi(scenario)
    const { '.': root, ...before } = snapshotTree(extracted.root)
    const run = await on(extracted)('fork', from, to)
    expect(run.exitCode).not.toBe(0)
    // What was staged is gone again; the time of the root tells that it was there.
    expect(snapshotTree(extracted.root)).toEqual({ ...before, '.': { ...root, mtime: expect.any(String) as string } })
  })

  it('refuses a session that was started in another folder, a folder below included (weakness 13)', async () => {
    const extracted = await extractPi('d3-fork-subdir')
    rmSync(join(extracted.root, '019b0000-0000-7000-8000-000000000108'), { recursive: true })
    const run = await on(extracted)('fork', '019b0000-0000-7000-8000-000000000107', '019b0000-0000-7000-8000-000000000108')
    expect(run.exitCode).toBe(3)
    expect(run.stderr).toContain('the paths would mean other files there')
    expect(readdirSync(extracted.root)).toEqual(['019b0000-0000-7000-8000-000000000107'])
  })

  it('refuses when no conversation says where the source was started, unless --cwd does', async () => {
    const extracted = await extractPi('d1-fork-fresh')
    rmSync(extracted.sessions, { recursive: true })
    expect((await on(extracted)('fork', source, target)).exitCode).toBe(3)
    expect((await on(extracted)('fork', source, target, '--cwd', extracted.project)).exitCode).toBe(0)
  })
})
