import { execFileSync } from 'node:child_process'
import { appendFileSync, existsSync, lstatSync, mkdirSync, readFileSync, readdirSync, renameSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it, test } from 'vitest'
import { openDshRewind } from '../../../src/formats/dsh-rewind/index.js'
import { repairLog, type MarkerRepair } from '../../../src/formats/dsh-rewind/log-repair.js'
import { findPacker, packLog } from '../../../src/formats/dsh-rewind/zstd-write.js'
import { findUnpacker, splitFrames } from '../../../src/formats/dsh-rewind/zstd.js'
import type { Store } from '../../../src/formats/format.js'
import type { Report } from '../../../src/model/report.js'
import { migrate } from '../../../src/operations/migrate/migrate.js'
import { partRunId } from '../../../src/plan/run-id.js'
import { restoreFromTrash } from '../../../src/plan/restore.js'
import { listTrash } from '../../../src/plan/trash.js'
import { cliIn } from '../../cli/world.js'
import { corpusStores } from '../../helpers/corpus.js'
import { ageAll, DshStore } from '../../helpers/dsh.js'
import { extractDshLog } from '../../helpers/dsh-corpus.js'
import { machineWith } from '../../helpers/removal.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { snapshotTree, withoutTimes } from '../../helpers/tree.js'

const now = Date.parse('2027-06-01T12:00:00Z')
const old = Date.parse('2026-10-01T12:00:00Z')
const hasZstd = existsSync('/usr/bin/zstd')

function open(home: string): Store {
  return openDshRewind(join(home, 'rewind-snapshots'), { home: dirname(home), env: {}, platform: 'linux' })
}

function run(store: Store, options: { readonly apply?: boolean; readonly markers?: MarkerRepair; readonly sessions?: readonly string[] } = {}): Promise<Report> {
  return migrate(store, { apply: true, quietPeriodMs: 0, ...options }, { now, machine: machineWith(), token: 'abcdef012345' })
}

/** A file of a fixture as it was made. */
async function fixtureFile(name: string, file: string): Promise<string> {
  const archive = corpusStores('dsh-rewind').find(({ version, scenario }) => version === 'session-logs' && scenario === name)?.archive ?? ''
  const folder = await temporaryFolder()
  execFileSync('tar', ['-xpf', archive, '-C', folder])
  return readFileSync(join(folder, file), 'utf8')
}

/** The text of a log, packed or not. */
function textOf(log: string): string {
  const bytes = readFileSync(log)
  if (!log.endsWith('.zstd')) return bytes.toString('utf8')
  const { frames, rest } = splitFrames(bytes)
  expect(rest).toBe(0)
  return frames.map((frame) => Buffer.from(findUnpacker().unpack(frame)).toString('utf8')).join('')
}

const linesOf = (text: string): Buffer[] => text.trimEnd().split('\n').map((line) => Buffer.from(line))
const textFrom = (lines: readonly Buffer[]): string => lines.map((line) => `${line.toString('utf8')}\n`).join('')

const repairs = [
  ['a-colliding-turn-v0.1.7', 'turn', 'repaired.jsonl'],
  ['a-bare-v0.2.5', 'message', 'expected-form-c.jsonl'],
  ['a-bare-v0.3.2', 'message', 'expected-form-c.jsonl'],
  ['b-ghost-frame', 'message', 'expected-form-c.jsonl'],
  ['c-empty-content', 'message', 'expected-form-c.jsonl'],
] as const

describe.each(repairs.flatMap(([name, markers, expected]) => ['session.jsonl', 'session.jsonl.zstd'].map((file) => [name, file, markers, expected] as const)))('the log %s, %s', (name, file, markers, expected) => {
  it('gets the expected text; a preview writes nothing, the old log comes back to the byte, a second run has nothing to do', async () => {
    const { home, session, log } = await extractDshLog(name, file)
    ageAll(home, old)
    const before = snapshotTree(home)
    const store = open(home)
    const preview = await run(store, { apply: false, markers })
    expect(snapshotTree(home)).toEqual(before)
    expect(preview.plan).toEqual([expect.objectContaining({ action: 'write', path: log, session })])

    const report = await run(store, { markers })
    expect(report).toMatchObject({ errors: [], kept: [], exitCode: 0, plan: preview.plan, summary: { conversations: 1 } })
    expect(textOf(log)).toBe(await fixtureFile(name, expected))
    expect(lstatSync(log).mtimeMs).toBe(old)
    expect(readdirSync(dirname(log))).toEqual([file])
    expect(store.messages({ id: session, members: [] }).map(({ text, active }) => [text, active])).toEqual([
      ['first question', true],
      ['second question', false],
      ['third question', false],
      ['a new question after the rewind', true],
    ])
    expect((await run(open(home), { markers })).plan).toEqual([])

    expect((await restoreFromTrash(store, partRunId(String(report.runId), 4))).errors).toEqual([])
    expect(snapshotTree(join(home, 'sessions'))[`--home-dev-project--/${session}/${file}`]).toEqual(before[`sessions/--home-dev-project--/${session}/${file}`])
  })
})

