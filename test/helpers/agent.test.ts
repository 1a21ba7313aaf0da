import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { SimulatedAgent, type Expected, type Generation } from './agent.js'
import { extractStore } from './corpus.js'
import { emptyRoot, S2 } from './store.js'

const generations: readonly Generation[] = ['G1', 'G2', 'G3', 'G4']
const corpusVersions: readonly (readonly [Generation, string])[] = [['G1', '2.0.64'], ['G2', '2.1.112'], ['G4', '2.1.332']]

let root = ''
let project = ''

beforeEach(async ({ onTestFinished }) => {
  root = await emptyRoot(onTestFinished)
  project = join(root, '..', 'project')
  mkdirSync(project)
})

type Json = Record<string, unknown>

function linesOf(path: string): Json[] {
  return readFileSync(path, 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line) as Json)
}

function textOf(expected: Expected | undefined): string | null {
  if (expected === undefined) throw new Error('not tracked')
  return expected.state === 'absent' ? null : expected.bytes.toString()
}

describe.each(generations)('the simulated agent, %s', (generation) => {
  test('writes the backups and records of a short history worked out by hand', () => {
    const agent = new SimulatedAgent({ root, project, generation })
    const p1 = agent.prompt('begin')
    agent.write('a.txt', 'A\n')
    const p2 = agent.prompt('edit')
    agent.edit('a.txt', 'A', 'B')
    agent.edit('a.txt', 'B', 'BB')
    const p3 = agent.prompt('look')
    agent.remove('a.txt')
    const p4 = agent.prompt('gone')
    const p5 = agent.prompt('still gone')
    agent.external('a.txt', 'C\n')
    agent.chmod('a.txt', 0o755)
    const p6 = agent.prompt('back')
    const p7 = agent.prompt('the same')
    agent.end()

    const hash = createHash('sha256').update(`${project}/a.txt`).digest('hex').slice(0, 16)
    const versions = [p1, p2, p3, p4, p5, p6, p7].map((id) => {
      const record = agent.records(id).get('a.txt')
      return [record?.backupFileName, record?.version]
    })
    expect(versions).toEqual([
      [null, 1], [`${hash}@v2`, 2], [`${hash}@v3`, 3], [null, 4], [null, 5], [`${hash}@v6`, 6], [`${hash}@v6`, 6],
    ])
    expect(readdirSync(agent.backups).sort()).toEqual([`${hash}@v2`, `${hash}@v3`, `${hash}@v6`])
    expect(readFileSync(join(agent.backups, `${hash}@v2`), 'utf8')).toBe('A\n')
    expect(readFileSync(join(agent.backups, `${hash}@v3`), 'utf8')).toBe('BB\n')
    expect(statSync(join(agent.backups, `${hash}@v3`)).mode & 0o7777).toBe(0o644)
    expect(readFileSync(join(agent.backups, `${hash}@v6`), 'utf8')).toBe('C\n')
    expect(statSync(join(agent.backups, `${hash}@v6`)).mode & 0o7777).toBe(0o755)
    expect([p1, p2, p3, p4, p6].map((id) => textOf(agent.expected(id).get(`${project}/a.txt`)))).toEqual([null, 'A\n', 'BB\n', null, 'C\n'])
  })

  test('a path without a record of its own is expected at its version 1', () => {
    const agent = new SimulatedAgent({ root, project, generation })
    agent.external('late.txt', 'first\n')
    const p1 = agent.prompt('nothing')
    const p2 = agent.prompt('edit')
    agent.edit('late.txt', 'first', 'second')
    expect(agent.records(p1).has('late.txt')).toBe(false)
    expect(agent.records(p2).get('late.txt')?.version).toBe(1)
    expect(textOf(agent.expected(p1).get(`${project}/late.txt`))).toBe('first\n')
  })

  test('puts the first edit on record the way its generation does', () => {
    const agent = new SimulatedAgent({ root, project, generation })
    const p1 = agent.prompt('begin')
    agent.write('a.txt', 'A\n')
    const lines = linesOf(agent.transcript)
    const result = lines.find((line) => 'toolUseResult' in line)
    const assistant = lines.find((line) => line.type === 'assistant')
    const history = lines.filter((line) => String(line.type).startsWith('file-history'))
    expect(history[0]).toMatchObject({ messageId: p1, isSnapshotUpdate: false, snapshot: { messageId: p1, trackedFileBackups: {} } })
    expect(history).toHaveLength(2)
    const record = { backupFileName: null, version: 1 }
    if (generation === 'G1' || generation === 'G2') {
      const snapshot = { messageId: p1, trackedFileBackups: { 'a.txt': record } }
      expect(history[1]).toMatchObject({ type: 'file-history-snapshot', messageId: assistant?.uuid, snapshot, isSnapshotUpdate: true })
    } else {
      const backup = generation === 'G4' ? { ...record, realParentDir: project } : record
      expect(history[1]).toMatchObject({ type: 'file-history-delta', messageId: assistant?.uuid, snapshotMessageId: p1, trackingPath: 'a.txt', backup })
    }
    expect(result?.toolUseResult).toMatchObject({ type: 'create', filePath: `${project}/a.txt`, content: 'A\n', originalFile: null })
    const order = lines.map((line) => line.type).filter((type) => type === 'user' || type === 'file-history-snapshot')
    expect(order[0]).toBe(generation === 'G1' ? 'file-history-snapshot' : 'user')
    expect(statSync(agent.transcript).mode & 0o7777).toBe(0o600)
    expect(statSync(agent.backups, { throwIfNoEntry: false })).toBeUndefined()
  })

  test('chains every message to the one before it', () => {
    const agent = new SimulatedAgent({ root, project, generation })
    agent.prompt('begin')
    agent.write('a.txt', 'A\n')
    agent.prompt('edit')
    agent.edit('a.txt', 'A', 'B')
    agent.end()
    const messages = linesOf(agent.transcript).filter((line) => 'uuid' in line)
    expect(messages.map((line) => line.parentUuid)).toEqual([null, ...messages.slice(0, -1).map((line) => line.uuid)])
    const edit = messages.map((line) => line.toolUseResult).find((each) => typeof each === 'object' && each !== null && 'oldString' in each)
    expect(edit).toMatchObject({
      oldString: 'A',
      newString: 'B',
      originalFile: 'A\n',
      structuredPatch: [{ oldStart: 1, oldLines: 1, newStart: 1, newLines: 1, lines: ['-A', '+B'] }],
    })
  })

  test('a fork has folded snapshots first, the old messages under the new id, and the same inodes', () => {
    const agent = new SimulatedAgent({ root, project, generation })
    const p1 = agent.prompt('begin')
    agent.write('a.txt', 'A\n')
    const p2 = agent.prompt('edit')
    agent.edit('a.txt', 'A', 'B')
    const fork = agent.fork(S2)
    const p3 = fork.prompt('on its own')
    const lines = linesOf(fork.transcript).filter((line) => line.type !== 'mode' && line.type !== 'atis-latch')
    const snapshot = { messageId: p1, trackedFileBackups: { 'a.txt': { backupFileName: null, version: 1 } } }
    expect(lines[0]).toMatchObject({ messageId: p1, isSnapshotUpdate: false, snapshot })
    expect(lines[1]).toMatchObject({ messageId: p2, isSnapshotUpdate: false })
    const old = linesOf(agent.transcript).filter((line) => 'uuid' in line)
    expect(lines.slice(2, 2 + old.length)).toEqual(old.map((line) => ({ ...line, sessionId: S2 })))
    const [v2, v3] = [agent.backupName('a.txt', 2), agent.backupName('a.txt', 3)]
    expect(lstatSync(join(fork.backups, v2)).ino).toBe(lstatSync(join(agent.backups, v2)).ino)
    expect(lstatSync(join(fork.backups, v2)).nlink).toBe(2)
    expect(fork.records(p3).get('a.txt')?.backupFileName).toBe(v3)
    expect(readdirSync(agent.backups)).toEqual([v2])
    expect(fork.checkpoints).toEqual([p1, p2, p3])
  })

  test('beyond 100 checkpoints only the newer clients take backups away, and never version 1', () => {
    const agent = new SimulatedAgent({ root, project, generation })
    agent.external('a.txt', '0\n')
    agent.prompt('begin')
    agent.edit('a.txt', '0', '1')
    for (let count = 1; count < 103; count += 1) {
      agent.prompt(`again ${String(count)}`)
      agent.edit('a.txt', String(count), String(count + 1))
    }
    // 103 checkpoints hold versions 1 to 103; the oldest three, with versions 1, 2 and 3, are beyond the cap.
    const gone = generation === 'G3' || generation === 'G4' ? [2, 3] : []
    expect(readdirSync(agent.backups)).toHaveLength(103 - gone.length)
    expect([...agent.evicted]).toEqual(gone.map((version) => agent.backupName('a.txt', version)))
  })

  test('the same seed gives the same bytes', () => {
    const write = (seed: string, folder: string): Buffer => {
      const agent = new SimulatedAgent({ root: join(root, folder), project, generation, seed })
      agent.prompt('begin')
      agent.write('b.txt', 'B\n')
      agent.remove('b.txt')
      return readFileSync(agent.transcript)
    }
    expect(write('x', 'one')).toEqual(write('x', 'two'))
    expect(write('y', 'three')).not.toEqual(write('x', 'four'))
  })
})

