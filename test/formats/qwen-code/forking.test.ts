import { lstatSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Store } from '../../../src/formats/format.js'
import type { SessionReading } from '../../../src/model/session.js'
import { fork } from '../../../src/operations/fork/fork.js'
import { uuidOf } from '../../helpers/identity.js'
import { extractQwen, qwenScenarios } from '../../helpers/qwen-corpus.js'
import { openQwen, QwenSession, qwenName, qwenRoot } from '../../helpers/qwen.js'
import { S1, S2 } from '../../helpers/store.js'

const now = Date.parse('2026-11-30T12:00:00.000Z')
const context = { now, pid: 1, token: 'abc', processExists: () => false }

type Record1 = Readonly<Record<string, unknown>>

function records(path: string): Record1[] {
  return readFileSync(path, 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line) as Record1)
}

function read(store: Store, id: string): SessionReading {
  const ref = store.inventory().sessions.find((session) => session.id === id)
  if (ref === undefined) throw new Error(`no session ${id}`)
  return store.read(ref, { now })
}

function snapshotsOf(reading: SessionReading): unknown[] {
  return reading.history.checkpoints.map(({ aliases, time, files }) => [aliases?.[0]?.replace(reading.id, 'S'), time, [...files].map(([path, { name, version }]) => [path, name, version])])
}

describe('a fork of a recorded session', () => {
  it('has the same checkpoints under its own prompt ids, and backups that are copies with their times and modes', async () => {
    const { root } = await extractQwen('modes-binary')
    const store = openQwen(root)
    const [source] = store.inventory().sessions
    if (source === undefined) throw new Error('no session')
    const report = await fork(store, source.id, S2, {}, context)
    expect(report).toMatchObject({ exitCode: 0, applied: true, findings: [], errors: [] })
    const [old, made] = [read(store, source.id), read(store, S2)]
    expect(snapshotsOf(made)).toEqual(snapshotsOf(old))
    expect(made.findings).toEqual([])
    expect(made.history.checkpoints.map(({ id }) => id)).toEqual(old.history.checkpoints.map(({ id }) => id))
    for (const name of made.history.references.keys()) {
      const [from, to] = [source.id, S2].map((id) => lstatSync(join(root, 'file-history', id, name)))
      expect([to?.mode, to?.nlink]).toEqual([from?.mode, 1])
      // Times are set to a microsecond or so; a copy is never younger than what it was made from.
      const lost = (from?.mtimeMs ?? 0) - (to?.mtimeMs ?? 0)
      expect(lost).toBeGreaterThanOrEqual(0)
      expect(lost).toBeLessThan(0.003)
      expect(to?.ino).not.toBe(from?.ino)
    }
  })

  it('is one line of the same records: only session, parent, origin and prompt ids are others, and a title follows', async () => {
    const { root } = await extractQwen('basic')
    const store = openQwen(root)
    const [source] = store.inventory().sessions
    const path = source?.members.find(({ kind }) => kind === 'transcript')?.path ?? ''
    if (source === undefined) throw new Error('no session')
    await fork(store, source.id, S2, {}, context)
    const before = records(join(root, path))
    const after = records(join(root, path.replace(source.id, S2)))
    const title = after.pop()
    expect(title).toMatchObject({ subtype: 'custom_title', sessionId: S2, parentUuid: before.at(-1)?.uuid })
    const expected = before.map((record, index) => {
      const text = record.subtype === 'file_history_snapshot' ? JSON.stringify(record).replaceAll(`${source.id}########`, `${S2}########`) : JSON.stringify(record)
      const forkedFrom = { sessionId: source.id, messageUuid: record.uuid }
      return { ...(JSON.parse(text) as Record1), sessionId: S2, parentUuid: index === 0 ? null : before[index - 1]?.uuid, forkedFrom }
    })
    expect(after).toEqual(expected)
  })
})

const names = [1, 2, 3].map((version) => qwenName('/home/u/notes/a.md', version)) as [string, string, string]

async function prepared(): Promise<{ session: QwenSession; store: Store; messages: string[] }> {
  const root = await qwenRoot()
  const session = new QwenSession({ root, id: S1 })
  session.system('session_source', { kind: 'test' })
  session.system('custom_title', { customTitle: 'my notes' })
  const messages = [1, 2, 3].map((number) => session.turn(number, `turn ${String(number)}`, { 'a.md': names[number - 1] ?? null, ...(number === 3 ? { 'late.md': null } : {}) }))
  session.system('turn_result', {})
  for (const name of names) session.backup(name, `${name}\n`, { mtime: '2026-11-20T09:00:00Z' })
  session.save()
  return { session, store: openQwen(root), messages }
}