test.each(['a-colliding-turn-v0.1.7', 'a-bare-v0.2.5', 'a-bare-v0.3.2'])('%s: with its turn given first, a marker becomes the same message', async (name) => {
  const lines = linesOf(await fixtureFile(name, 'session.jsonl'))
  const turned = repairLog(lines, 'turn')
  const both = repairLog(turned === undefined || 'refusal' in turned ? lines : turned.lines, 'message')
  expect(both).toEqual(repairLog(lines, 'message'))
  expect(repairLog(lines, 'message')).toMatchObject({ reason: '1 marker made a message' })
})

test.each([
  ['c-placeholder', 'session.jsonl'],
  ['c-session-v3', 'session.v3.jsonl'],
  ['d-session-v4', 'session.v4.jsonl'],
  ['m0-text-v0.1.1', 'session.jsonl'],
  ['m1-prefixed-text-v0.1.3', 'session.jsonl'],
  ['b-ghost-frame', 'expected-form-c.jsonl'],
])('%s/%s needs no repair of either kind', async (name, file) => {
  const lines = linesOf(await fixtureFile(name, file))
  expect(repairLog(lines, 'message')).toBeUndefined()
  expect(repairLog(lines, 'turn')).toBeUndefined()
})

test('a marker with a step of its own has its turn already: only form A gets one', async () => {
  expect(repairLog(linesOf((await fixtureFile('b-ghost-frame', 'session.jsonl')).replaceAll('"turn":3,"step":2', '"turn":9,"step":2')), 'turn')).toBeUndefined()
})

/** A log with a marker of form B, with one event changed or some added at the end. */
async function ghost(change: (text: string) => string = (text) => text): Promise<Buffer[]> {
  return linesOf(change(await fixtureFile('b-ghost-frame', 'session.jsonl')))
}

describe('events that are counted anew', () => {
  it('are named by their new numbers wherever the page says, and nowhere else', async () => {
    const more = [
      { type: 'compaction', seq: 29, time: 1, data: { shadowedRange: { startSeq: 20, endSeq: 26 }, shadowedSeqs: [1, [23, 26]], messageSeqs: [24], sourceEventSeq: 24 }, sourceEventSeqs: [24, [26, 28]], surfaceOp: { op: 'replace', startSeq: 24, endSeq: 26 } },
      { type: 'command/run', seq: 30, time: 1, data: { commandId: 'cmd-2', name: 'rewind', args: '@24 both @24' } },
      { type: 'command/run', seq: 31, time: 1, data: { commandId: 'cmd-3', name: 'other', args: '@24' } },
      { type: 'tool/result', seq: 32, time: 1, data: { output: { seq: 24, messageSeqs: [24] } } },
    ]
    const repaired = repairLog(await ghost((text) => text + more.map((event) => `${JSON.stringify(event)}\n`).join('')), 'message')
    if (repaired === undefined || 'refusal' in repaired) throw new Error('not repaired')
    expect(repaired.moved).toBe(19)
    expect(repaired.lines.slice(-4).map((line) => JSON.parse(line.toString('utf8')) as unknown)).toEqual([
      { type: 'compaction', seq: 27, time: 1, data: { shadowedRange: { startSeq: 19, endSeq: 24 }, shadowedSeqs: [1, [21, 24]], messageSeqs: [22], sourceEventSeq: 22 }, sourceEventSeqs: [22, [24, 26]], surfaceOp: { op: 'replace', startSeq: 22, endSeq: 24 } },
      { type: 'command/run', seq: 28, time: 1, data: { commandId: 'cmd-2', name: 'rewind', args: '@22 both @24' } },
      { type: 'command/run', seq: 29, time: 1, data: { commandId: 'cmd-3', name: 'other', args: '@24' } },
      { type: 'tool/result', seq: 30, time: 1, data: { output: { seq: 24, messageSeqs: [24] } } },
    ])
    expect(repairLog(repaired.lines, 'message')).toBeUndefined()
  })

  it.each([
    ['one names an event that goes', (text: string) => text.replace('"sourceEventSeq":20', '"sourceEventSeq":21'), 'event 21 would go'],
    ['a run of numbers spans one that goes', (text: string) => text.replace('"seq":26,', '"seq":26,"sourceEventSeqs":[[18,22]],'), 'event 19 would go'],
    ['an event names others in a way that is not known', (text: string) => text.replace('"data":{"turn":4}}', '"data":{"turn":4,"anchorSeq":3}}'), '"anchorSeq"'],
    ['events are not counted one by one', (text: string) => text.replace('"seq":5,', '"seq":6,'), 'line 7'],
    ['they belong to the session that this one was forked from', (text: string) => text.replace('"delegationDepth":0', '"delegationDepth":0,"parentSession":"p","seedLength":25'), 'forked'],
    ['a line would lose bytes', (text: string) => text.replace('"seq":28,', '"seq":28,"x":1.0,'), 'would not keep its other bytes'],
    ['a line is no event', (text: string) => text.replace('{"type":"turn/end","seq":28', '{"type":"turn/end""seq":28'), 'line 30 of it is no event'],
    ['the format takes no such marker', (text: string) => text.replace('"version":0', '"version":4'), 'format 4'],
  ])('are left when %s', async (_, change, words) => {
    expect(repairLog(await ghost(change), 'message')).toEqual({ refusal: expect.stringContaining(words) as string })
  })
})