describe.each(corpusVersions)('the simulated agent, %s, beside the released client %s', (generation, version) => {
  test('writes the same history for the same scenario (corpus, basic)', async () => {
    const real = await extractStore(version, 'basic')
    const agent = new SimulatedAgent({ root, project, generation })
    agent.prompt('create')
    agent.write('a.txt', 'A\n')
    agent.prompt('edit')
    agent.edit('a.txt', 'A', 'B')
    agent.write('../outside.txt', 'out\n')
    agent.prompt('none')
    agent.external('a.txt', 'X\n')
    agent.prompt('after external')
    agent.prompt('bash')
    agent.external('a.txt', 'C')
    agent.prompt('last')
    agent.write('a.txt', 'D\n')
    agent.end()
    const [slug = ''] = readdirSync(join(real.root, 'projects'))
    const folder = join(real.root, 'projects', slug)
    const transcript = readdirSync(folder).find((name) => /^[0-9a-f-]{36}\.jsonl$/.test(name)) ?? ''
    const realLines = linesOf(join(folder, transcript))
    const ourLines = linesOf(agent.transcript)
    expect(historyOf(ourLines, agent.project)).toEqual(historyOf(realLines, real.project))
    expect(resultsOf(ourLines, agent.project)).toEqual(resultsOf(realLines, real.project))
    for (const kind of ['user', 'assistant']) {
      const keys = (lines: Json[]): string[] => [...new Set(lines.filter((line) => line.type === kind).flatMap((line) => Object.keys(line)))].sort()
      expect(keys(realLines)).toEqual(expect.arrayContaining(keys(ourLines)))
    }
  })
})

