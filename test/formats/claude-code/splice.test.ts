import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { delta, H, H2, snap, userLine } from '../../helpers/store.js'
import { scan, scanBytes, text, type Scanned } from './scanning.js'

const good = snap('m1', { 'a.txt': `${H}@v1` })

function references(scanned: Scanned): string[] {
  return [...scanned.history.references.keys()].sort()
}

describe('R72: damaged lines', () => {
  test('reading goes on after a line cut in the middle; its names count as in use', async () => {
    const cut = snap('m2', { a: `${H}@v2`, b: `${H2}@v2` })
    const before = text(good, userLine('m1'))
    const scanned = await scan(`${before}${cut.slice(0, cut.indexOf('"b"'))}\n${text(snap('m3', { a: `${H}@v3` }))}`)
    expect(references(scanned)).toEqual([`${H}@v1`, `${H}@v2`, `${H}@v3`])
    expect(scanned.history.references.get(`${H}@v2`)?.pinned).toBe(true)
    expect(scanned.found).toEqual([`damaged-line@${String(before.length)}`])
  })

  test('a history line cut right behind a brace is damage as well', async () => {
    const cut = good.slice(0, good.indexOf(',"isSnapshotUpdate"'))
    const scanned = await scan(text(cut, snap('m2')))
    expect(scanned.found).toHaveLength(1)
    expect(references(scanned)).toEqual([`${H}@v1`])
  })

  test('what stands in an odd line or one of a newer type keeps its backups in use', async () => {
    const odd = [
      `{"type":"file-history-snapshot","messageId":"m1","snapshot":{"messageId":"m1","trackedFileBackups":[{"backupFileName":"${H}@v1"}]}}`,
      `{"type":"file-history-delta","messageId":"m1","trackingPath":"a","backup":{"backupFileName":"${H}@v2","version":2}}`,
      `{"type":"file-history-pack","messageId":"m1","members":["${H}@v3"]}`,
    ]
    const scanned = await scan(text(...odd))
    expect(scanned.problems.map(({ kind }) => kind)).toEqual(['odd-record', 'odd-record', 'newer-format'])
    expect(references(scanned)).toEqual([`${H}@v1`, `${H}@v2`, `${H}@v3`])
  })

  test('a key that stands twice keeps both backups in use', async () => {
    const twice = `{"type":"file-history-delta","messageId":"x","snapshotMessageId":"m1","trackingPath":"a","backup":{"backupFileName":"${H}@v1","version":1},`
      + `"backup":{"backupFileName":"${H2}@v2","version":2}}`
    expect(references(await scan(text(twice)))).toEqual([`${H}@v1`, `${H2}@v2`])
  })
})

