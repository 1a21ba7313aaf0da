import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openDshRewind } from '../../../src/formats/dsh-rewind/index.js'
import { folderOfId, groupNumber, groupsNamedIn, isBlobRef, isOddGroup, journalId, parseRef } from '../../../src/formats/dsh-rewind/layout.js'
import { parseRecord } from '../../../src/formats/dsh-rewind/record.js'
import type { SessionReading } from '../../../src/model/session.js'
import { resolve } from '../../../src/model/resolve.js'
import { dshSession, DshStore } from '../../helpers/dsh.js'
import { temporaryFolder } from '../../helpers/temp.js'

const now = Date.parse('2026-11-30T12:00:00Z')

function parse(value: unknown, name = 'c-00000000.json'): unknown {
  return parseRecord(5, name, Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)))
}

async function made(): Promise<{ store: DshStore; read: () => SessionReading }> {
  const folder = await temporaryFolder()
  const store = new DshStore(join(folder, '.dsh'))
  const read = (): SessionReading => {
    const opened = openDshRewind(store.root, { home: folder, env: {}, platform: 'linux' })
    return opened.read(opened.inventory().sessions[0] ?? { id: dshSession, members: [] }, { now })
  }
  return { store, read }
}

/** What each path is at an anchor: null, the name of its backup, or why it is unknown. */
function stateAt(reading: SessionReading, anchor: number): Record<string, string | null> {
  const checkpoint = reading.history.checkpoints.find(({ id }) => id === String(anchor))
  if (checkpoint === undefined) throw new Error(`no checkpoint ${String(anchor)}`)
  return Object.fromEntries([...resolve(reading.history, checkpoint)].map(([path, found]) => [path, found.state === 'unknown' ? `? ${found.reason}` : found.record.name]))
}

describe('names', () => {
  it.each([
    ['a:b', 'a_b'],
    ['../x', '.._x'],
    ['..', 'session'],
    ['.', 'session'],
    ['é/ü', '___'],
    ['session-1', 'session-1'],
  ])('the id %j has the folder %j, which stays inside the root', (id, folder) => {
    expect(folderOfId(id)).toBe(folder)
  })

  it.each(['007', '1e1', '0x0a', '-1', '1.5', ' 1', '', '9007199254740993'])('%j is no group that is read', (name) => {
    expect(groupNumber(name)).toBeUndefined()
  })

  it.each(['007', '1e1', '0x0a', '-1'])('%j is a name that the plugin counts as a group', (name) => {
    expect(isOddGroup(name)).toBe(true)
  })

  it.each([
    ['7/call_02.json', { group: 7, name: 'call_02.json' }],
    ['7\\call_02.json', { group: 7, name: 'call_02.json' }],
    ['../outside.json', undefined],
    ['5/sub/x.json', undefined],
    ['5/..json/x', undefined],
    ['/5/x.json', undefined],
    ['5/x.before', undefined],
    ['5/x y.json', undefined],
  ])('the link %j leads to %j', (ref, place) => {
    expect(parseRef(ref)).toEqual(place)
  })

  it.each([
    ['5/x.before', true],
    ['rescue/op-1/0.before', true],
    ['../../../../x', false],
    ['/abs/x', false],
    ['rescue/../../x.before', false],
    ['rescue/../0.before', false],
    ['5\\x.before', false],
    ['../x', false],
    ['./x', false],
    ['rescue/op/x.before', false],
  ])('the reference %j of a journal may be followed: %j', (ref, allowed) => {
    expect(isBlobRef(ref)).toBe(allowed)
  })

  it('R114: journals of both generations are known by their names, and groups that any bytes name are found', () => {
    expect(journalId('restore-journal-op-1.json')).toBe('op-1')
    expect(journalId('journal-op-1.json')).toBe('op-1')
    expect(journalId('journal-op-1.json.tmp')).toBeUndefined()
    expect(groupsNamedIn('{"ref":"7/a.json","before":{"blob":"12/b-1.before"},"x":"rescue/op/0.before')).toEqual([7, 12])
  })
})

