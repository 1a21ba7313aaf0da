import { createHash } from 'node:crypto'
import { existsSync, lstatSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { writeSampleStore, type SampleStore } from '../../../src/formats/claude-code/sample.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { snapshotTree } from '../../helpers/tree.js'

const now = Date.parse('2026-11-30T12:00:00.000Z')
const day = 86_400_000

type Json = Record<string, unknown>
type Files = Readonly<Record<string, { readonly backupFileName: string | null; readonly version: number; readonly realParentDir?: string }>>;

let store: SampleStore

beforeEach(async ({ onTestFinished }) => {
  store = writeSampleStore(await temporaryFolder(onTestFinished), now)
})

function transcriptOf(id: string): string {
  const projects = join(store.root, 'projects')
  return readdirSync(projects).map((slug) => join(projects, slug, `${id}.jsonl`)).find((path) => existsSync(path)) ?? ''
}

function linesOf(id: string): Json[] {
  return readFileSync(transcriptOf(id), 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line) as Json)
}

function backupsOf(id: string): string[] {
  return readdirSync(join(store.root, 'file-history', id)).sort()
}

/** Every named record of a session: name to the path it stands for. */
function namedBy(id: string): Map<string, string> {
  const names = new Map<string, string>()
  for (const line of linesOf(id)) {
    const files: Files = line.type === 'file-history-snapshot' ? (line.snapshot as { trackedFileBackups: Files }).trackedFileBackups : {}
    for (const [path, record] of Object.entries(files)) if (record.backupFileName !== null) names.set(record.backupFileName, path)
  }
  return names
}

describe('the sample store', () => {
  test('has eight sessions in three projects, of all generations, three of them older than 30 days', () => {
    expect(store.projects).toHaveLength(3)
    expect(store.sessions.map((session) => [session.clientVersion, Math.round((now - session.lastActivity) / day)])).toEqual([
      ['2.0.64', 45], ['2.1.112', 12], ['2.1.332', 2], ['2.1.332', 1], ['2.0.64', 60], ['2.1.208', 8], ['2.1.332', 5], ['2.1.112', 33],
    ])
    for (const { id } of store.sessions) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(new Set(store.sessions.map(({ id }) => id)).size).toBe(8)
  })

  test('has private modes and the times of the last activity', () => {
    for (const { id, lastActivity } of store.sessions) {
      const transcript = statSync(transcriptOf(id))
      expect([transcript.mode & 0o7777, Math.round(transcript.mtimeMs)]).toEqual([0o600, lastActivity])
      expect(Math.round(statSync(join(store.root, 'file-history', id)).mtimeMs)).toBe(lastActivity)
      for (const name of backupsOf(id)) expect(statSync(join(store.root, 'file-history', id, name)).mtimeMs).toBeLessThan(lastActivity)
    }
    for (const [path, node] of Object.entries(snapshotTree(store.root))) if (node.type === 'folder') expect([path, node.mode]).toEqual([path, '700'])
  })

  test('every checkpoint belongs to a user message, and every message hangs off the one before it', () => {
    for (const { id, checkpoints } of store.sessions) {
      const lines = linesOf(id)
      const messages = lines.filter((line) => 'uuid' in line)
      expect(messages.map((line) => line.parentUuid)).toEqual([null, ...messages.slice(0, -1).map((line) => line.uuid)])
      const users = new Set(messages.filter((line) => line.type === 'user').map((line) => line.uuid))
      const owners = new Set(lines.filter((line) => line.type === 'file-history-snapshot').map((line) => (line.snapshot as Json).messageId))
      expect([...owners].filter((owner) => !users.has(owner))).toEqual([])
      expect(owners.size).toBe(checkpoints)
      expect(messages.every((line) => line.sessionId === id)).toBe(true)
      expect(lines.every((line) => !('timestamp' in line) || Date.parse(String(line.timestamp)) < now)).toBe(true)
    }
  })

  test('backups carry the hash of their path, and only the one missing and those beyond the cap are not there', () => {
    for (const { id, project } of store.sessions) {
      const named = namedBy(id)
      for (const [name, path] of named) {
        expect(name.slice(0, 16)).toBe(createHash('sha256').update(join(project, path)).digest('hex').slice(0, 16))
      }
      const present = backupsOf(id)
      expect(present.filter((name) => !named.has(name))).toEqual([])
      const absent = [...named.keys()].filter((name) => !present.includes(name)).map((name) => Number(name.slice(18)))
      if (id === store.missing.session) expect(absent).toEqual([3])
      // 113 checkpoints; the oldest 13 hold "absent" and versions 2 to 13.
      else if (id === store.sessions[5]?.id) expect(absent).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13])
      else expect(absent).toEqual([])
    }
    expect(store.sessions[5]?.checkpoints).toBe(113)
  })

  test('what a tool result calls the original is what the backup of that version holds', () => {
    const { id = '', project = '' } = store.sessions[0] ?? {}
    const results = linesOf(id).flatMap((line) => ('toolUseResult' in line ? [line.toolUseResult as Json] : []))
    expect(results.map((result) => result.originalFile)).toEqual([
      null, '# Sightings\n', '# Sightings\n- robin, 2\n', '# Sightings\n- robin, 2\n- wren, 1\n',
    ])
    const texts = backupsOf(id).map((name) => readFileSync(join(store.root, 'file-history', id, name), 'utf8'))
    expect(texts).toEqual([...results.slice(1).map((result) => result.originalFile), '# Sightings\n- robin, 2\n- wren, 1\n- heron, 1\n'])
    expect(results[2]?.structuredPatch).toEqual([
      { oldStart: 1, oldLines: 2, newStart: 1, newLines: 3, lines: [' # Sightings', ' - robin, 2', '+- wren, 1'] },
    ])
    expect(readFileSync(join(project, 'sightings.md'), 'utf8')).toBe(texts.at(-1))
  })

  test('the fork shares its inodes with the session it came from', () => {
    const old = backupsOf(store.fork.of)
    expect(old).toHaveLength(3)
    for (const name of old) {
      const [a, b] = [store.fork.of, store.fork.session].map((id) => lstatSync(join(store.root, 'file-history', id, name)))
      expect([a?.ino, a?.nlink]).toEqual([b?.ino, 2])
    }
    expect(backupsOf(store.fork.session)).toHaveLength(5)
  })

  test('the orphan has backups and no transcript', () => {
    expect(transcriptOf(store.orphan)).toBe('')
    expect(backupsOf(store.orphan)).toHaveLength(1)
  })

  test('stays inside of the home, gives the same bytes for the same arguments, and never overwrites a store', async () => {
    const before = snapshotTree(store.root)
    expect(readdirSync(store.home).sort()).toEqual(['.claude', 'projects'])
    expect(() => writeSampleStore(store.home, now)).toThrow(/EEXIST/)
    expect(snapshotTree(store.root)).toEqual(before)
    const other = writeSampleStore(await temporaryFolder(), now)
    const [a, b] = [store, other].map(({ home, sessions }) => readFileSync(join(home, '.claude', 'projects', slugOf(home), `${sessions[0]?.id ?? ''}.jsonl`), 'utf8').replaceAll(home, '~').replace(/[0-9a-f]{16}@v/g, '@v'))
    expect(a).toBe(b)
  })
})

function slugOf(home: string): string {
  return join(home, 'projects', 'bird-notes').replace(/[^A-Za-z0-9]/g, '-')
}
