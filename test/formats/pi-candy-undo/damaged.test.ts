import { chmodSync, existsSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openPiCandyUndo } from '../../../src/formats/pi-candy-undo/index.js'
import { parseState, serialiseState, type State } from '../../../src/formats/pi-candy-undo/state.js'
import { findCheckpoint, resolve } from '../../../src/model/resolve.js'
import { cliIn, type Cli, type Envelope } from '../../cli/world.js'
import { PiAgent, piPlaces, type PiPlaces } from '../../helpers/pi.js'
import { extractPi, type PiStore } from '../../helpers/pi-corpus.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { sameTree, snapshotTree } from '../../helpers/tree.js'

const later = '2026-12-10T00:00:00.000Z'
const yesterday = '2026-11-29T09:00:00.000Z'

function on({ root, sessions, base }: PiStore): Cli {
  const cli = cliIn(base)
  const args = ['--root', root, '--conversations', sessions]
  const given = (argv: readonly string[]): readonly string[] => [...argv, ...args, ...(argv.includes('--now') ? [] : ['--now', later])]
  return Object.assign((...argv: readonly string[]) => cli(...given(argv)), { home: base, json: (...argv: readonly string[]) => cli.json(...given(argv)) })
}

function found({ findings }: Envelope): string[] {
  return findings.map(({ id, session }) => `${typeof session === 'string' ? session.slice(-3) : '-'} ${String(id)}`)
}

function stateOf(path: string): State {
  const parsed = parseState(readFileSync(path))
  if (parsed.kind !== 'state') throw new Error(JSON.stringify(parsed))
  return parsed.state
}

interface Home extends PiPlaces {
  readonly cli: Cli
  readonly agent: PiAgent
  readonly state: State
  /** Writes the state again, a day old, with what is changed in it. */
  readonly put: (changes: Partial<State>) => void
}

async function home(): Promise<Home> {
  const places = piPlaces(await temporaryFolder())
  const agent = new PiAgent(places, 'damage')
  agent.byHand('a.txt', 'a0\n')
  agent.prompt('one')
  agent.edit('a.txt', 'a1\n')
  agent.prompt('two')
  agent.edit('a.txt', 'a2\n')
  agent.age(yesterday)
  const state = stateOf(agent.statePath)
  const put = (changes: Partial<State>): void => {
    writeFileSync(agent.statePath, serialiseState({ ...state, ...changes }))
    utimesSync(agent.statePath, new Date(yesterday), new Date(yesterday))
  }
  return { ...places, agent, cli: cliIn(places.home), state, put }
}