describe('a record with a side file', () => {
  const good = { store: 2, callId: 'c', file: '/p/a', time: 7, blob: 'c-00000000.before', size: 3 }

  it('is read with its pin and mode', () => {
    expect(parse({ ...good, parent: '/p', mode: 0o100640 })).toMatchObject({
      kind: 'content',
      generation: 2,
      file: '/p/a',
      anchor: 5,
      time: 7,
      parent: '/p',
      mode: 0o640,
      content: { kind: 'side', name: 'c-00000000.before', size: 3 },
    })
  })

  it.each([
    ['no file', { ...good, file: 3 }],
    ['another side file', { ...good, blob: 'other.before' }],
    ['a side file that is no text', { ...good, blob: 7 }],
    ['no side file and a size', { ...good, blob: null, size: 3 }],
    ['no side file and lost bytes', { ...good, blob: null, size: 0, lossy: true }],
    ['no JSON', '{"store":2,'],
    ['a list', []],
  ])('with %s is damaged, and never says that the file did not exist', (_, value) => {
    expect(parse(value)).toMatchObject({ kind: 'damaged' })
  })

  it.each([
    ['missing', undefined],
    ['negative', -1],
    ['no number', '3'],
  ])('whose size is %s is read with size 0', (_, size) => {
    expect(parse({ ...good, size })).toMatchObject({ content: { size: 0 } })
  })

  it.each([42, '', null])('with the pin %j has none', (parent) => {
    expect(parse({ ...good, parent })).not.toHaveProperty('parent')
  })

  it('that is empty is a file of 0 bytes and not one that did not exist', () => {
    expect(parse({ ...good, size: 0 })).toMatchObject({ content: { kind: 'side', size: 0 } })
    expect(parse({ ...good, blob: null, size: 0 })).toMatchObject({ content: { kind: 'absent' } })
  })

  it('R113: of a newer store version is read not at all', () => {
    expect(parse({ store: 3, callId: 'x', file: '/p/x', blob: null, size: 0, time: 1 })).toEqual({ kind: 'newer', group: 5, name: 'c-00000000.json', foreign: false, anchor: 5, time: 0, store: 3 })
  })
})

describe('R112: a text record', () => {
  const good = { callId: 'call_1', anchorSeq: 12, path: '/p/a', before: 'x\u00e9\n', time: 1 }

  it('is text, null stays null, and lost bytes stay marked', () => {
    expect(parse(good)).toMatchObject({ kind: 'content', generation: 1, content: { kind: 'text' }, lossy: false, anchor: 12 })
    expect(parse({ ...good, before: null })).toMatchObject({ content: { kind: 'absent' }, lossy: false })
    expect(parse({ ...good, before: '\ufffdPNG' })).toMatchObject({ content: { kind: 'text' }, lossy: true })
    expect(parse({ ...good, before: '\ud800' })).toMatchObject({ content: { kind: 'text' }, lossy: true })
  })

  it.each([1, '2', 1.5, undefined])('is one whatever its store says, if not above 2: %j', (store) => {
    expect(parse({ ...good, store })).toMatchObject({ kind: 'content', generation: 1 })
  })

  it.each([5, {}, undefined, false])('with the content %j is damaged, and never says that the file did not exist', (before) => {
    expect(parse({ ...good, before })).toMatchObject({ kind: 'damaged', file: '/p/a' })
  })

  it('without an anchor number, or a path, is damaged', () => {
    expect(parse({ ...good, anchorSeq: '12' })).toMatchObject({ kind: 'damaged', file: '/p/a' })
    expect(parse({ ...good, path: 12 })).toMatchObject({ kind: 'damaged' })
  })

  it.each([
    ['existed, content unknown', { version: 2, existed: true, before: null }, 'damaged'],
    ['did not exist', { version: 2, existed: false, before: null }, 'content'],
    ['did not exist, and had content', { version: 2, existed: false, before: 'x' }, 'damaged'],
    ['bytes in base64', { version: 2, existed: true, before: null, beforeBase64: 'AP8=' }, 'content'],
    ['another digest', { version: 2, existed: true, before: 'x', sha256: '00' }, 'damaged'],
  ])('of another writer (%s) is %s', (_, fields, kind) => {
    expect(parse({ ...good, ...fields })).toMatchObject({ kind, foreign: true })
  })
})