describe('R74: records that share a line', () => {
  test('a cut record and a whole one: the whole one is read, at its own offset', async () => {
    const line = `{"type":"pr-link","sessi${delta('x', 'm1', 'a', `${H}@v1`)}`
    const scanned = await scan(text(snap('m1'), line))
    expect(scanned.history.checkpoints[0]?.files.get('a')?.name).toBe(`${H}@v1`)
    const start = text(snap('m1')).length
    expect(scanned.found).toEqual([`spliced-line@${String(start)}`])
    expect(scanned.events[1]?.offset).toBe(start + 24)
  })

  test('two snapshots back to back: both are read', async () => {
    const scanned = await scan(text(`${good}${snap('m2', { a: `${H}@v2` })}`))
    expect(scanned.history.checkpoints.map(({ id }) => id)).toEqual(['m1', 'm2'])
    expect([...scanned.history.references.values()].map(({ pinned }) => pinned)).toEqual([false, false])
    expect(scanned.found).toEqual(['spliced-line@0'])
  })

  test('a cut history record and a whole message: the names of the cut one count as in use', async () => {
    const scanned = await scan(text(`${good.slice(0, -30)}${userLine('m1')}`))
    expect(references(scanned)).toEqual([`${H}@v1`])
    expect(scanned.others).toEqual([userLine('m1')])
    expect(scanned.found).toEqual(['spliced-line@0'])
  })

  test('two messages on one line are noticed, both count, whatever bytes stand before', async () => {
    const line = Buffer.concat([Buffer.from(userLine('m1', { text: 'é' })), Buffer.from(userLine('m2'))])
    const scanned = await scan(Buffer.concat([line, Buffer.from('\n')]))
    expect(scanned.others).toEqual([userLine('m1', { text: 'é' }), userLine('m2')])
    expect(scanned.found).toEqual(['spliced-line@0'])
  })

  test('bytes that are no UTF-8 in the cut part do not shift the whole one', async () => {
    const line = Buffer.concat([Buffer.from('{"type":"x","text":"'), Buffer.from([0xff, 0xfe, 0xc3]), Buffer.from(good)])
    const scanned = await scan(Buffer.concat([line, Buffer.from('\n')]))
    expect(scanned.events.map(({ kind, offset }) => [kind, offset])).toEqual([['snapshot', line.length - good.length]])
  })

  const names = fc.tuple(fc.constantFrom(H, H2, '0123456789abcdef'), fc.integer({ min: 1, max: 120 })).map(([hash, version]) => `${hash}@v${String(version)}`)
  const paths = fc.oneof(fc.constantFrom('a.txt', '/home/u/é.txt', 'x{"type":"y"}'), fc.string({ maxLength: 12 }))
  const someRecord = fc.oneof(
    fc.tuple(fc.constantFrom('m1', 'm2'), fc.dictionary(paths, fc.option(names), { maxKeys: 4 }), fc.boolean()).map(([id, files, update]) => snap(id, files, undefined, { update })),
    fc.tuple(fc.constantFrom('m1', 'm2'), paths, names).map(([id, path, name]) => delta('x', id, path, name)),
  )

  function wholeNames(bytes: Buffer): string[] {
    return [...new Set(Array.from(bytes.toString('latin1').matchAll(/[0-9a-f]{16}@v[1-9][0-9]*/g), ([name]) => name))]
  }

  test('every backup name that stands whole in two joined pieces of history records is in use', () => {
    fc.assert(
      fc.property(someRecord, someRecord, fc.nat(), fc.nat(), fc.boolean(), (a, b, i, j, follow) => {
        const [left, right] = [Buffer.from(a), Buffer.from(b)]
        const line = Buffer.concat([left.subarray(0, i % (left.length + 1)), right.subarray(j % (right.length + 1))])
        const scanned = scanBytes(Buffer.concat([Buffer.from(text(snap('m0'))), line, Buffer.from(follow ? text('', snap('m9')) : '')]))
        const live = new Set(references(scanned))
        for (const name of wholeNames(line)) expect(live).toContain(name)
      }),
      { numRuns: 3000 },
    )
  })

  test('the same where one byte of a record is another one', () => {
    fc.assert(
      fc.property(someRecord, fc.nat(), fc.integer({ min: 0, max: 255 }), (a, at, byte) => {
        const line = Buffer.from(a)
        line.writeUInt8(byte, at % line.length)
        const live = new Set(references(scanBytes(Buffer.concat([Buffer.from(text(snap('m0'))), line, Buffer.from('\n')]))))
        for (const piece of line.toString('latin1').split('\n')) for (const name of wholeNames(Buffer.from(piece, 'latin1'))) expect(live).toContain(name)
      }),
      { numRuns: 2000 },
    )
  })
})

describe('R75: the last line', () => {
  test('a good last line without its line feed is fine', async () => {
    const scanned = await scan(`${text(userLine('m1'))}${good}`)
    expect(references(scanned)).toEqual([`${H}@v1`])
    expect(scanned.found).toEqual([])
  })

  const cuts: readonly (readonly [string, string])[] = [
    ['in a text', '{"type":"user","mess'],
    ['right behind a brace', userLine('m9').slice(0, userLine('m9').indexOf('},"uuid"') + 1)],
    ['after one byte', '{'],
  ]
  test.each(cuts)('a last line cut %s is torn, not damaged', async (_, cut) => {
    const lines = [...Array.from({ length: 50 }, (_unused, index) => userLine(`m${String(index)}`)), good]
    const scanned = await scan(`${text(...lines)}${cut}`)
    expect(scanned.found).toEqual([`torn-tail@${String(text(...lines).length)}`])
  })
})
