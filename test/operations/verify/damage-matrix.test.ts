import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import * as damage from '../../helpers/damage.js'
import { uuidOf } from '../../helpers/identity.js'
import { H, S2, writeBackup } from '../../helpers/store.js'
import { sameTree, snapshotTree } from '../../helpers/tree.js'
import { needs } from '../../helpers/unprivileged.js'
import { backupPath, goodStore, transcriptPath, type GoodStore } from './good-store.js'
import { check, found } from './verifying.js'

type Act = (store: GoodStore) => void
type Row = readonly [what: string, act: Act, findings: (store: GoodStore) => readonly string[], exitCode: number]

const checkpoint = ({ agent }: GoodStore, index: number): string => agent.checkpoints[index] ?? ''

/** Index of the first line of the transcript of a type. */
function lineOf({ root, session }: GoodStore, type: string): number {
  return damage.findLine(root, session, (record) => record.type === type)
}

describe('each damage is found by its id, and by no other', () => {
  const rows: readonly Row[] = [
    ['a backup removed inside the newest 100 checkpoints', (s) => { damage.removeBackup(s.root, s.session, s.second) }, (s) => [`missing-backup ${backupPath(s, s.second)}`], 1],
    ['version 1 removed', (s) => { damage.removeBackup(s.root, s.session, s.first) }, (s) => [`missing-backup ${backupPath(s, s.first)}`], 1],
    ['the whole backup folder gone: one error (R51)', (s) => { damage.removeBackupFolder(s.root, s.session) }, (s) => [`backups-missing file-history/${s.session}`], 1],
    ['a bit over, no seal, a certain proof', (s) => { damage.flipBit(s.root, s.session, s.first) }, (s) => [`contradicts-transcript ${backupPath(s, s.first)}`], 1],
    ['a bit over, no seal, a strong proof', (s) => { damage.flipBit(s.root, s.session, s.second) }, (s) => [`contradicts-transcript ${backupPath(s, s.second)}`], 1],
    ['a bit over, no seal, only a weak proof: says nothing', (s) => { damage.flipBit(s.root, s.session, s.last) }, () => [], 0],
    ['bytes that are no UTF-8 any more', (s) => {
      const path = damage.backupOf(s.root, s.session, s.first)
      damage.keepingTimes(path, () => { writeFileSync(path, Buffer.from(readFileSync(path)).fill(0xff, 2, 3)) })
    }, (s) => [`contradicts-transcript ${backupPath(s, s.first)}`], 1],
    ['cut to no bytes', (s) => { damage.cutToZero(s.root, s.session, s.second) }, (s) => [`contradicts-transcript ${backupPath(s, s.second)}`], 1],
    ['replaced by a link', (s) => { damage.replaceBySymlink(s.root, s.session, s.second, '/etc/hosts') }, (s) => [`not-regular ${backupPath(s, s.second)}`], 1],
    ['replaced by a link to nowhere', (s) => { damage.replaceBySymlink(s.root, s.session, s.second, 'nowhere') }, (s) => [`not-regular ${backupPath(s, s.second)}`], 1],
    ['replaced by a folder (R61)', (s) => { damage.replaceByFolder(s.root, s.session, s.second) }, (s) => [`not-regular ${backupPath(s, s.second)}`], 1],
    ['an orphan folder (R88)', (s) => { damage.makeOrphanFolder(s.root, S2, `${H}@v1`) }, () => [`orphan-backups file-history/${S2}`], 0],
    ['five foreign files (R14)', (s) => { damage.addForeignFiles(s.root, s.session) }, (s) => [
      expect.stringMatching(new RegExp(`^foreign-file file-history/${s.session}/[0-9a-f]{16}@v[0-9]\\.bak$`)) as string,
      `foreign-file ${backupPath(s, 'keep.me')}`,
      'foreign-file file-history/README',
      `foreign-file projects/${s.agent.slug}/${s.session}/mine.txt`,
      `foreign-file projects/${s.agent.slug}/notes.md`,
    ], 0],
    ['a backup that no line names (R40)', (s) => { writeBackup(s.root, s.session, `${H}@v7`, 'x') }, (s) => [`unreferenced-backup ${backupPath(s, `${H}@v7`)}`], 0],
    ['a version 1 that no line names is no orphan (R36)', (s) => { writeBackup(s.root, s.session, `${H}@v1`, 'x') }, () => [], 0],
    ['the transcript gone', (s) => { damage.removeTranscript(s.root, s.session) }, (s) => [`orphan-backups file-history/${s.session}`], 0],
    ['a second transcript of the same id (R76)', (s) => { damage.copyTranscriptTo(s.root, s.session, '-zz') }, (s) => [`duplicate-session ${transcriptPath(s)}`], 0],
    ['a snapshot without a message', (s) => { damage.snapshotWithoutMessage(s.root, s.session, uuidOf('none')) }, (s) => [`snapshot-without-message ${transcriptPath(s)}`], 0],
    ['a message of a checkpoint gone', (s) => { damage.dropMessageOfCheckpoint(s.root, s.session, checkpoint(s, 1)) }, (s) => [`snapshot-without-message ${transcriptPath(s)}`], 0],
    ['a checkpoint going back in time (R39)', (s) => { damage.duplicateCheckpoint(s.root, s.session, checkpoint(s, 3), checkpoint(s, 1)) }, (s) => [`duplicate-checkpoint ${transcriptPath(s)}`], 0],
    ['a flood of snapshots (R43)', (s) => { damage.flood(s.root, s.session, 20_000) }, (s) => [`snapshot-flood ${transcriptPath(s)}`], 0],
    ['a history line of a type nobody knows', (s) => { damage.unknownHistoryLine(s.root, s.session, s.second) }, (s) => [`newer-format ${transcriptPath(s)}`], 12],
    ['a client newer than we tested', (s) => { damage.newerClientVersion(s.root, s.session) }, () => ['newer-client'], 0],
    ['a time in the future (R08)', (s) => { damage.futureTimestamp(s.root, s.session, '2031-01-01T00:00:00.000Z') }, (s) => [`future-activity ${transcriptPath(s)}`], 0],
    ['a NUL run on its own line (R73)', (s) => { damage.addNulRun(s.root, s.session, 3, 512, { ownLine: true }) }, (s) => [`nul-run ${transcriptPath(s)}`], 0],
    ['a NUL run in front of a snapshot (R73)', (s) => { damage.addNulRun(s.root, s.session, lineOf(s, 'file-history-snapshot'), 300) }, (s) => [`nul-run ${transcriptPath(s)}`], 0],
    ['a NUL run in front of a message (R73)', (s) => { damage.addNulRun(s.root, s.session, lineOf(s, 'user'), 300) }, (s) => [`nul-run ${transcriptPath(s)}`], 0],
    ['two records on one line (R74)', (s) => { damage.spliceRecords(s.root, s.session, lineOf(s, 'user')) }, (s) => [`spliced-line ${transcriptPath(s)}`], 0],
    ['a cut delta and a whole record (R74)', (s) => { damage.cutAndSplice(s.root, s.session, lineOf(s, 'file-history-delta'), 80) }, (s) => [`spliced-line ${transcriptPath(s)}`], 0],
    ['a line cut in the middle (R72)', (s) => { damage.cutLine(s.root, s.session, lineOf(s, 'assistant'), 90) }, (s) => [`damaged-line ${transcriptPath(s)}`], 0],
    ['the last line cut (R75)', (s) => { damage.cutTail(s.root, s.session, 10) }, (s) => [`torn-tail ${transcriptPath(s)}`], 0],
    ['a good last line without its line feed (R75)', (s) => { damage.cutTail(s.root, s.session, 1) }, () => [], 0],
    ['a byte order mark (R82)', (s) => { damage.addBom(s.root, s.session) }, () => [], 0],
    ['CRLF line ends (R80)', (s) => { damage.toCrlf(s.root, s.session) }, () => [], 0],
    ['raw U+2028, U+0085 and half a surrogate pair (R80)', (s) => { damage.addSeparators(s.root, s.session) }, () => [], 0],
    ['bytes that are no UTF-8 in a message', (s) => { damage.addInvalidUtf8(s.root, s.session) }, () => [], 0],
    ['the global file cut in half, and 30 corrupted copies (R111)', (s) => {
      writeFileSync(join(dirname(s.root), '.claude.json'), '{"projects":{"/p":{')
      for (let index = 0; index < 30; index += 1) writeFileSync(join(dirname(s.root), `.claude.json.corrupted.${String(1_700_000_000_000 + index)}`), '{')
    }, (s) => [`global-file-damaged ${join(dirname(s.root), '.claude.json')}`], 0],
    ['backups that others can read (R90)', (s) => {
      damage.widenModes(s.root, s.session)
      chmodSync(s.root, 0o755)
    }, () => ['wide-mode file-history'], 0],
    ['open backups in a closed root (R90)', (s) => { damage.widenModes(s.root, s.session) }, () => [], 0],
  ]
  test.each(rows)('%s', async (_, act, expected, exitCode) => {
    const store = await goodStore()
    act(store)
    const before = snapshotTree(store.root)
    const report = await check(store.root)
    expect(found(report)).toEqual(expected(store))
    expect(report.exitCode).toBe(exitCode)
    sameTree(store.root, before)
  })

  test('replaced by a pipe (R61): told, and nobody waits for it', async (context) => {
    needs(context, 'fifo')
    const store = await goodStore()
    damage.replaceByFifo(store.root, store.session, store.second)
    for (const threads of [0, 2]) expect(found(await check(store.root, {}, { threads }))).toEqual([`not-regular ${backupPath(store, store.second)}`])
    expect(found(await check(store.root, { sample: { kind: 'bytes', bytes: 1e9 }, quick: false }))).toEqual([`not-regular ${backupPath(store, store.second)}`])
  })

  test('every generation proves its backups: a bit over in version 1 is found without any seal', async () => {
    for (const generation of ['G1', 'G2', 'G3', 'G4'] as const) {
      const store = await goodStore(generation)
      // All but the empty one: clients take an empty file for a new one, and say nothing of its text.
      expect([generation, store.report.summary.backups, store.report.summary.proven]).toEqual([generation, 7, 6])
      damage.flipBit(store.root, store.session, store.first)
      expect(found(await check(store.root))).toEqual([`contradicts-transcript ${backupPath(store, store.first)}`])
    }
  })

  test('the last line says what mends it', async () => {
    const store = await goodStore()
    expect(store.report.next).toBeUndefined()
    damage.removeBackup(store.root, store.session, store.second)
    expect((await check(store.root)).next).toBe('rewind-admin repair')
  })
})

describe('names that are no backup names (R44)', () => {
  test.each(['../../x', '/etc/hosts', `${H}@v0`, `${H}@v01`, 'C:\\x', H.repeat(4), 'con'])('%s is never followed', async (name) => {
    const store = await goodStore()
    const sentinel = join(store.root, 'x')
    writeFileSync(sentinel, 'sentinel')
    const before = snapshotTree(dirname(store.root))
    damage.renameBackupInRecord(store.root, store.session, store.second, name)
    const report = await check(store.root, { seal: true })
    expect(found(report)).toEqual([`unreferenced-backup ${backupPath(store, store.second)}`, `unsafe-name ${transcriptPath(store)}`])
    expect(report.exitCode).toBe(1)
    expect(JSON.stringify(report.findings)).toContain(JSON.stringify(JSON.stringify(name)).slice(1, -1))
    expect(snapshotTree(dirname(store.root))['.claude/x']).toEqual(before['.claude/x'])
  })
})