describe('a store with ten damaged sessions', () => {
  it('has a finding for each problem, and verify fails (weaknesses 1, 3, 35)', async () => {
    const extracted = await extractPi('n-damaged')
    const before = snapshotTree(extracted.base)
    const run = await on(extracted).json('verify')
    expect(run.exitCode).toBe(1)
    const ids = found(run)
    for (const expected of [
      '160 state-damaged',
      '161 newer-format',
      '162 state-damaged',
      '163 state-damaged',
      '164 not-regular',
      '165 state-damaged',
      '166 state-damaged',
      '167 missing-backup',
    ]) {
      expect(ids).toContain(expected)
    }
    // The bytes of 168 were changed before anybody could know them; 169 has fields that nobody knows, which is no fault.
    expect(ids.filter((id) => id.startsWith('168') || id.startsWith('169'))).toEqual([])
    expect(run.findings.find(({ session }) => String(session).endsWith('166'))?.message).toContain('$.snapshots[1]')
    sameTree(extracted.base, before)
  })

  it('loses nothing to any command that removes, however old it is', async () => {
    const extracted = await extractPi('n-damaged')
    const cli = on(extracted)
    const old = '2028-12-10T00:00:00.000Z'
    const before = snapshotTree(extracted.root)
    for (const argv of [
      ['cap', '--max', '1', '--session'],
      ['fork'],
      ['rewind'],
    ] as const) {
      for (const damage of ['160', '161', '162', '163', '164', '165']) {
        const session = `019b0000-0000-7000-8000-000000000${damage}`
        const rest = argv[0] === 'fork' ? ['019b0000-0000-7000-8000-000000000200'] : argv[0] === 'rewind' ? ['aaaa0001'] : []
        const run = await cli(...argv, session, ...rest, ...(argv[0] === 'fork' ? [] : ['--apply']), '--now', old)
        if (argv[0] !== 'cap') expect(run.exitCode, `${argv[0]} ${damage}`).not.toBe(0)
        if (argv[0] === 'rewind') expect(run.exitCode).toBe(damage === '161' ? 12 : 1)
      }
    }
    await cli('expire', '--apply', '--no-clock-check', '--max-delete', '100%', '--now', old)
    const after = snapshotTree(extracted.root)
    const sessions = ['160', '161', '162', '163', '164', '165', '166'].map((number) => `019b0000-0000-7000-8000-000000000${number}`)
    for (const [path, node] of Object.entries(before)) {
      if (sessions.some((session) => path.startsWith(`${session}/`))) expect(after[path], path).toEqual(node)
    }
    for (const session of ['167', '168', '169']) expect(after[`019b0000-0000-7000-8000-000000000${session}`]).toBeUndefined()
  })

  it('is repaired as far as the backups and what is left prove, and the broken states wait in the trash', async () => {
    const extracted = await extractPi('n-damaged')
    const cli = on(extracted)
    const run = await cli.json('repair', '--apply')
    // In 160 to 165 the first versions of a.txt and b.txt are named by the hashes of paths that the project has.
    expect(run.plan.map(({ session }) => String(session).slice(-3)).sort()).toEqual(['160', '162', '163', '164', '165', '166'])
    for (const damage of ['160', '162', '163', '164', '165']) {
      const state = stateOf(join(extracted.root, `019b0000-0000-7000-8000-000000000${damage}`, 'state.json'))
      expect(state.originals.get('a.txt')?.backupFileName, damage).toBe('18b7cb099a9ea3f5@v1')
      expect(state.originals.get('b.txt')?.backupFileName, damage).toBe('ffa0da5d885fba09@v1')
      expect(state.snapshots[0]?.kind, damage).toBe('baseline')
    }
    const ids = found(await cli.json('verify'))
    expect(ids.filter((id) => id.endsWith('state-damaged') || id.endsWith('not-regular'))).toEqual([])
    expect(ids).toContain('161 newer-format')
    expect((await cli.json('repair')).plan).toEqual([])
    expect((await cli.json('trash', 'restore', run.runId ?? '')).exitCode).not.toBe(2)
  })

  it('keeps the snapshots of 165 and the whole ones of 166 when it is repaired', async () => {
    const extracted = await extractPi('n-damaged')
    const places = ['165', '166'].map((number) => join(extracted.root, `019b0000-0000-7000-8000-000000000${number}`, 'state.json'))
    const raw = places.map((path) => JSON.parse(readFileSync(path, 'utf8')) as { snapshots: ({ id: string } | null)[] })
    await on(extracted).json('repair', '--apply')
    places.forEach((path, index) => {
      expect(stateOf(path).snapshots.map(({ id }) => id)).toEqual(raw[index]?.snapshots.flatMap((each) => (each === null ? [] : [each.id])))
    })
  })
})