describe('the state at an anchor', () => {
  it('is the earliest record at or after it: the lowest anchor, then the lowest time', async () => {
    const { store, read } = await made()
    store.markers()
    const at = { file: '/p/f', before: 'x' }
    const [one, , three] = [
      store.bytes({ ...at, anchor: 1, call: 'a', time: 10, before: null }),
      store.bytes({ ...at, anchor: 7, call: 'aa', time: 31 }),
      store.bytes({ ...at, anchor: 7, call: 'zz', time: 30 }),
      store.bytes({ ...at, anchor: 19, call: 'b', time: 40 }),
    ]
    expect(one).toBe('1/a-ca978112.json')
    expect(stateAt(read(), 1)).toEqual({ '/p/f': null })
    expect(stateAt(read(), 7)).toEqual({ '/p/f': three.replace('.json', '.before') })
  })

  it('belongs to the folder of a text record, and is ordered by its own anchor (section 2.8)', async () => {
    const { store, read } = await made()
    store.text({ anchor: 5, call: 'later', file: '/p/f', before: 'later', time: 1 })
    store.putJson('5/first.json', { callId: 'first', anchorSeq: 2, path: '/p/f', before: 'first', time: 9 })
    expect(stateAt(read(), 5)).toEqual({ '/p/f': '5/first.json' })
    expect(read().findings.map(({ id }) => id)).toContain('odd-record')
  })

  it('sorts a record without a time before the others of its group', async () => {
    const { store, read } = await made()
    store.text({ anchor: 5, call: 'b', file: '/p/f', before: 'b', time: 1 })
    store.putJson('5/z.json', { callId: 'z', anchorSeq: 5, path: '/p/f', before: 'z' })
    expect(stateAt(read(), 5)).toEqual({ '/p/f': '5/z.json' })
  })

  it('follows a chain of links over both generations, with the pin of the link and no mode', async () => {
    const { store, read } = await made()
    store.markers()
    const real = store.text({ anchor: 1, call: 'call_01', file: '/p/a', before: 'A', time: 1 })
    const middle = store.link({ anchor: 7, call: 'call_02', file: '/p/a', ref: real, time: 2, era: 1 })
    store.link({ anchor: 13, call: 'call_03', file: '/p/a', ref: middle, time: 3, parent: '/p' })
    const reading = read()
    expect(stateAt(reading, 13)).toEqual({ '/p/a': real })
    const record = reading.history.checkpoints.at(-1)?.files.get('/p/a')
    expect(record).toEqual({ name: real, version: 1, time: '1970-01-01T00:00:00.003Z', parent: '/p' })
  })

  it.each([
    ['is not there', '99/missing.json', 'which is not there'],
    ['leads out', '../outside.json', 'no record of the session'],
    ['leads deeper', '5/sub/x.json', 'no record of the session'],
    ['is itself', '5/l-acac86c0.json', 'in a circle'],
  ])('is unknown where a link %s', async (_, ref, words) => {
    const { store, read } = await made()
    store.putJson('../outside.json', { callId: 'o', anchorSeq: 5, path: '/p/f', before: 'secret', time: 1 })
    store.link({ anchor: 5, call: 'l', file: '/p/f', ref, time: 1 })
    const [name] = Object.values(stateAt(read(), 5))
    expect(name).toContain(words)
    expect(read().findings.map(({ id }) => id)).toContain('broken-link')
  })

  it('does not take two links of one group with the same call id for a circle', async () => {
    const { store, read } = await made()
    store.text({ anchor: 1, call: 'r', file: '/p/f', before: 'R', time: 1 })
    store.putJson('5/b.json', { callId: '', anchorSeq: 5, path: '/p/f', ref: '1/r.json', time: 3 })
    store.putJson('5/a.json', { callId: '', anchorSeq: 5, path: '/p/f', ref: '5/b.json', time: 2 })
    expect(stateAt(read(), 5)).toEqual({ '/p/f': '1/r.json' })
  })

  it('keeps odd keys apart as data', async () => {
    const { store, read } = await made()
    for (const [index, file] of ['__proto__', 'constructor', '/p/..foo/x', '/p/a\\b'].entries()) store.text({ anchor: 1, call: `c${String(index)}`, file, before: file, time: 1 })
    expect(stateAt(read(), 1)).toEqual(Object.fromEntries([['__proto__', '1/c0.json'], ['constructor', '1/c1.json'], ['/p/..foo/x', '1/c2.json'], ['/p/a\\b', '1/c3.json']]))
  })

  it('R113: is unknown for every path when a record of a newer version stands at or after it, and as ever behind that', async () => {
    const { store, read } = await made()
    store.markers()
    store.bytes({ anchor: 5, call: 'a', file: '/p/a', before: 'a', time: 1 })
    store.putJson('9/future.json', { store: 3, file: '/p/x' })
    const after = store.bytes({ anchor: 10, call: 'b', file: '/p/a', before: 'b', time: 2 })
    expect(stateAt(read(), 5)['/p/a']).toContain('newer version')
    expect(stateAt(read(), 10)).toEqual({ '/p/a': after.replace('.json', '.before') })
  })
})

