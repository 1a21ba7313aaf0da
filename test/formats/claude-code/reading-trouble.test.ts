import { appendFileSync, chmodSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { LineIds } from '../../../src/formats/claude-code/line-ids.js'
import { readSession } from '../../../src/formats/claude-code/reading.js'
import type { SessionReading, SessionRef } from '../../../src/model/session.js'
import * as damage from '../../helpers/damage.js'
import { emptyRoot, H, S1, snap, toolResultLine, userLine, writeTranscript } from '../../helpers/store.js'
import { asNobody, giveAway, needs } from '../../helpers/unprivileged.js'
import { now, read, reading } from './scanning.js'

const ids = (found: SessionReading): string[] => found.findings.map(({ id, place }) => (place?.offset === undefined ? id : `${id}@${String(place.offset)}`))

describe('damage', () => {
  test('R72: one bad line of 1000: the rest is read, the newest time is that of the last, one finding with its offset', async () => {
    const cut = snap('mx', { a: `${H}@v2` }).slice(0, -40)
    const lines = Array.from({ length: 1000 }, (_, index) => userLine(`m${String(index)}`, { time: new Date(now - 86_400_000 - 1000 * (999 - index)).toISOString() }))
    const found = await reading(lines.with(300, cut))
    expect(ids(found)).toEqual([`damaged-line@${String(lines.slice(0, 300).join('\n').length + 1)}`])
    expect([found.lastRecorded, found.damaged]).toEqual([now - 86_400_000, true])
    expect(found.history.references.get(`${H}@v2`)?.pinned).toBe(true)
  })

  test('R75: a cut last line is information within a minute of the last write, damage later', async () => {
    const root = await emptyRoot()
    const bytes = Buffer.from(`${userLine('m1')}\n{"type":"user","mess`)
    for (const [age, severity] of [[59_000, 'info'], [61_000, 'warn']] as const) {
      writeTranscript(root, '-p', S1, bytes, { mtime: now - age })
      expect(read(root).findings).toMatchObject([{ id: 'torn-tail', severity, place: { path: `projects/-p/${S1}.jsonl`, offset: userLine('m1').length + 1 } }])
    }
  })

  test('R45: odd records are findings, each with its line, and nothing throws', async () => {
    const shapes = [
      '{"type":"file-history-snapshot","messageId":"a","snapshot":{}}',
      '{"type":"file-history-snapshot","messageId":"b","snapshot":{"messageId":"b"}}',
      '{"type":"file-history-snapshot","messageId":"c","snapshot":{"messageId":"c","trackedFileBackups":{"p":null}}}',
      '{"type":"file-history-snapshot","messageId":"d","snapshot":{"messageId":"d","trackedFileBackups":{"p":{"version":1}}}}',
    ]
    const found = await reading(shapes)
    expect(found.findings.map(({ id }) => id)).toEqual(['odd-record', 'odd-record', 'odd-record', 'odd-record'])
    const offsets = shapes.map((_, index) => shapes.slice(0, index).reduce((sum, line) => sum + line.length + 1, 0))
    expect(found.findings.map(({ place }) => place?.offset).sort((a, b) => (a ?? 0) - (b ?? 0))).toEqual(offsets)
  })

  test('a transcript of nothing but damaged lines is told with 20 findings, the last with the number of the rest', async () => {
    const found = await reading(Array.from({ length: 1000 }, () => '{"cut'))
    expect(found.findings).toHaveLength(20)
    expect(found.findings.at(-1)?.message).toMatch(/980 more/)
    expect(found.damaged).toBe(true)
  })

  test('a line of a newer type keeps the session as it is', async () => {
    const found = await reading([userLine('m1'), `{"type":"file-history-pack","members":["${H}@v3"]}`])
    expect([ids(found), found.damaged, [...found.history.references.keys()]]).toEqual([
      [`newer-format@${String(userLine('m1').length + 1)}`],
      true,
      [`${H}@v3`],
    ])
  })

  test('R43: 50,000 equal snapshots are one checkpoint and one finding with the counts', async () => {
    const root = await emptyRoot()
    writeTranscript(root, '-p', S1, [userLine('m1'), snap('m1', { a: `${H}@v1` })])
    damage.flood(root, S1, 50_000)
    const found = read(root)
    expect(found.history.checkpoints).toHaveLength(1)
    expect(found.history.lines).toBe(50_001)
    expect(found.findings.map(({ id, message }) => [id, message])).toEqual([['snapshot-flood', '50001 snapshot lines for 1 checkpoints']])
  })

  test('a long session with an update for each edit is no flood', async () => {
    const found = await reading(Array.from({ length: 1500 }, (_, index) => snap(`m${String(index % 100)}`, {}, undefined, { update: true })))
    expect(found.findings).toEqual([])
  })
})

describe('what stands in the place of a transcript', () => {
  test('a link, a pipe or a folder is never followed and never waited for', async (context) => {
    needs(context, 'fifo')
    const root = await emptyRoot()
    const path = writeTranscript(root, '-p', S1, [userLine('m1')])
    const ref: SessionRef = { id: S1, members: [{ kind: 'transcript', path: `projects/-p/${S1}.jsonl`, folder: false }] }
    const put: readonly (readonly [string, () => void])[] = [
      ['a symbolic link', () => { symlinkSync('/etc/hostname', path) }],
      ['a pipe', () => { execFileSync('mkfifo', [path]) }],
      ['a folder', () => { mkdirSync(path) }],
    ]
    for (const [word, act] of put) {
      rmSync(path, { recursive: true })
      act()
      const found = readSession(root, ref, { now })
      expect(found.findings).toMatchObject([{ id: 'not-regular', message: `${word} stands where a transcript should be` }])
      expect(found.damaged).toBe(true)
    }
  })

  test('R108: a transcript that cannot be read is never an empty one', async (context) => {
    needs(context, 'unprivileged')
    const root = await emptyRoot()
    chmodSync(writeTranscript(root, '-p', S1, [snap('m1')]), 0o000)
    giveAway(join(root, '..'))
    const found = await asNobody(() => read(root))
    expect(found.findings).toMatchObject([{ id: 'unreadable', severity: 'error', message: expect.stringContaining('EACCES') as string }])
    expect(found.damaged).toBe(true)
  })

  test('one that vanished since the listing makes the session busy', () => {
    const found = readSession('/', { id: S1, members: [{ kind: 'transcript', path: 'nowhere/t.jsonl', folder: false }] }, { now })
    expect([found.busy, found.damaged]).toEqual([true, true])
  })
})

describe('R84: a transcript that changes while it is read', () => {
  const acts: readonly (readonly [string, (path: string) => void])[] = [
    ['appended to', (path) => { appendFileSync(path, `${userLine('m9')}\n`) }],
    ['replaced by rename, bytes and times the same', (path) => {
      execFileSync('cp', ['-p', path, `${path}.new`])
      renameSync(`${path}.new`, path)
    }],
    ['removed', (path) => { rmSync(path) }],
  ]
  test.each(acts)('%s: busy', async (_, act) => {
    const root = await emptyRoot()
    const path = writeTranscript(root, '-p', S1, [toolResultLine('u1', { filePath: '/p/a', originalFile: 'x' })])
    const ref: SessionRef = { id: S1, members: [{ kind: 'transcript', path: `projects/-p/${S1}.jsonl`, folder: false }] }
    // Handed each line while the transcript is open.
    const add = vi.spyOn(LineIds.prototype, 'add').mockImplementationOnce(() => {
      act(path)
    })
    const found = readSession(root, ref, { now, evidence: true })
    add.mockRestore()
    expect(found.busy).toBe(true)
    expect(found.findings.map(({ id }) => id)).toEqual(['busy'])
  })

  test('one that stays as it is is not', async () => {
    expect((await reading([userLine('m1')], true)).busy).toBe(false)
  })
})