describe('a session whose state was replaced by an empty one', () => {
  it('is told from a new one, and its backups are never collected (weakness 2)', async () => {
    const extracted = await extractPi('k-wiped-by-print-mode')
    const cli = on(extracted)
    const before = snapshotTree(extracted.root)
    const run = await cli.json('verify')
    expect(run.exitCode).toBe(1)
    expect(found(run)).toContain('151 state-wiped')
    await cli('cap', '--max', '1', '--apply')
    await cli('expire', '--apply', '--no-clock-check', '--max-delete', '100%', '--now', '2028-12-10T00:00:00.000Z')
    sameTree(extracted.root, before)
  })

  it('gets back what is proven: the file as it was before the agent touched it', async () => {
    const extracted = await extractPi('k-wiped-by-print-mode')
    const path = join(extracted.root, '019b0000-0000-7000-8000-000000000151', 'state.json')
    const run = await on(extracted).json('repair', '--apply')
    expect(run.plan[0]?.reason).toContain('2 backups are named by nothing that is left')
    expect([...stateOf(path).originals]).toMatchObject([['a.txt', { backupFileName: '18b7cb099a9ea3f5@v1', version: 1 }]])
  })

  it('is no finding when there are no backups: that is a new session', async () => {
    const places = piPlaces(await temporaryFolder())
    new PiAgent(places, 'new').age(yesterday)
    expect((await cliIn(places.home).json('verify')).findings).toEqual([])
  })
})

describe('what a crash leaves', () => {
  it('both orphans are listed, as dangerous as they are (weaknesses 7 and 29)', async () => {
    const run = await on(await extractPi('j1-crash-orphan')).json('verify')
    const places = run.findings.flatMap(({ id, place }) => (id === 'reusable-orphan' ? [String(place).split('/').at(-1)] : []))
    expect(places.sort()).toEqual(['e4723ca56658f19d@v2', 'ef38f77bd07a2c12@v1'])
  })

  it('an old temporary file is reported, a young one may be in use (weakness 31)', async () => {
    const { cli, agent, root } = await home()
    const old = join(root, agent.session, 'state.json.tmp-12-0123abcd')
    writeFileSync(old, '{')
    utimesSync(old, new Date(yesterday), new Date(yesterday))
    const young = join(root, agent.session, 'backups', '18b7cb099a9ea3f5@v3.tmp-12-0123abcd')
    writeFileSync(young, '')
    utimesSync(young, new Date('2026-11-30T11:50:00Z'), new Date('2026-11-30T11:50:00Z'))
    const run = await cli.json('verify')
    expect(run.findings.flatMap(({ id, place }) => (id === 'stale-temp' ? [place] : []))).toEqual([`${agent.session}/state.json.tmp-12-0123abcd`])
  })

  it('a whole temporary state is what repair puts in the place of a broken one, byte for byte', async () => {
    const { cli, agent, root } = await home()
    const whole = readFileSync(agent.statePath)
    const temporary = join(root, agent.session, 'state.json.tmp-12-0123abcd')
    writeFileSync(temporary, whole)
    writeFileSync(agent.statePath, '')
    for (const path of [temporary, agent.statePath]) utimesSync(path, new Date(yesterday), new Date(yesterday))
    expect((await cli.json('repair')).plan).toMatchObject([{ action: 'rebuild', path: `${agent.session}/state.json` }])
    expect(statSync(agent.statePath).size).toBe(0)
    const run = await cli.json('repair', '--apply')
    expect(run).toMatchObject({ exitCode: 0, applied: true })
    expect(readFileSync(agent.statePath).equals(whole)).toBe(true)
    await cli.json('trash', 'restore', run.runId ?? '')
    expect(existsSync(temporary)).toBe(true)
  })

  it('a state that was cut keeps its whole snapshots, and no half of one', async () => {
    const { cli, agent, state } = await home()
    const text = readFileSync(agent.statePath, 'utf8')
    const cut = text.indexOf('"kind": "operation"', text.indexOf('"kind": "operation"') + 1)
    writeFileSync(agent.statePath, text.slice(0, cut))
    utimesSync(agent.statePath, new Date(yesterday), new Date(yesterday))
    await cli.json('repair', '--apply')
    const mended = stateOf(agent.statePath)
    expect(mended.snapshots.map(({ id }) => id)).toEqual(state.snapshots.slice(0, 2).map(({ id }) => id))
    expect(mended.originals.get('a.txt')?.backupFileName).toBe(state.originals.get('a.txt')?.backupFileName)
  })

  it('a session that was written to a short while ago is not repaired: an open pi writes over it (weakness 28)', async () => {
    const { cli, agent } = await home()
    writeFileSync(agent.statePath, '')
    utimesSync(agent.statePath, new Date('2026-11-30T11:59:00Z'), new Date('2026-11-30T11:59:00Z'))
    utimesSync(agent.conversationPath, new Date('2026-11-30T11:59:00Z'), new Date('2026-11-30T11:59:00Z'))
    const run = await cli.json('repair', '--apply')
    expect(run.plan).toEqual([])
    expect(run.kept).toHaveLength(1)
    expect(statSync(agent.statePath).size).toBe(0)
  })
})

