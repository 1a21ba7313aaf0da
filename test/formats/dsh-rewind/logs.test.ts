import { execFileSync } from 'node:child_process'
import { appendFileSync, existsSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import * as zlib from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { openDshRewind } from '../../../src/formats/dsh-rewind/index.js'
import { findUnpacker, splitFrames } from '../../../src/formats/dsh-rewind/zstd.js'
import type { Store } from '../../../src/formats/format.js'
import type { Message, SessionReading } from '../../../src/model/session.js'
import { dshSession, DshStore } from '../../helpers/dsh.js'
import { extractDshLog } from '../../helpers/dsh-corpus.js'
import { temporaryFolder } from '../../helpers/temp.js'

const now = Date.parse('2026-11-30T12:00:00Z')
const hasZstd = existsSync('/usr/bin/zstd')

function open(folder: string, env: Record<string, string> = {}): Store {
  return openDshRewind(join(folder, '.dsh', 'rewind-snapshots'), { home: folder, env, platform: 'linux' })
}

function readOne(store: Store): { reading: SessionReading; messages: Message[] } {
  const [session] = store.inventory().sessions
  if (session === undefined) throw new Error('no session')
  return { reading: store.read(session, { now }), messages: store.messages(session) }
}

/** The forms of section 5.2 with the log they stand in; in all of them the third and second message were rewound. */
const forms = [
  ['m0-text-v0.1.1', 'session.jsonl'],
  ['m1-prefixed-text-v0.1.3', 'session.jsonl'],
  ['a-colliding-turn-v0.1.7', 'session.jsonl'],
  ['a-bare-v0.2.5', 'session.jsonl'],
  ['a-bare-v0.3.2', 'session.jsonl'],
  ['b-ghost-frame', 'session.jsonl'],
  ['c-empty-content', 'session.jsonl'],
  ['c-placeholder', 'session.jsonl'],
  ['c-session-v3', 'session.v3.jsonl'],
  ['d-session-v4', 'session.v4.jsonl'],
] as const

describe.each(forms)('the log %s', (name, file) => {
  it.each([file, `${file}.zstd`])('read from %s: messages of the human, those rewound told apart, and no marker among them', async (each) => {
    const { folder } = await extractDshLog(name, each)
    const { reading, messages } = readOne(open(folder))
    const active = messages.filter((message) => message.active).map(({ text }) => text)
    expect(messages.map(({ text }) => text)).toEqual(['first question', 'second question', 'third question', 'a new question after the rewind'])
    expect(active.at(-1)).toBe('a new question after the rewind')
    expect(active).toContain('first question')
    expect(active).not.toContain('third question')
    expect(messages[0]).toMatchObject({ id: 'msg-user-1', time: 1790000002000 })
    expect(reading).toMatchObject({ project: '/home/dev/project', folders: ['/home/dev/project'], busy: false, findings: [] })
    expect(reading.lastRecorded).toBeGreaterThanOrEqual(1790000026000)
  })
})

describe('a packed log', () => {
  it('is split by the lengths of its frames, and a torn last frame is left out', async () => {
    const { log } = await extractDshLog('d-session-v4', 'session.v4.jsonl.zstd')
    const bytes = readFileSync(log)
    expect(splitFrames(bytes).frames.map(({ length }) => length)).toEqual([139, 423, 549])
    for (const cut of [1, 3, 100, 548]) {
      const { frames, rest } = splitFrames(bytes.subarray(0, bytes.length - cut))
      expect([frames.length, rest]).toEqual([2, 549 - cut])
    }
    // The magic number in data is no beginning of a frame.
    expect(splitFrames(Buffer.concat([Buffer.from('502a4d1804000000', 'hex'), Buffer.from('28b52ffd', 'hex'), bytes])).frames).toHaveLength(3)
    expect(splitFrames(Buffer.from('no frame at all')).frames).toHaveLength(0)
  })

  it('whose end is torn is read up to there without a complaint', async () => {
    const { folder, log } = await extractDshLog('d-session-v4', 'session.v4.jsonl.zstd')
    truncateSync(log, 1111 - 7)
    const { reading, messages } = readOne(open(folder))
    expect(messages.map(({ id }) => id)).toEqual(['msg-user-1', 'msg-user-2', 'msg-user-3'])
    expect(reading.findings).toEqual([])
  })

  it('that is damaged inside is reported, and what can be unpacked counts', async () => {
    const { folder, log } = await extractDshLog('d-session-v4', 'session.v4.jsonl.zstd')
    const bytes = readFileSync(log)
    bytes.fill(0xff, 139 + 60, 139 + 300)
    writeFileSync(log, bytes)
    const { reading } = readOne(open(folder))
    expect(reading.findings).toMatchObject([{ id: 'odd-log', place: { path: log } }])
    expect(reading.project).toBe('/home/dev/project')
  })

  it.runIf(hasZstd)('of several blocks and levels is unpacked', async () => {
    const { folder, log } = await extractDshLog('d-session-v4', 'session.v4.jsonl.zstd')
    const message = (seq: number): string => JSON.stringify({ type: 'user/message', seq, time: 1790000000000 + seq, data: { content: [{ type: 'text', text: `question ${String(seq)} ${'x'.repeat(seq % 977)}` }], source: { kind: 'user' }, id: `m${String(seq)}` } })
    const lines = Array.from({ length: 2000 }, (_, index) => `${message(index + 27)}\n`).join('')
    const plain = join(folder, 'more.jsonl')
    writeFileSync(plain, lines)
    for (const level of ['-1', '-19']) appendFileSync(log, execFileSync('zstd', [level, '--check', '-c', '-q', plain]))
    expect(readOne(open(folder)).messages).toHaveLength(4 + 4000)
  })

  it('says when checksums could not be compared, and is unpacked by Node where that can', async () => {
    const { folder } = await extractDshLog('d-session-v4', 'session.v4.jsonl.zstd')
    const around = { home: folder, env: {}, platform: 'linux' } as const
    const root = join(folder, '.dsh', 'rewind-snapshots')
    const library = findUnpacker({})
    expect(library.checks).toBe(false)
    expect(openDshRewind(root, around, library).globals().map(({ id }) => id)).toEqual(['checksum-unchecked'])
    const own = findUnpacker({ zstdDecompressSync: (frame: Buffer) => library.unpack(frame) })
    const store = openDshRewind(root, around, own)
    expect(store.globals()).toEqual([])
    expect(readOne(store).messages).toHaveLength(4)
    expect(findUnpacker().checks).toBe('zstdDecompressSync' in zlib)
  })
})

describe('the log of a session', () => {
  const messages = [{ seq: 1, text: 'one', time: 1790000000000 }]

  it('is the one of the highest version, whose name and header must agree', async () => {
    const folder = await temporaryFolder()
    const dsh = new DshStore(join(folder, '.dsh'))
    dsh.put('1/x.json', '{}')
    const log = dsh.log('/p', messages)
    writeFileSync(join(dirname(log), 'session.v2.jsonl'), readFileSync(log, 'utf8').replace('"version":3', '"version":2').replace('one', 'older'))
    expect(readOne(open(folder)).messages.map(({ text }) => text)).toEqual(['one'])
    writeFileSync(join(dirname(log), 'session.v4.jsonl'), readFileSync(log, 'utf8'))
    expect(readOne(open(folder)).reading.findings.map(({ id, message }) => [id, message])).toContainEqual(['odd-log', 'its header says version 3, its name version 4'])
  })

  it('is found under its own spelling of the id, in the home around the store, in DSH_HOME, and where it is told', async () => {
    const folder = await temporaryFolder()
    const dsh = new DshStore(join(folder, '.dsh'))
    dsh.put('1/x.json', '{}', 'team_alpha_1')
    const other = new DshStore(join(folder, 'other'))
    const log = other.log('/p', messages, 'team~002falpha~003a1')
    writeFileSync(log, readFileSync(log, 'utf8').replaceAll('team~002falpha~003a1', 'team/alpha:1'))
    expect(readOne(open(folder)).messages).toEqual([])
    expect(readOne(open(folder, { DSH_HOME: '~/other' })).messages).toHaveLength(1)
    const told = openDshRewind(dsh.root, { home: folder, env: {}, platform: 'linux', conversations: join(folder, 'other', 'sessions') })
    expect(readOne(told).reading.project).toBe('/p')
  })

  it('gives names to anchors: by number, by message, by the beginning of one; words that are no number are none', async () => {
    const folder = await temporaryFolder()
    const dsh = new DshStore(join(folder, '.dsh'))
    dsh.markers()
    dsh.bytes({ anchor: 7, call: 'c', file: '/p/f', before: 'x', time: 5 })
    dsh.log('/p', [1, 7, 13, 25].map((seq) => ({ seq, text: `message ${String(seq)}`, time: 1790000000000 + seq })))
    const store = open(folder)
    const [session] = store.inventory().sessions
    if (session === undefined) throw new Error('no session')
    const reading = store.read(session, { now })
    const at = (word: string): unknown => {
      const found = store.checkpointAt?.(session, reading, word)
      return found === undefined ? undefined : [found.id, found.files.size]
    }
    expect(['1', '@1', 'msg-1', '7', 'msg-7', '13', 'msg-13', 'msg-2'].map(at)).toEqual([['1', 1], ['1', 1], ['1', 1], ['7', 1], ['7', 1], ['13', 0], ['13', 0], ['25', 0]])
    expect(['@', '', '@1e3', '@0x10', '@+5', '2', '8', 'msg-', 'nothing', '9'.repeat(20)].map(at)).toEqual(Array.from({ length: 10 }, () => undefined))
    expect(reading.history.checkpoints).toMatchObject([{ id: '7', aliases: ['@7', 'msg-7'], time: '2026-09-21T14:13:20.007Z' }])
  })

  it('takes any number for a message when there is no log to ask', async () => {
    const folder = await temporaryFolder()
    const dsh = new DshStore(join(folder, '.dsh'))
    dsh.bytes({ anchor: 7, call: 'c', file: '/p/f', before: 'x', time: 5 })
    const store = open(folder)
    const [session] = store.inventory().sessions
    if (session === undefined) throw new Error('no session')
    expect(store.checkpointAt?.(session, store.read(session, { now }), '3')?.files.size).toBe(1)
  })

  it('R08: tells times in the future from the last activity', async () => {
    const folder = await temporaryFolder()
    const dsh = new DshStore(join(folder, '.dsh'))
    dsh.put('1/x.json', '{}')
    dsh.log('/p', [...messages, { seq: 2, text: 'later', time: now + 5 }])
    expect(readOne(open(folder)).reading).toMatchObject({ lastRecorded: 1790000000000, future: now + 5 })
  })

  it('is never a pipe that is waited on', async () => {
    const folder = await temporaryFolder()
    const dsh = new DshStore(join(folder, '.dsh'))
    dsh.put('1/x.json', '{}')
    const place = join(dsh.home, 'sessions', '--p--', dshSession)
    mkdirSync(place, { recursive: true })
    execFileSync('mkfifo', [join(place, 'session.v3.jsonl')])
    expect(readOne(open(folder)).messages).toEqual([])
  })
})
