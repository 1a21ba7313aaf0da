import { appendFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Checkpoint } from '../../../src/model/history.js'
import { findCheckpoint, resolve } from '../../../src/model/resolve.js'
import type { SessionReading } from '../../../src/model/session.js'
import { extractQwen } from '../../helpers/qwen-corpus.js'
import { openQwen, QwenSession, qwenName, qwenRoot } from '../../helpers/qwen.js'
import { S1, S2 } from '../../helpers/store.js'

const now = Date.parse('2026-11-30T12:00:00.000Z')
const A1 = qwenName('/home/u/notes/a.md', 1)
const A2 = qwenName('/home/u/notes/a.md', 2)
const A3 = qwenName('/home/u/notes/a.md', 3)
const B1 = qwenName('/home/u/notes/b.md', 1)

function read(root: string, id = S1): SessionReading {
  const store = openQwen(root)
  const ref = store.inventory().sessions.find((session) => session.id === id)
  if (ref === undefined) throw new Error(`no session ${id}`)
  return store.read(ref, { now })
}

/** The numbers of the prompts of the list, in its order. */
function numbers({ history }: SessionReading): number[] {
  return history.checkpoints.map((checkpoint) => Number(promptOf(checkpoint).split('#').at(-1)))
}

function promptOf({ id, aliases }: Checkpoint): string {
  return aliases?.[0] ?? id
}

function ids(reading: SessionReading): string[] {
  return reading.findings.map(({ id }) => id)
}

async function session(): Promise<QwenSession> {
  return new QwenSession({ root: await qwenRoot(), id: S1 })
}

function rootOf(each: QwenSession): string {
  return join(each.folder, '../../..')
}

describe('the list of snapshots', () => {
  it('R116: prompt ids with signs in them name checkpoints, and so do the messages they belong to', async () => {
    const each = await session()
    const first = each.turn(1, 'start', { 'a.md': A1 })
    each.turn(2, 'go on', { 'a.md': A2 })
    each.save()
    const { history } = read(rootOf(each))
    expect(history.checkpoints).toMatchObject([{ id: first, aliases: [`${S1}########1`], order: 0 }, { order: 1 }])
    expect(findCheckpoint(history, `${S1}########1`)?.id).toBe(first)
    expect(findCheckpoint(history, first)?.order).toBe(0)
  })

  it('R83: the bytes of their records are counted, in real transcripts too', async () => {
    const { root } = await extractQwen('basic')
    const store = openQwen(root)
    const { sessions } = store.inventory()
    expect(sessions.length).toBeGreaterThan(0)
    for (const ref of sessions) {
      const lines = ref.members.filter(({ kind }) => kind === 'transcript').flatMap(({ path }) => readFileSync(join(root, path), 'utf8').split('\n'))
      const snapshots = lines.filter((line) => line !== '' && (JSON.parse(line) as { subtype?: string }).subtype === 'file_history_snapshot')
      expect(store.read(ref, { now }).historyBytes).toBe(snapshots.reduce((sum, line) => sum + Buffer.byteLength(line), 0))
      expect(snapshots.length).toBeGreaterThan(0)
    }
  })

  it('a later record of a prompt replaces the snapshot at its old place', async () => {
    const each = await session()
    each.turn(1, 'start', {})
    each.turn(2, 'go on', { 'a.md': A1 })
    each.snapshots({ promptId: each.promptId(1), files: { 'b.md': B1 } })
    each.save()
    const reading = read(rootOf(each))
    expect(numbers(reading)).toEqual([1, 2])
    expect([...(reading.history.checkpoints[0]?.files.keys() ?? [])]).toEqual(['b.md'])
    expect(ids(reading)).toEqual([])
  })

  it('keeps the newest 100, and what was evicted stays evicted when it is recorded again', async () => {
    const each = await session()
    for (let number = 1; number <= 102; number += 1) each.turn(number, `turn ${String(number)}`, { 'a.md': A1 })
    each.snapshots({ promptId: each.promptId(1), files: { 'a.md': A2 } })
    each.save()
    const reading = read(rootOf(each))
    expect(numbers(reading)).toEqual(Array.from({ length: 100 }, (_, index) => index + 3))
    expect(reading.history.references.get(A2)).toMatchObject({ dropped: true, pinned: false })
  })

  it('R39: a prompt id that is used again takes the old place, and both of its backups count as in use', async () => {
    const each = await session()
    each.turn(1, 'start', { 'a.md': A3 }, '2026-11-20T09:00:01.000Z')
    each.turn(2, 'go on', { 'a.md': A3 })
    const again = each.turn(1, 'after a restart', { 'a.md': A1 }, '2026-11-21T09:00:01.000Z')
    each.save()
    const reading = read(rootOf(each))
    expect(numbers(reading)).toEqual([1, 2])
    expect(reading.history.checkpoints[0]).toMatchObject({ id: again, time: '2026-11-21T09:00:01.000Z' })
    expect(ids(reading)).toEqual(['duplicate-checkpoint'])
    expect([A1, A3].map((name) => reading.history.references.get(name)?.dropped)).toEqual([undefined, undefined])
  })

  it('a record in which one snapshot lists no files is skipped whole', async () => {
    const each = await session()
    each.turn(1, 'start', { 'a.md': A1 })
    each.snapshots({ promptId: each.promptId(2), files: { 'a.md': A2 } }, { promptId: each.promptId(3), raw: {} })
    each.save()
    const reading = read(rootOf(each))
    expect(numbers(reading)).toEqual([1])
    expect(ids(reading)).toEqual(['odd-record'])
  })

  it('two names of one path inside the start folder are one path, and keys are only data', async () => {
    const each = await session()
    each.turn(1, 'start', { '/home/u/notes/a.md': A1, '__proto__': { backupFileName: B1, version: 1 }, '/home/u/notes-2/c.md': null })
    each.lines[1] = each.lines[1]?.replace('{"/home/u/notes/a.md"', `{"__proto__":{"backupFileName":"${B1}","version":1},"/home/u/notes/a.md"`) ?? ''
    each.save()
    expect([...read(rootOf(each)).history.tracked].sort()).toEqual(['/home/u/notes-2/c.md', '__proto__', 'a.md'])
  })
})

