import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { SessionReading } from '../../../src/model/session.js'
import { SimulatedAgent, type Generation } from '../../helpers/agent.js'
import { openClaudeCode } from '../../../src/formats/claude-code/index.js'
import { corpusStores, extractStore } from '../../helpers/corpus.js'
import * as damage from '../../helpers/damage.js'
import { assistantLine, delta, emptyRoot, H, H2, S1, S2, snap, toolResultLine, userLine, writeTranscript } from '../../helpers/store.js'
import { now, read, reading } from './scanning.js'

describe('what a session says about itself', () => {
  test('project, folders, client, entry point, size and times', async () => {
    const root = await emptyRoot()
    const lines = [userLine('m1', { cwd: '/p/one', version: '2.1.9', entrypoint: 'sdk-ts', time: '2026-11-02T00:00:00.000Z' }), assistantLine('x', { time: '2026-11-05T00:00:00.000Z' })]
    const path = writeTranscript(root, '-p', S1, lines, { mtime: '2026-11-20T00:00:00.000Z' })
    expect(read(root)).toMatchObject({
      id: S1,
      project: '/p/one',
      folders: ['/p/one'],
      clientVersion: '2.1.9',
      entrypoint: 'sdk-ts',
      lastRecorded: Date.parse('2026-11-05T00:00:00.000Z'),
      lastWritten: Date.parse('2026-11-20T00:00:00.000Z'),
      transcriptBytes: readFileSync(path).length,
      findings: [],
      damaged: false,
      busy: false,
    })
  })

  test('R83: counts the bytes of its history lines, whatever stands between them', async () => {
    const root = await emptyRoot()
    const history = [snap('m1', { a: `${H}@v1` }), snap('m1', { a: `${H}@v1`, b: null }, undefined, { update: true }), delta('m2', 'm1', 'c', `${H}@v2`)]
    writeTranscript(root, '-p', S1, [userLine('m1'), ...history, userLine('m2', { text: '"type":"file-history-snapshot"' }), assistantLine('x')])
    expect(read(root).historyBytes).toBe(history.reduce((sum, line) => sum + Buffer.byteLength(line), 0))
    writeTranscript(root, '-p', S1, [userLine('m1')])
    expect(read(root).historyBytes).toBe(0)
  })

  test('R45: a file of nothing but snapshots is a session, an empty one too', async () => {
    const snapshots = await reading([snap('m1', { a: `${H}@v1` })])
    expect([snapshots.history.checkpoints.length, snapshots.findings, snapshots.project]).toEqual([1, [], undefined])
    expect((await reading([])).findings).toEqual([])
  })

  test('a time in the future is kept apart', async () => {
    const found = await reading([userLine('m1', { time: '2026-11-02T00:00:00.000Z' }), userLine('m2', { time: '2027-01-01T00:00:00.000Z' })])
    expect([found.lastRecorded, found.future]).toEqual([Date.parse('2026-11-02T00:00:00.000Z'), Date.parse('2027-01-01T00:00:00.000Z')])
  })
})

