import { existsSync, lstatSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import * as damage from './damage.js'
import { emptyRoot, H, S1, S2, snap, userLine, writeBackup, writeTranscript } from './store.js'
import { needs } from './unprivileged.js'

const mtime = Date.parse('2026-10-01T00:00:00.000Z')
const name = `${H}@v1`
const lines = [userLine('m1'), snap('m1', { 'a.txt': name }), userLine('m2'), snap('m2', { 'a.txt': `${H}@v2` })]

let root = ''
let transcript = ''

beforeEach(async ({ onTestFinished }) => {
  root = await emptyRoot(onTestFinished)
  transcript = writeTranscript(root, '-p', S1, lines, { mtime })
  writeBackup(root, S1, name, 'one\n', { mtime })
  writeBackup(root, S1, `${H}@v2`, 'two\n', { mtime })
})

const text = (): string => readFileSync(transcript, 'utf8')

describe('damage to transcripts keeps the mtime and the mode, and does what its name says', () => {
  const whole = lines.map((line) => `${line}\n`)
  const [l0 = '', l1 = '', l2 = '', l3 = ''] = whole
  const bare = (line: string): string => line.slice(0, -1)
  const rows: readonly (readonly [string, () => void, string])[] = [
    ['spliceRecords', () => { damage.spliceRecords(root, S1, 1) }, l0 + bare(l1) + l2 + l3],
    ['cutAndSplice', () => { damage.cutAndSplice(root, S1, 1, 30) }, l0 + l1.slice(0, 30) + l2 + l3],
    ['cutLine', () => { damage.cutLine(root, S1, 1, 30) }, `${l0}${l1.slice(0, 30)}\n${l2}${l3}`],
    ['cutTail', () => { damage.cutTail(root, S1, 10) }, whole.join('').slice(0, -10)],
    ['addNulRun on its line', () => { damage.addNulRun(root, S1, 2, 512, { ownLine: true }) }, `${l0}${l1}${'\0'.repeat(512)}\n${l2}${l3}`],
    ['addNulRun before a line', () => { damage.addNulRun(root, S1, 2, 3) }, `${l0}${l1}\0\0\0${l2}${l3}`],
    ['addBom', () => { damage.addBom(root, S1) }, `\ufeff${whole.join('')}`],
    ['toCrlf', () => { damage.toCrlf(root, S1) }, whole.join('').replaceAll('\n', '\r\n')],
    ['swapLines', () => { damage.swapLines(root, S1, 0, 1) }, l1 + l0 + l2 + l3],
    ['dropMessageOfCheckpoint', () => { damage.dropMessageOfCheckpoint(root, S1, 'm2') }, l0 + l1 + l3],
    ['duplicateCheckpoint', () => { damage.duplicateCheckpoint(root, S1, 'm2', 'm1') }, whole.join('') + l1.replaceAll('"m1"', '"m2"')],
    ['renameBackupInRecord', () => { damage.renameBackupInRecord(root, S1, name, '../../x') }, whole.join('').replace(name, '../../x')],
    ['renameBackupInRecord to null', () => { damage.renameBackupInRecord(root, S1, name, null) }, whole.join('').replace(`"${name}"`, 'null')],
    ['newerClientVersion', () => { damage.newerClientVersion(root, S1) }, whole.join('').replaceAll('"2.1.332"', '"9.0.1"')],
    ['snapshotWithoutMessage', () => { damage.snapshotWithoutMessage(root, S1, 'm3') }, `${whole.join('')}${snap('m3')}\n`],
  ]
  test.each(rows)('%s', (_, act, expected) => {
    act()
    expect(text()).toBe(expected)
    expect([statSync(transcript).mtimeMs, statSync(transcript).mode & 0o7777]).toEqual([mtime, 0o600])
  })

  test('flood repeats the last snapshot as an update', () => {
    damage.flood(root, S1, 2500)
    const all = text().trimEnd().split('\n')
    expect(all).toHaveLength(2504)
    expect(new Set(all.slice(4))).toEqual(new Set([bare(l3).replace('"isSnapshotUpdate":false', '"isSnapshotUpdate":true')]))
    expect(statSync(transcript).mtimeMs).toBe(mtime)
  })

  test('addLongLine, addSeparators and unknownHistoryLine append lines that are valid JSON', () => {
    damage.addSeparators(root, S1)
    damage.addLongLine(root, S1, 3_000_000)
    damage.unknownHistoryLine(root, S1, `${H}@v9`)
    const added = damage.linesOf(root, S1).slice(4).map((line) => JSON.parse(line.toString()) as { message?: { content: { text: string }[] }; type: string })
    expect(added[0]?.message?.content[0]?.text).toBe('one\u2028two\u2029three\u0085four \ud83d five')
    expect(added[1]?.message?.content[0]?.text).toHaveLength(3_000_000)
    expect(added[2]?.type).toBe('file-history-pack')
  })

  test('addInvalidUtf8 puts bytes into a string that are no UTF-8', () => {
    damage.addInvalidUtf8(root, S1)
    expect(damage.linesOf(root, S1)[4]?.includes(Buffer.from([0xff, 0xfe, 0xc3]))).toBe(true)
  })

  test('replaceTranscriptByRename keeps bytes and mtime and changes the inode', () => {
    const before = statSync(transcript).ino
    damage.replaceTranscriptByRename(root, S1)
    expect(statSync(transcript).ino).not.toBe(before)
    expect([text(), statSync(transcript).mtimeMs]).toEqual([whole.join(''), mtime])
  })

  test('lines are found by content, with their byte offset', () => {
    expect(damage.findLine(root, S1, (record) => record.messageId === 'm2')).toBe(3)
    expect(damage.offsetOfLine(root, S1, 1)).toBe(Buffer.byteLength(l0))
  })
})

describe('damage to backups', () => {
  const path = (): string => damage.backupOf(root, S1, name)

  test('flipBit changes one bit and neither size, mtime nor inode', () => {
    const before = statSync(path())
    damage.flipBit(root, S1, name, 2)
    expect(readFileSync(path(), 'utf8')).toBe('ond\n')
    const { size, mtimeMs, ino, mode } = statSync(path())
    expect({ size, mtimeMs, ino, mode }).toEqual({ size: 4, mtimeMs: mtime, ino: before.ino, mode: before.mode })
  })

  test('cutToZero keeps the mtime', () => {
    damage.cutToZero(root, S1, name)
    expect([statSync(path()).size, statSync(path()).mtimeMs]).toEqual([0, mtime])
  })

  test('replacements have their type', (context) => {
    needs(context, 'fifo')
    damage.replaceByFifo(root, S1, name)
    expect(lstatSync(path()).isFIFO()).toBe(true)
    damage.replaceByFolder(root, S1, name)
    expect(lstatSync(path()).isDirectory()).toBe(true)
    damage.replaceBySymlink(root, S1, `${H}@v2`, '/etc/hosts')
    expect(lstatSync(damage.backupOf(root, S1, `${H}@v2`)).isSymbolicLink()).toBe(true)
  })

  test('orphans, foreign files and second names are where they say', () => {
    damage.linkIntoSession(root, S1, name, S2)
    expect(lstatSync(damage.backupOf(root, S2, name)).nlink).toBe(2)
    damage.makeOrphanFolder(root, '33333333-3333-4333-8333-333333333333', name, { mtime })
    expect(statSync(join(root, 'file-history', '33333333-3333-4333-8333-333333333333')).mtimeMs).toBe(mtime)
    expect(damage.addForeignFiles(root, S1)).toEqual([
      'projects/-p/notes.md', `projects/-p/${S1}/mine.txt`, 'file-history/README', `file-history/${S1}/keep.me`, `file-history/${S1}/${name}.bak`,
    ])
    expect(existsSync(join(root, `file-history/${S1}/${name}.bak`))).toBe(true)
    damage.copyTranscriptTo(root, S1, '-q')
    expect(() => damage.transcriptOf(root, S1)).toThrow(/2 transcripts/)
  })
})