describe('what a state says is never trusted', () => {
  it('a name that is no name of a backup is never followed, a relative key never leads out (weakness 25)', async () => {
    const { cli, agent, state, put, home: folder } = await home()
    writeFileSync(join(folder, 'secret'), 'secret\n')
    const record = (backupFileName: string): State['originals'] => new Map([['x', { backupFileName, version: 1, backupTime: yesterday }]])
    put({ trackedFiles: ['x'], originals: record('../../../../secret') })
    const run = await cli.json('verify')
    expect(found(run).map((id) => id.slice(4))).toContain('unsafe-name')
    expect((await cli.json('rewind', agent.session, 'baseline', '--apply')).exitCode).toBe(3)
    put({ trackedFiles: ['../secret'], originals: new Map([['../secret', state.originals.get('a.txt') ?? { backupFileName: null, version: 1 }]]) })
    expect(found(await cli.json('verify')).map((id) => id.slice(4))).toContain('odd-path')
    await cli.json('rewind', agent.session, 'baseline', '--apply', '--partial')
    expect(readFileSync(join(folder, 'secret'), 'utf8')).toBe('secret\n')
  })

  it('two keys of one file, an empty key and one of Windows have a finding (weaknesses 16 and 18)', async () => {
    const { cli, put, state, project } = await home()
    put({ trackedFiles: [...state.trackedFiles, join(project, 'a.txt'), '', 'C:/x.txt'] })
    const messages = (await cli.json('verify')).findings.flatMap(({ id, message }) => (id === 'odd-path' ? [String(message)] : []))
    expect(messages).toHaveLength(3)
    expect(messages.some((message) => message.includes('are one file'))).toBe(true)
  })

  it('a key twice means the last for a message and the first for a redo, and an id always the one (weakness 12)', async () => {
    const { cli, agent, state, put, root, conversations } = await home()
    const [baseline, one, two] = state.snapshots
    if (baseline === undefined || one === undefined || two === undefined) throw new Error('three snapshots were made')
    put({ snapshots: [baseline, { ...one, key: 'same' }, { ...two, key: 'same' }], redo: [{ type: 'code', restoreKey: 'same', oldLeafId: null, createdAt: yesterday }] })
    expect(found(await cli.json('verify')).map((id) => id.slice(4))).toContain('duplicate-checkpoint')
    const store = openPiCandyUndo(root, { home: root, env: {}, platform: 'linux', conversations })
    const ref = store.inventory().sessions[0]
    if (ref === undefined) throw new Error(`no session ${agent.session}`)
    const reading = store.read(ref, { now: Date.parse(later) })
    expect(findCheckpoint(reading.history, 'same')?.id).toBe(two.id)
    expect(store.agentRedo?.top(ref, reading)).toMatchObject({ checkpoint: { id: one.id } })
    expect(findCheckpoint(reading.history, one.id ?? '')?.id).toBe(one.id)
  })

  it('a redo item without its snapshot is reported and not followed (section 16)', async () => {
    const { cli, agent, put } = await home()
    put({ redo: [{ type: 'code', restoreKey: 'gone', oldLeafId: null, createdAt: yesterday }] })
    expect((await cli.json('verify')).findings.map(({ message }) => String(message)).join()).toContain('the redo stack names the snapshot gone')
    expect((await cli.json('redo', agent.session, '--apply')).exitCode).toBe(1)
  })

  it('keys from the prototype of objects are names like any other (weakness 17)', async () => {
    const { put, root, conversations } = await home()
    const record = { backupFileName: null, version: 1, backupTime: yesterday }
    put({ trackedFiles: ['__proto__', 'constructor'], originals: new Map([['__proto__', record], ['constructor', record]]) })
    const store = openPiCandyUndo(root, { home: root, env: {}, platform: 'linux', conversations })
    const reading = store.read(store.inventory().sessions[0] ?? { id: '', members: [] }, { now: Date.parse(later) })
    const baseline = findCheckpoint(reading.history, 'baseline')
    if (baseline === undefined) throw new Error('no baseline')
    expect([...resolve(reading.history, baseline)].map(([path, { state }]) => [path, state])).toEqual([['__proto__', 'absent'], ['constructor', 'absent']])
  })

  it('nothing in the store is followed when it is a link or a pipe', async () => {
    const { cli, agent, root, home: folder } = await home()
    symlinkSync(folder, join(root, '019b0000-0000-7000-8000-000000000300'))
    const target = join(folder, 'elsewhere.json')
    writeFileSync(target, readFileSync(agent.statePath))
    rmSync(agent.statePath)
    symlinkSync(target, agent.statePath)
    const run = await cli.json('verify')
    expect(run.findings.filter(({ id }) => id === 'not-regular')).toHaveLength(2)
    expect((await cli.json('rewind', agent.session, 'baseline', '--apply')).exitCode).toBe(1)
  })
})