describe('a session', () => {
  it('R113: with a newer store version is read no further than its marker', async () => {
    const { store, read } = await made()
    store.bytes({ anchor: 5, call: 'a', file: '/p/a', before: 'a', time: 1 })
    store.put('store', ' 3\n')
    expect(read()).toMatchObject({ history: { checkpoints: [], lines: 0 }, findings: [{ id: 'newer-format', severity: 'error' }] })
  })

  it('R55: whose group, marker or record is a link is not followed, and left alone', async () => {
    const { store, read } = await made()
    store.text({ anchor: 1, call: 'a', file: '/p/a', before: 'a', time: 1 })
    const outside = store.put('../../outside/secret.json', JSON.stringify({ callId: 's', anchorSeq: 7, path: '/p/s', before: 'secret', time: 1 }))
    symlinkSync(join(outside, '..'), join(store.folder(), '7'))
    symlinkSync(outside, join(store.folder(), '1', 'b.json'))
    const reading = read()
    expect([...reading.history.tracked]).toEqual(['/p/a'])
    expect(reading.findings.map(({ id, place }) => [id, place?.path])).toEqual([
      ['not-regular', `${dshSession}/7`],
      ['not-regular', `${dshSession}/1/b.json`],
    ])
    expect(reading.damaged).toBe(true)
  })

  it('with a marker that is a link is read no further', async () => {
    const { store, read } = await made()
    store.text({ anchor: 1, call: 'a', file: '/p/a', before: 'a', time: 1 })
    symlinkSync('format', join(store.folder(), 'store'))
    expect(read()).toMatchObject({ damaged: true, history: { lines: 0 }, findings: [{ id: 'unreadable' }] })
  })

  it('takes half-written and temporary files for what they are', async () => {
    const { store, read } = await made()
    store.put('5/c1.json.tmp', '{"callId":"c1","anchorSeq":5,"path":"/p/lost","before":"x","time":1}')
    store.put('5/c2.json', '{"callId":"c2","anchorSeq":5,"path":"/p/half","bef')
    expect(read()).toMatchObject({ damaged: false, findings: [{ id: 'damaged-record', place: { path: `${dshSession}/5/c2.json` } }] })
    expect(read().history.tracked.size).toBe(0)
  })
})