describe('every generation', () => {
  const kinds: Readonly<Record<Generation, readonly string[]>> = {
    G1: ['file-history-snapshot'],
    G2: ['file-history-snapshot'],
    G3: ['file-history-snapshot', 'file-history-delta'],
    G4: ['file-history-snapshot', 'file-history-delta'],
  }

  async function simulated(generation: Generation): Promise<SimulatedAgent> {
    const root = await emptyRoot()
    const project = join(root, '..', 'project')
    mkdirSync(project)
    writeFileSync(join(project, 'a.txt'), 'one\n')
    return new SimulatedAgent({ root, project, generation })
  }

  function records(found: SessionReading): Record<string, Record<string, string | null>> {
    return Object.fromEntries(found.history.checkpoints.map(({ id, files }) => [id, Object.fromEntries([...files].map(([path, { name }]) => [path, name]))]))
  }

  function recordsOf(agent: SimulatedAgent): Record<string, Record<string, string | null>> {
    return Object.fromEntries(agent.checkpoints.map((id) => [id, Object.fromEntries([...agent.records(id)].map(([path, { backupFileName: name }]) => [path, name]))]))
  }

  test.each(Object.keys(kinds) as Generation[])('%s: the checkpoints are those that the client had in memory', async (generation) => {
    const agent = await simulated(generation)
    for (let turn = 0; turn < 4; turn += 1) {
      agent.prompt(`turn ${String(turn)}`, { late: turn === 2 && generation !== 'G1' })
      agent.write('a.txt', `text ${String(turn)}\n`)
      if (turn % 2 === 1) agent.write(`new-${String(turn)}.txt`, 'new\n')
    }
    agent.remove('a.txt')
    agent.prompt('last')
    agent.end()
    const found = read(agent.root, { session: agent.session, evidence: true })
    expect(records(found)).toEqual(recordsOf(agent))
    expect(found.findings).toEqual([])
    expect(found.evidence?.withoutMessage).toEqual([])
    expect(found.evidence?.foreignLines).toBe(0)
    const written = new Set(Array.from(readFileSync(agent.transcript, 'utf8').matchAll(/"type":"(file-history-[a-z]+)"/g), ([, kind]) => kind))
    expect([...written]).toEqual(kinds[generation])
    const parents = [...found.history.references.values()].map(({ parent }) => parent !== undefined)
    expect(new Set(parents)).toEqual(new Set([generation === 'G4']))
  })

  test('several generations in one file are decided line by line', async () => {
    const agent = await simulated('G1')
    for (const generation of ['G2', 'G3', 'G4'] as const) {
      agent.prompt('on')
      agent.write(`${generation}.txt`, 'x\n')
      agent.resumeAs(generation)
    }
    agent.prompt('last')
    agent.end()
    const found = read(agent.root, { session: agent.session })
    expect(records(found)).toEqual(recordsOf(agent))
    expect(found.findings).toEqual([])
  })

  test('snapshot lines in any order give the same checkpoints and the same files', async () => {
    const agent = await simulated('G4')
    for (let turn = 0; turn < 4; turn += 1) {
      agent.prompt('on')
      agent.write('a.txt', `text ${String(turn)}\n`)
    }
    agent.end()
    const isSnapshot = (line: Record<string, unknown>): boolean => line.type === 'file-history-snapshot'
    const first = damage.findLine(agent.root, agent.session, isSnapshot)
    const lines = damage.linesOf(agent.root, agent.session)
    const last = lines.findLastIndex((line) => line.includes('"type":"file-history-snapshot"'))
    damage.swapLines(agent.root, agent.session, first, last)
    const found = read(agent.root, { session: agent.session })
    expect(records(found)).toEqual(recordsOf(agent))
    expect(found.findings).toEqual([])
  })

  test('2.1.332 mixed in the corpus: 2.1.112 continued by 2.1.332, 8 checkpoints', async () => {
    const store = await extractStore('2.1.332', 'mixed')
    const found = read(store.root, { session: 'db38eeca-8f54-4dd3-956f-65d42472ae89' })
    expect([found.history.checkpoints.length, found.history.references.size, found.clientVersion, found.findings]).toEqual([8, 7, '2.1.112', []])
  })
})