describe('a rewind', () => {
  it('refuses while the state is damaged and leaves the working tree alone', async () => {
    const { cli, agent, project } = await home()
    const text = readFileSync(agent.statePath, 'utf8').replace('"redo": []', '"redo": [7]')
    writeFileSync(agent.statePath, text)
    const run = await cli.json('rewind', agent.session, agent.messages[1] ?? '', '--apply')
    expect(run.exitCode).toBe(11)
    expect(readFileSync(join(project, 'a.txt'), 'utf8')).toBe('a2\n')
    expect(readFileSync(agent.statePath, 'utf8')).toBe(text)
  })

  it('compares bytes where the plugin trusts times and sizes (weakness 9)', async () => {
    const { cli, agent, project } = await home()
    const file = join(project, 'a.txt')
    writeFileSync(file, 'xx\n')
    utimesSync(file, new Date('2020-01-01T00:00:00Z'), new Date('2020-01-01T00:00:00Z'))
    expect((await cli.json('rewind', agent.session, agent.messages[1] ?? '')).changes).toHaveLength(1)
  })

  it('says that a folder stands at the path, and that a hard link does (weakness 24)', async () => {
    const { cli, agent, project } = await home()
    const file = join(project, 'a.txt')
    linkSync(file, join(project, 'second'))
    expect((await cli.json('rewind', agent.session, 'baseline')).skipped).toMatchObject([{ reason: 'it is a hard link (link count 2)' }])
    rmSync(file)
    mkdirSync(file)
    expect((await cli.json('rewind', agent.session, 'baseline')).skipped).toMatchObject([{ reason: 'it is a folder' }])
  })

  it('needs a working folder, and takes it from --cwd when no conversation has it (weakness 13)', async () => {
    const { cli, agent, project, conversations } = await home()
    rmSync(conversations, { recursive: true })
    const refused = await cli.json('rewind', agent.session, 'baseline', '--apply')
    expect(refused.exitCode).toBe(3)
    expect(readFileSync(join(project, 'a.txt'), 'utf8')).toBe('a2\n')
    expect((await cli.json('rewind', agent.session, 'baseline', '--apply', '--cwd', project)).exitCode).toBe(0)
    expect(readFileSync(join(project, 'a.txt'), 'utf8')).toBe('a0\n')
  })

  it('gives what it saves of a private file the mode of the file (weakness 32)', async () => {
    const { cli, agent, root, project } = await home()
    chmodSync(join(project, 'a.txt'), 0o600)
    await cli.json('rewind', agent.session, 'baseline', '--apply')
    const fresh = stateOf(agent.statePath).snapshots.at(-1)?.files.get('a.txt')?.backupFileName ?? ''
    expect(statSync(join(root, agent.session, 'backups', fresh)).mode & 0o777).toBe(0o600)
  })
})