describe('a fork that is cut', () => {
  it('ends before the message, keeps what is left as it resolved, and takes only the backups that it names', async () => {
    const { session, store, messages } = await prepared()
    const report = await fork(store, S1, S2, { at: messages[2] ?? '' }, context)
    expect(report).toMatchObject({ exitCode: 0, summary: { checkpoints: 2, copied: 2 } })
    const made = read(store, S2)
    expect(made.history.checkpoints.map(({ id }) => id)).toEqual(messages.slice(0, 2))
    // late.md did not exist before the third turn: a rewind in the fork still knows that.
    expect(made.history.originals.get('late.md')).toMatchObject({ name: null, version: 1 })
    const after = records(join(session.folder, `${S2}.jsonl`))
    expect(after.map(({ subtype, type }) => subtype ?? type)).toEqual([
      'custom_title',
      ...['user', 'file_history_snapshot', 'assistant', 'user', 'file_history_snapshot', 'assistant'],
      'file_history_snapshot',
      'custom_title',
    ])
    expect(after.map(({ parentUuid }) => parentUuid)).toEqual([null, ...after.slice(0, -1).map(({ uuid }) => uuid)])
    expect(after.at(-1)).toMatchObject({ systemPayload: { customTitle: 'my notes (fork)' } })
  })

  it('before the first message there is nothing to fork, whatever records stand there', async () => {
    const { store, messages } = await prepared()
    await expect(fork(store, S1, S2, { at: messages[0] ?? '' }, context)).rejects.toMatchObject({ code: 'USAGE' })
    expect(store.inventory().sessions.map(({ id }) => id)).toEqual([S1])
  })

  it('a failed mark that came later holds in the fork as well', async () => {
    const { session, store, messages } = await prepared()
    const failed = { backupFileName: names[0], version: 1, backupTime: '2026-11-20T09:00:01.000Z', failed: true }
    session.snapshots({ promptId: session.promptId(1), files: { 'a.md': failed } })
    session.save()
    await fork(store, S1, S2, { at: messages[2] ?? '' }, context)
    expect(read(store, S2).history.checkpoints[0]?.files.get('a.md')?.unusable).toMatch(/failed/)
  })
})

describe('every recorded session', () => {
  it.each(qwenScenarios().map(({ scenario }) => scenario))('%s can be cut before each of its messages, and what is left resolves as in the source', async (scenario) => {
    const { root } = await extractQwen(scenario)
    const store = openQwen(root)
    for (const source of store.inventory().sessions.filter(({ members }) => members.some(({ kind }) => kind === 'transcript'))) {
      const messages = store.messages(source)
      for (const [index, { id }] of messages.entries()) {
        // Of a hundred turns every tenth will do.
        if (index === 0 || (messages.length > 20 && index % 10 > 0)) continue
        const made = uuidOf(`${source.id} ${id}`)
        const report = await fork(store, source.id, made, { at: id }, context)
        expect(report.applied).toBe(true)
        expect(report.findings.filter(({ id: found }) => found === 'conflicting-records')).toEqual([])
        const kept = Number(report.summary.checkpoints)
        const evicted = Math.max(0, messages.length - 100)
        expect(kept).toBe(Math.max(0, index - evicted))
      }
    }
  })
})

it('a message may be named by its prompt id', async () => {
  const { store } = await prepared()
  expect(await fork(store, S1, S2, { at: `${S1}########3` }, context)).toMatchObject({ exitCode: 0, summary: { checkpoints: 2 } })
})

describe('what a fork refuses', () => {
  it('links, because the agent writes into backups that exist', async () => {
    const { store } = await prepared()
    await expect(fork(store, S1, S2, { method: 'link' }, context)).rejects.toMatchObject({ code: 'USAGE' })
  })

  it('a transcript that lies outside of the store, with the reason, before anything is made', async () => {
    const { session, store } = await prepared()
    const runtime = await qwenRoot()
    const root = store.root
    const outside = session.save({ path: join(runtime, 'projects', '-n', 'chats', `${S1}.jsonl`) })
    rmSync(session.path)
    const moved = openQwen(root, { runtimeRoot: runtime })
    await expect(fork(moved, S1, S2, {}, context)).rejects.toThrow(`session ${S1} cannot be forked: its transcript ${outside} lies outside of the store`)
    expect(moved.inventory().sessions.map(({ id }) => id)).toEqual([S1])
  })
})