describe('R76: one session id in two project folders', () => {
  test('references of both count, findings name the right file, the folders are those of both', async () => {
    const root = await emptyRoot()
    writeTranscript(root, '-a', S1, [userLine('m1', { cwd: '/a' }), snap('m1', { x: `${H}@v1` }), '{"cut'], { mtime: '2026-10-01T00:00:00.000Z' })
    writeTranscript(root, '-b', S1, [userLine('m2', { cwd: '/b', time: '2026-11-10T00:00:00.000Z' }), snap('m2', { x: `${H2}@v2` })], { mtime: '2026-11-11T00:00:00.000Z' })
    const found = read(root)
    expect([...found.history.references.keys()]).toEqual([`${H}@v1`, `${H2}@v2`])
    expect(found).toMatchObject({
      folders: ['/a', '/b'],
      lastRecorded: Date.parse('2026-11-10T00:00:00.000Z'),
      lastWritten: Date.parse('2026-11-11T00:00:00.000Z'),
    })
    expect(found.findings.map(({ id, place }) => [id, place?.path])).toEqual([['damaged-line', `projects/-a/${S1}.jsonl`]])
  })

  test('lines that name another session are counted', async () => {
    const found = await reading([userLine('m1'), userLine('m2', { session: S2 }), assistantLine('x', { session: S2 }), snap('m1')], true)
    expect(found.evidence?.foreignLines).toBe(2)
  })

  test('a session id in a text is no line of another session', async () => {
    const found = await reading([userLine('m1', { text: `{"sessionId":"${S2}","uuid":"x"}` })], true)
    expect(found.evidence?.foreignLines).toBe(0)
  })
})

describe('evidence', () => {
  test('only when asked for', async () => {
    expect(await reading([userLine('m1')])).not.toHaveProperty('evidence')
  })

  test('edits in the order of the lines, makers of version 1, checkpoints without a message', async () => {
    const edit = (uuid: string, path: string): string => toolResultLine(uuid, { filePath: path, originalFile: 'x', content: 'y' })
    const m1 = '00000000-0000-4000-8000-000000000001'
    const lines = [
      userLine(m1), snap(m1), delta('e1', m1, 'a', `${H}@v1`), edit('u1', '/p/a'), edit('u2', '/p/b'),
      snap(m1, { a: `${H}@v1`, b: `${H2}@v1` }, undefined, { update: true, outer: 'e2' }), snap('m2'),
    ]
    const { evidence } = await reading(lines, true)
    expect(evidence?.edits.map(({ path }) => path)).toEqual(['/p/a', '/p/b'])
    expect(Object.fromEntries(evidence?.makers ?? [])).toEqual({ a: 'e1', b: 'e2' })
    expect(evidence?.withoutMessage).toEqual(['m2'])
  })
})

describe('a reading without history', () => {
  // What expiry asks for.
  const asked = ({ project, folders, lastRecorded, lastWritten, future, busy, findings }: SessionReading): object => {
    const keeps = findings.filter(({ id }) => id === 'newer-format' || id === 'busy' || id === 'unreadable' || id === 'not-regular')
    return { project, folders, lastRecorded, lastWritten, future, busy, keeps }
  }

  test.each(corpusStores('claude-code').map(({ version, scenario }) => [version, scenario] as const))(
    'R03: says of %s/%s the same times, folders and reasons to keep as a whole one',
    async (version, scenario) => {
      const { root } = await extractStore(version, scenario)
      const store = openClaudeCode(root, { home: root, env: {}, platform: 'linux' })
      for (const session of store.inventory().sessions) {
        expect(asked(store.read(session, { now, history: false }))).toEqual(asked(store.read(session, { now })))
      }
    },
  )

  test('R45: a line of a newer type still keeps the session, wherever it stands', async () => {
    const root = await emptyRoot()
    const newer = '{"type":"file-history-future","messageId":"m2"}'
    writeTranscript(root, '-p', S1, [userLine('m1'), snap('m1', { a: `${H}@v1` }), delta('x', 'm1', 'b', `${H2}@v1`), newer, assistantLine('x')])
    const store = openClaudeCode(root, { home: root, env: {}, platform: 'linux' })
    const [session] = store.inventory().sessions
    if (session === undefined) throw new Error('no session')
    const found = store.read(session, { now, history: false })
    expect(found.findings.map(({ id }) => id)).toContain('newer-format')
    expect(found.history.checkpoints).toEqual([])
  })
})