/** History lines without ids and times: kind, whether it is an update, path to version or null. */
function historyOf(lines: readonly Json[], base: string): unknown[] {
  const place = (path: string): string => path.replace(join(base, '..'), '~')
  const short = (record: unknown): unknown => {
    const { backupFileName: name, version, realParentDir: parent } = record as { backupFileName: string | null; version: number; realParentDir?: string }
    return [name === null ? null : name.slice(16), version, parent === undefined ? undefined : place(parent)]
  }
  const owners = new Map(lines.filter((line) => 'uuid' in line).map((line) => [line.uuid, line.type]))
  return lines.flatMap((line) => {
    const owner = owners.get(line.messageId)
    if (line.type === 'file-history-delta') return [['delta', owner, place(String(line.trackingPath)), short(line.backup)]]
    if (line.type !== 'file-history-snapshot') return []
    const { trackedFileBackups: files } = line.snapshot as { trackedFileBackups: Json }
    return [[line.isSnapshotUpdate, owner, Object.fromEntries(Object.entries(files).map(([path, record]) => [place(path), short(record)]))]]
  })
}

/** What Edit and Write said they did. */
function resultsOf(lines: readonly Json[], base: string): unknown[] {
  return lines
    .map((line) => line.toolUseResult as Json | undefined)
    .filter((result) => result !== undefined && 'structuredPatch' in result)
    .map((result) => ({ ...result, filePath: String(result?.filePath).replace(join(base, '..'), '~') }))
}