test('a command that still names an old number gets the one that its marker begins with; a preview and other commands stay', async () => {
  const healthy = await fixtureFile('c-placeholder', 'session.jsonl')
  const stale = healthy.replace('" @7 chat"', '" @9 chat"')
  const preview = '{"type":"command/run","seq":27,"time":1,"data":{"commandId":"cmd-2","name":"rewind","args":"@9"}}\n'
  const repaired = repairLog(linesOf(stale + preview), 'message')
  expect(repaired).toMatchObject({ reason: '1 argument of a command mended' })
  expect(repaired !== undefined && 'lines' in repaired ? textFrom(repaired.lines) : '').toBe(healthy + preview)
})

test('an answer that an earlier repair gave the source of the plugin is a message again, with its text', async () => {
  const text = (await fixtureFile('a-bare-v0.3.2', 'session.jsonl')).replace('"content":[],"source":{"kind":"model","provider":"dsh-rewind","model":"rewind-marker"}', '"content":[{"type":"text","text":"was here"}],"source":{"kind":"plugin","plugin":"dsh-rewind"},"note":1')
  const repaired = repairLog(linesOf(text), 'message')
  const line = repaired !== undefined && 'lines' in repaired ? repaired.lines[20]?.toString('utf8') : undefined
  expect(JSON.parse(line ?? '{}')).toMatchObject({ type: 'user/message', data: { role: 'user', content: [{ type: 'text', text: 'was here' }], note: 1, id: 'marker-1' } })
})