describe('what a path falls back to', () => {
  it('the first version that a snapshot of the list has, else nobody knows', async () => {
    const each = await session()
    each.turn(1, 'start', {})
    each.turn(2, 'go on', { 'a.md': A1, 'b.md': qwenName('/home/u/notes/b.md', 2) })
    each.save()
    const { history } = read(rootOf(each))
    const [first] = history.checkpoints
    if (first === undefined) throw new Error('no checkpoint')
    expect(resolve(history, first)).toEqual(
      new Map([
        ['a.md', expect.objectContaining({ state: 'backup', name: A1 })],
        ['b.md', { state: 'unknown', reason: 'no snapshot that is left has its first version' }],
      ]),
    )
  })

  it('R46: a failed record is no state, and verify names the span of checkpoints that it spoils', async () => {
    const each = await session()
    const failed = { backupFileName: A1, version: 2, backupTime: '2026-11-20T09:00:03.000Z', failed: true }
    each.turn(1, 'one', { 'a.md': A1 })
    for (const number of [2, 3, 4]) each.turn(number, 'more', { 'a.md': failed })
    each.turn(5, 'last', { 'a.md': A2 })
    each.save()
    const root = rootOf(each)
    const store = openQwen(root)
    const [ref] = store.inventory().sessions
    if (ref === undefined) throw new Error('no session')
    const reading = store.read(ref, { now })
    expect(ids(reading)).toEqual([])
    expect(store.check?.(ref, reading, { now }).filter(({ id }) => id === 'failed-backup').map(({ message }) => message)).toEqual([
      `a.md cannot be restored at checkpoints ${each.promptId(2)} to ${each.promptId(4)}: the agent could not back the file up, or found its backup missing (failed)`,
    ])
    const [, second] = reading.history.checkpoints
    if (second === undefined) throw new Error('no checkpoint')
    expect(resolve(reading.history, second).get('a.md')?.state).toBe('unknown')
  })
})

