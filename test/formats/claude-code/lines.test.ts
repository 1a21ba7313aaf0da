import { describe, expect, test } from 'vitest'
import { readHistoryLine } from '../../../src/formats/claude-code/lines.js'
import type { BackupRecord } from '../../../src/model/backup.js'
import { delta, H, snap, T } from '../../helpers/store.js'

const place = { source: 0, offset: 7 }
const read = (line: string): ReturnType<typeof readHistoryLine> => readHistoryLine(JSON.parse(line) as unknown, place)

/** The record that a snapshot line yields for a raw record. */
function recordOf(raw: unknown): BackupRecord | undefined {
  const line = readHistoryLine({ type: 'file-history-snapshot', messageId: 'm1', snapshot: { messageId: 'm1', trackedFileBackups: { a: raw } } }, place)
  return line.kind === 'event' && line.event.kind === 'snapshot' ? line.event.files.get('a') : undefined
}

describe('snapshot lines', () => {
  test('the inner id is the checkpoint, the outer one who made it (R37)', () => {
    expect(read(snap('m4', { a: `${H}@v1` }, T, { update: true, outer: 'm9' }))).toEqual({
      kind: 'event',
      maker: 'm9',
      event: { kind: 'snapshot', checkpoint: 'm4', update: true, time: T, files: new Map([['a', { name: `${H}@v1`, version: 1, time: T }]]), ...place },
    })
  })

  test('without an inner id the outer one names the checkpoint (R37)', () => {
    const line = readHistoryLine({ type: 'file-history-snapshot', messageId: 'm1', snapshot: { trackedFileBackups: {} } }, place)
    expect(line).toMatchObject({ kind: 'event', event: { checkpoint: 'm1', update: false } })
  })

  const odd: readonly (readonly [string, unknown])[] = [
    ['no snapshot', { messageId: 'm1' }],
    ['an empty snapshot', { messageId: 'm1', snapshot: {} }],
    ['a snapshot that is null', { messageId: 'm1', snapshot: null }],
    ['tracked files that are a list', { messageId: 'm1', snapshot: { messageId: 'm1', trackedFileBackups: [] } }],
    ['no id at all', { snapshot: { trackedFileBackups: {} } }],
    ['an id that is a number', { messageId: 5, snapshot: { messageId: 5, trackedFileBackups: {} } }],
  ]
  test.each(odd)('R45: %s is odd, not a crash', (_, fields) => {
    expect(readHistoryLine({ type: 'file-history-snapshot', ...(fields as object) }, place).kind).toBe('odd')
  })
})

describe('records', () => {
  const rows: readonly (readonly [string, unknown, Partial<BackupRecord>])[] = [
    ['a name', { backupFileName: `${H}@v3`, version: 3, backupTime: T }, { name: `${H}@v3`, version: 3, time: T }],
    ['null: the file did not exist (R34)', { backupFileName: null, version: 2, backupTime: T }, { name: null, version: 2, time: T }],
    ['G4: the real parent folder', { backupFileName: null, version: 1, realParentDir: '/p' }, { name: null, version: 1, parent: '/p' }],
    ['a version that is missing is the one in the name', { backupFileName: `${H}@v3` }, { name: `${H}@v3`, version: 3 }],
    ['a version that is a text is the one in the name', { backupFileName: `${H}@v3`, version: '9' }, { name: `${H}@v3`, version: 3 }],
    ['unknown fields are left alone', { backupFileName: `${H}@v1`, version: 1, failed: false }, { name: `${H}@v1`, version: 1 }],
  ]
  test.each(rows)('%s', (_, raw, expected) => {
    expect(recordOf(raw)).toEqual(expected)
  })

  const unusable: readonly (readonly [string, unknown])[] = [
    ['null as the whole record (R45)', null],
    ['a text', `${H}@v1`],
    ['a record without a name (R45)', { version: 1 }],
    ['a name that is a number', { backupFileName: 5, version: 1 }],
    ['a path (R44)', { backupFileName: '../../x', version: 1 }],
    ['an absolute path (R44)', { backupFileName: '/etc/hosts', version: 1 }],
    ['version 0 (R44)', { backupFileName: `${H}@v0`, version: 0 }],
    ['a leading zero (R44)', { backupFileName: `${H}@v01`, version: 1 }],
  ]
  test.each(unusable)('%s cannot be followed, and never reads as "did not exist"', (_, raw) => {
    expect(recordOf(raw)?.unusable).toEqual(expect.any(String))
  })

  test('paths are own keys, __proto__ too', () => {
    const line = read(`{"type":"file-history-snapshot","messageId":"m","snapshot":{"messageId":"m","trackedFileBackups":{"__proto__":{"backupFileName":"${H}@v1","version":1}}}}`)
    expect(line.kind === 'event' && line.event.kind === 'snapshot' && [...line.event.files.keys()]).toEqual(['__proto__'])
  })
})

describe('delta lines', () => {
  test('a delta names its checkpoint, path, record and maker', () => {
    expect(read(delta('e1', 'm1', 'a.txt', `${H}@v1`))).toEqual({
      kind: 'event',
      maker: 'e1',
      event: { kind: 'delta', checkpoint: 'm1', path: 'a.txt', record: { name: `${H}@v1`, version: 1, time: T }, ...place },
    })
  })

  test.each(['snapshotMessageId', 'trackingPath'])('a delta without %s is odd', (key) => {
    const line = { ...(JSON.parse(delta('e1', 'm1', 'a', null)) as Record<string, unknown>), [key]: undefined }
    expect(readHistoryLine(line, place).kind).toBe('odd')
  })
})

describe('other lines', () => {
  test('a history type nobody knows is newer', () => {
    expect(read('{"type":"file-history-pack"}')).toEqual({ kind: 'newer', type: 'file-history-pack' })
  })

  test.each(['{"type":"user"}', '{}', '[]', 'null', '5', '"file-history-snapshot"'])('%s is none', (line) => {
    expect(read(line).kind).toBe('other')
  })
})