describe('a log is left, and the report says why, when', () => {
  async function left(name: string, file: string, arrange: (log: string, home: string, session: string) => void): Promise<{ report: Report; unchanged: boolean }> {
    const { home, session, log } = await extractDshLog(name, file)
    arrange(log, home, session)
    ageAll(home, old)
    const before = withoutTimes(snapshotTree(join(home, 'sessions')))
    const report = await run(open(home))
    return { report, unchanged: JSON.stringify(withoutTimes(snapshotTree(join(home, 'sessions')))) === JSON.stringify(before) }
  }

  it.each([
    ['its last frame is torn', 'session.jsonl.zstd', (log: string) => { appendFileSync(log, Buffer.from('28b52ffd8438', 'hex')) }, 'torn'],
    ['a byte of its content is not what the checksum says', 'session.jsonl.zstd', (log: string) => { spoil(log) }, 'damaged'],
    ['its last line is cut', 'session.jsonl', (log: string) => { truncateSync(log, lstatSync(log).size - 5) }, 'its last line is cut'],
    ['the plugin repairs it', 'session.jsonl', (log: string) => { writeFileSync(`${log}.rewind-fix.lock`, '1') }, 'rewind-fix.lock'],
    ['the session has snapshots behind it, kept by the numbers', 'session.jsonl', (_: string, home: string, session: string) => { new DshStore(home).text({ anchor: 24, call: 'c', file: '/p/a', before: 'x', time: 1 }, session) }, 'counted anew'],
    ['the session has a journal, which names events', 'session.jsonl', (_: string, home: string, session: string) => { new DshStore(home).put('journal-op-1.json', '{}', session) }, 'counted anew'],
  ])('%s', async (_, file, arrange, words) => {
    const { report, unchanged } = await left('b-ghost-frame', file, arrange)
    expect(report.findings.filter(({ id }) => id === 'marker-left')).toEqual([expect.objectContaining({ message: expect.stringContaining(words) as string })])
    expect([report.plan.filter(({ path }) => path.includes('session.jsonl')), unchanged]).toEqual([[], true])
  })

  it('its folder is a link out of the home', async () => {
    const { home, folder } = await extractDshLog('b-ghost-frame', 'session.jsonl')
    renameSync(join(home, 'sessions'), join(folder, 'elsewhere'))
    symlinkSync(join(folder, 'elsewhere'), join(home, 'sessions'))
    ageAll(folder, old)
    const report = await run(open(home))
    expect(report.findings.map(({ id, message }) => [id, message])).toContainEqual(['marker-left', expect.stringContaining('does not lie in') as string])
    expect(report.plan).toEqual([])
  })

  it('it changed within the quiet period', async () => {
    const { home, log } = await extractDshLog('b-ghost-frame', 'session.jsonl')
    ageAll(home, old)
    ageAll(log, now - 1000)
    const report = await migrate(open(home), { apply: true, quietPeriodMs: 60_000 }, { now, machine: machineWith(), token: 'abcdef012345' })
    expect([report.plan, report.kept]).toEqual([[], [expect.objectContaining({ reason: expect.stringContaining('quiet period') as string })]])
  })
})

/** Changes a byte of a stored block: only the checksum tells. */
function spoil(log: string): void {
  const lines = linesOf(textOf(log))
  const bytes = packLog(lines, findPacker({}))
  const at = bytes.indexOf('first question')
  bytes.write('F', at)
  writeFileSync(log, bytes)
}

test('a session whose snapshots lie before what moves keeps them, and each plans what it did', async () => {
  const { home, session, log } = await extractDshLog('b-ghost-frame', 'session.jsonl')
  new DshStore(home).bytes({ anchor: 13, call: 'c', file: '/p/a', before: 'x', time: 1 }, session)
  ageAll(home, old)
  const report = await run(open(home))
  expect(report.findings.filter(({ id }) => id === 'marker-left')).toEqual([])
  expect(textOf(log)).toBe(await fixtureFile('b-ghost-frame', 'expected-form-c.jsonl'))
  const store = open(home)
  const reading = store.read({ id: session, members: [] }, { now })
  expect(reading.history.checkpoints.map(({ id, aliases }) => [id, aliases])).toEqual([['13', ['@13', 'msg-user-3']]])
})

test('a log in another home is that store\'s to repair; a session that was not asked for is left', async () => {
  const { folder, home, session, log } = await extractDshLog('a-bare-v0.3.2', 'session.jsonl')
  const other = new DshStore(join(folder, 'other'))
  mkdirSync(other.folder('session-b'), { recursive: true })
  ageAll(folder, old)
  const around = { home: folder, env: { DSH_HOME: other.home }, platform: 'linux' } as const
  const before = readFileSync(log)
  const there = await run(openDshRewind(other.root, around))
  expect([there.plan, there.findings]).toEqual([[], []])
  mkdirSync(join(home, 'rewind-snapshots', 'session-c'))
  expect((await run(openDshRewind(join(home, 'rewind-snapshots'), around), { sessions: ['session-c'] })).plan).toEqual([])
  expect(readFileSync(log)).toEqual(before)
  expect((await run(openDshRewind(join(home, 'rewind-snapshots'), around), { sessions: [session] })).plan).toHaveLength(1)
})