describe('the active chain', () => {
  it('records that a rewind left behind are not loaded, and what only they name is dropped', async () => {
    const each = await session()
    each.turn(1, 'one', { 'a.md': A1 })
    const end = each.last
    const left = each.turn(2, 'two', { 'a.md': A2 })
    each.turn(3, 'three', { 'a.md': A2 })
    each.continueAt(end)
    each.system('rewind', { truncatedCount: 2 })
    each.snapshots({ promptId: each.promptId(1), files: { 'a.md': A1 } }, { promptId: each.promptId(2), files: { 'a.md': A3 } })
    each.turn(9, 'another way', { 'a.md': A3 })
    each.save()
    const root = rootOf(each)
    const reading = read(root)
    expect(numbers(reading)).toEqual([1, 2, 9])
    expect(reading.history.references.get(A1)?.dropped).toBeUndefined()
    // The snapshot of the target stays although its turn is gone: the message that it was taken for still names it.
    expect(reading.history.checkpoints[1]).toMatchObject({ id: left, aliases: [each.promptId(2)] })
    const [ref] = openQwen(root).inventory().sessions
    expect(ref === undefined ? [] : openQwen(root).messages(ref).map(({ text, active }) => [text, active])).toEqual([
      ['one', true],
      ['two', false],
      ['three', false],
      ['another way', true],
    ])
  })

  it('a record whose parent is missing ends the chain: nothing is bridged, nothing is let go, and it is said', async () => {
    const each = await session()
    each.turn(1, 'one', { 'a.md': A1 })
    each.continueAt('not-there')
    each.turn(2, 'two', { 'a.md': A2 })
    each.save()
    const reading = read(rootOf(each))
    expect(numbers(reading)).toEqual([2])
    expect(ids(reading)).toEqual(['broken-chain'])
    expect(reading.damaged).toBe(true)
    expect(reading.history.references.get(A1)).toMatchObject({ pinned: true })
  })

  it('lines with one id are fragments of one record, and records about artifacts are never the leaf', async () => {
    const each = await session()
    each.turn(1, 'one', { 'a.md': A1 })
    const uuid = each.snapshots({ promptId: each.promptId(2), files: {} })
    each.continueAt(each.last)
    each.lines.push(each.lines.at(-1)?.replace(each.promptId(2), each.promptId(3)) ?? '')
    each.assistant()
    each.continueAt(null)
    each.system('session_artifact_event', {})
    each.save()
    expect(uuid).not.toBe('')
    expect(numbers(read(rootOf(each)))).toEqual([1, 2, 3])
  })

  it('defect 9: the real torn line swallows the next record, and what it hides is found again when the line is ended', async () => {
    const { root } = await extractQwen('damaged')
    const store = openQwen(root)
    const ref = store.inventory().sessions.find(({ id }) => id.startsWith('b111'))
    const [member] = ref?.members ?? []
    if (ref === undefined || member === undefined) throw new Error('no session')
    const path = join(root, member.path)
    const snapshot = JSON.stringify({ promptId: `${ref.id}########9`, timestamp: '2026-11-30T19:00:00.000Z', trackedFileBackups: {} })
    const line = (uuid: string, parent: string): string =>
      `{"uuid":"${uuid}","parentUuid":"${parent}","sessionId":"${ref.id}","type":"system","subtype":"file_history_snapshot","systemPayload":{"snapshots":[${snapshot}]}}\n`
    appendFileSync(path, line('swallowed', '00000000-0000-4000-8000-000000000002') + line('next', 'swallowed'))
    const hidden = store.read(ref, { now })
    expect(numbers(hidden)).toEqual([9])
    expect(ids(hidden)).toEqual(expect.arrayContaining(['spliced-line', 'broken-chain']))

    const parts: Buffer[] = []
    expect(store.conversations?.mendTranscript(member.path, (bytes) => parts.push(Buffer.from(bytes)))).toMatchObject({ split: 1, ended: false })
    const before = readFileSync(path)
    writeFileSync(path, Buffer.concat(parts))
    expect(Buffer.concat(parts).length).toBe(before.length + 1)
    expect(numbers(store.read(ref, { now }))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
  })
})

describe('lines that are not one record', () => {
  it('whole objects that share a line are all read, and lose nothing', async () => {
    const each = await session()
    each.turn(1, 'one', { 'a.md': A1 })
    each.turn(2, 'two', { 'a.md': A2 })
    const lines = [...each.lines]
    each.lines.splice(0, each.lines.length, lines.join(' '))
    each.save()
    const reading = read(rootOf(each))
    expect(numbers(reading)).toEqual([1, 2])
    expect(ids(reading)).toEqual(['spliced-line'])
    expect(reading.damaged).toBe(false)
  })

  it('names in bytes that nobody can read stay in use, and a cut end is said', async () => {
    const each = await session()
    each.turn(1, 'one', { 'a.md': A1 })
    each.save({ tail: `{"uuid":"x","systemPayload":{"snapshots":[{"trackedFileBackups":{"b.md":{"backupFileName":"${B1}"` })
    const reading = read(rootOf(each))
    expect(reading.history.references.get(B1)).toMatchObject({ pinned: true })
    expect(ids(reading)).toEqual(['torn-tail'])
    expect(reading.damaged).toBe(true)
  })

  it('a byte order mark, carriage returns and a prompt that quotes a record hide nothing', async () => {
    const each = await session()
    each.turn(1, 'a line of mine: {"uuid":"u","parentUuid":null} with "quotes"', { 'a.md': A1 })
    each.turn(2, 'two', { 'a.md': A2 })
    each.save()
    writeFileSync(each.path, `\u{FEFF}${readFileSync(each.path, 'utf8').replaceAll('\n', '\r\n')}`)
    const reading = read(rootOf(each))
    expect(numbers(reading)).toEqual([1, 2])
    expect(reading.findings).toEqual([])
  })
})

describe('where transcripts lie', () => {
  it('an archived session keeps its backups and its name', async () => {
    const each = await session()
    each.turn(1, 'one', { 'a.md': A1 })
    each.backup(A1, 'robin\n')
    each.save({ archived: true })
    const root = rootOf(each)
    const { sessions, findings } = openQwen(root).inventory()
    expect(sessions.map(({ members }) => members.map(({ kind }) => kind))).toEqual([['transcript', 'backups']])
    expect(findings).toEqual([])
    expect(numbers(read(root))).toEqual([1])
  })

  it('of two transcripts the one in use counts, and the other one keeps its backups alive', async () => {
    const each = await session()
    each.turn(1, 'one', { 'a.md': A2 })
    each.save({ archived: true, mtime: '2026-11-29T00:00:00Z' })
    const root = rootOf(each)
    const other = new QwenSession({ root, id: S1 })
    other.turn(1, 'one', { 'a.md': A1 })
    other.save({ mtime: '2026-11-01T00:00:00Z' })
    const store = openQwen(root)
    expect(store.inventory().findings.map(({ id }) => id)).toEqual(['duplicate-session'])
    const reading = read(root)
    expect(reading.history.checkpoints[0]?.files.get('a.md')?.name).toBe(A1)
    expect(reading.history.references.get(A2)).toMatchObject({ pinned: true })
  })

  it('another runtime root is read as well: as given, by the environment, or by a setting', async () => {
    const root = await qwenRoot()
    const runtime = await qwenRoot()
    const each = new QwenSession({ root: runtime, id: S1 })
    each.turn(1, 'one', { 'a.md': A1 })
    each.save()
    new QwenSession({ root, id: S1 }).backup(A1, 'robin\n')
    const read1 = (around: Parameters<typeof openQwen>[1]): number => {
      const store = openQwen(root, around)
      const [ref] = store.inventory().sessions
      return ref === undefined ? -1 : store.read(ref, { now }).history.checkpoints.length
    }
    expect([{ runtimeRoot: runtime }, { env: { QWEN_RUNTIME_DIR: runtime } }, {}].map(read1)).toEqual([1, 1, 0])
    writeFileSync(join(root, 'settings.json'), `{ // mine\n"advanced": {"runtimeOutputDir": ${JSON.stringify(runtime)}} }`)
    expect(read1({})).toBe(1)
  })

  it('R55: a link in place of a transcript is said and never followed', async () => {
    const each = await session()
    each.turn(1, 'one', { 'a.md': A1 })
    const target = each.save()
    const root = rootOf(each)
    mkdirSync(join(root, 'elsewhere'))
    const other = join(each.folder, `${S2}.jsonl`)
    symlinkSync(target, other)
    const reading = read(root, S2)
    expect(ids(reading)).toEqual(['not-regular'])
    expect(reading.history.checkpoints).toEqual([])
    rmSync(other)
  })
})