describe('conversations of pi', () => {
  it('that say version 3 without ids in their messages are reported (R70)', async () => {
    const { cli, agent } = await home()
    const [header = ''] = readFileSync(agent.conversationPath, 'utf8').split('\n')
    writeFileSync(agent.conversationPath, `${header}\n${JSON.stringify({ type: 'message', message: { role: 'user', content: 'old' } })}\n`)
    expect(found(await cli.json('verify')).map((id) => id.slice(4))).toContain('version-lies')
  })

  it('that go on for days after the last snapshot are reported (R119)', async () => {
    const { cli, agent } = await home()
    const late = { type: 'message', id: 'late0001', parentId: null, timestamp: '2026-11-20T09:00:00.000Z', message: { role: 'user', content: 'still there?' } }
    writeFileSync(agent.conversationPath, `${readFileSync(agent.conversationPath, 'utf8')}${JSON.stringify(late)}\n`)
    expect(found(await cli.json('verify')).map((id) => id.slice(4))).toContain('checkpointing-stopped')
  })

  it('with a damaged line say nothing of the messages whose chain it breaks', async () => {
    const { agent, root, conversations } = await home()
    const lines = readFileSync(agent.conversationPath, 'utf8').split('\n')
    const tail = JSON.stringify({ type: 'message', id: 'tail0001', parentId: 'lost0001', timestamp: yesterday, message: { role: 'user', content: 'and now?' } })
    writeFileSync(agent.conversationPath, [lines[0], '{"type":"message","id":"lost0001"', tail, ''].join('\n'))
    const store = openPiCandyUndo(root, { home: root, env: {}, platform: 'linux', conversations })
    const ref = store.inventory().sessions[0] ?? { id: '', members: [] }
    expect(findCheckpoint(store.read(ref, { now: Date.parse(later) }).history, 'tail0001')).toBeUndefined()
    expect(store.messages(ref).map(({ id }) => id)).toEqual(['tail0001'])
  })

  it('that were started in two folders leave relative paths without a meaning', async () => {
    const { cli, agent, conversations, project } = await home()
    mkdirSync(join(conversations, 'copy'))
    writeFileSync(join(conversations, 'copy', 'x.jsonl'), readFileSync(agent.conversationPath, 'utf8').replaceAll(project, '/elsewhere'))
    expect(found(await cli.json('verify')).map((id) => id.slice(4))).toContain('duplicate-session')
    expect((await cli.json('rewind', agent.session, 'baseline', '--apply')).exitCode).toBe(3)
  })
})

describe('expiry', () => {
  it('goes by the newest of all times, where the plugin looks at the folder alone (weaknesses 4 and 5)', async () => {
    const extracted = await extractPi('i-expired')
    const cli = on(extracted)
    const run = await cli.json('expire', '--older-than', '30d', '--now', '2026-11-30T18:32:08.932Z')
    // The backups of all of them are of the day: only the plugin takes them for old.
    expect(run.plan).toEqual([])
    expect(extracted.oracle.cleanup?.find(({ cleanupPeriodDays }) => cleanupPeriodDays === 30)?.removed).toHaveLength(4)
    const names = readdirSync(extracted.root)
    await cli.json('expire', '--older-than', '30d', '--apply', '--no-clock-check', '--max-delete', '100%', '--now', '2028-01-01T00:00:00.000Z')
    expect(readdirSync(extracted.root)).toEqual(names.filter((name) => !name.startsWith('019b')))
  })
})