test('what was written meanwhile is not lost: the log stays, and the run says so', async () => {
  const { home, log } = await extractDshLog('a-bare-v0.3.2', 'session.jsonl')
  ageAll(home, old)
  const store = open(home)
  const { repairs: planned = [] } = store.conversationRepairs?.('message') ?? {}
  const text = readFileSync(log, 'utf8')
  const late: Store = { ...store, conversationRepairs: () => ({ repairs: planned, findings: [] }) }
  writeFileSync(log, `${text}{"type":"turn/start","seq":27,"time":1,"data":{"turn":5}}\n`)
  const report = await run(late)
  expect(report).toMatchObject({ exitCode: 3, errors: [expect.objectContaining({ code: 'LOCKED' })] })
  expect(readFileSync(log, 'utf8').startsWith(text)).toBe(true)
})

test('a result that is not what was meant is taken back', async () => {
  const { home, log } = await extractDshLog('a-bare-v0.3.2', 'session.jsonl')
  ageAll(home, old)
  const before = readFileSync(log)
  const store = open(home)
  const { repairs: planned = [] } = store.conversationRepairs?.('message') ?? {}
  const wrong: Store = {
    ...store,
    conversationRepairs: () => ({ repairs: planned.map((each) => ({ ...each, file: { ...each.file, write: (take) => { each.file.write(() => undefined); take(Buffer.from('{}\n')) } } })), findings: [] }),
  }
  expect(await run(wrong)).toMatchObject({ exitCode: 3, errors: [expect.objectContaining({ code: 'NOT_PROVEN' })] })
  expect(readFileSync(log)).toEqual(before)
})

describe('a packed log is packed anew', () => {
  const lines = ['{"type":"session"}', 'x'.repeat(40), 'y'.repeat(300_000), 'z'.repeat(1_100_000), '', 'end'].map((line) => Buffer.from(line))

  it('with the header line alone in its first frame, whole lines in every other', () => {
    const { frames, rest } = splitFrames(packLog(lines, findPacker({})))
    expect(rest).toBe(0)
    const contents = frames.map((frame) => Buffer.from(findUnpacker({}).unpack(frame)).toString('utf8'))
    expect(contents[0]).toBe('{"type":"session"}\n')
    expect(contents.every((content) => content.endsWith('\n'))).toBe(true)
    expect(contents.join('')).toBe(textFrom(lines))
    expect(contents).toHaveLength(3)
  })

  it.runIf(hasZstd)('so that the reference decoder accepts every length, checksums included', async () => {
    const folder = await temporaryFolder()
    for (const size of [0, 3, 4, 8, 31, 32, 45, 131_071, 131_072, 262_145]) {
      const content = Buffer.alloc(size, 'abcdefg')
      writeFileSync(join(folder, 'one.zst'), findPacker({})(content))
      expect(execFileSync('zstd', ['-d', '-c', join(folder, 'one.zst')]), String(size)).toEqual(content)
    }
    expect(execFileSync('zstd', ['-lv', join(folder, 'one.zst')], { stdio: 'pipe' }).toString('utf8')).toMatch(/Check: XXH64/)
  })

  it('by the encoder of Node where it has one, with a checksum asked for', () => {
    const asked: unknown[] = []
    const pack = findPacker({ zstdCompressSync: (content: Buffer, options: unknown) => { asked.push(options); return content }, constants: { ZSTD_c_checksumFlag: 201 } })
    expect(packLog(lines.slice(0, 2), pack).toString('utf8')).toBe(`{"type":"session"}\n${'x'.repeat(40)}\n`)
    expect(asked).toEqual([{ params: { 201: 1 } }, { params: { 201: 1 } }])
  })
})

test('the command shows it, does it, and trash restore undoes it', async () => {
  const { folder, home, log } = await extractDshLog('a-colliding-turn-v0.1.7', 'session.jsonl.zstd')
  ageAll(home, old)
  const before = readFileSync(log)
  const cli = cliIn(folder)
  expect((await cli.json('migrate', '--root', home, '--markers', 'turn')).plan).toEqual([expect.objectContaining({ path: log, reason: '1 marker given its turn' })])
  const { runId } = await cli.json('migrate', '--root', home, '--markers', 'turn', '--apply')
  expect(textOf(log)).toBe(await fixtureFile('a-colliding-turn-v0.1.7', 'repaired.jsonl'))
  expect(listTrash(open(home)).map(({ paths }) => paths.map((path) => basename(path)))).toEqual([['session.jsonl.zstd']])
  expect((await cli.json('trash', 'restore', String(runId), '--root', home)).exitCode).toBe(0)
  expect(readFileSync(log)).toEqual(before)
})
