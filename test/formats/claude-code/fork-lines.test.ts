import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { ForkRequest } from '../../../src/formats/conversation.js'
import { forkTranscript } from '../../../src/formats/claude-code/fork-lines.js'
import { openClaudeCode } from '../../../src/formats/claude-code/index.js'
import { takeInventory } from '../../../src/formats/claude-code/inventory.js'
import { extractStore } from '../../helpers/corpus.js'
import { assistantLine, delta, emptyRoot, H, H2, S1, S2, snap, userLine, writeTranscript } from '../../helpers/store.js'
import { cutAndSplice, addNulRun, spliceRecords, toCrlf, unknownHistoryLine } from '../../helpers/damage.js'

const m1 = '00000000-0000-4000-8000-000000000001'
const a1 = '00000000-0000-4000-8000-0000000000a1'
const m2 = '00000000-0000-4000-8000-000000000002'
const a2 = '00000000-0000-4000-8000-0000000000a2'
const m3 = '00000000-0000-4000-8000-000000000003'

function forkOf(root: string, request: ForkRequest = { newId: S2 }, session = S1): string[] {
  const ref = takeInventory(root).sessions.find(({ id }) => id === session)
  if (ref === undefined) throw new Error('no such session')
  const parts: Buffer[] = []
  forkTranscript(root, ref, request, (bytes) => parts.push(Buffer.from(bytes)))
  return Buffer.concat(parts).toString('latin1').split('\n').slice(0, -1)
}

function transcript(root: string, lines: readonly string[]): void {
  writeTranscript(root, '-p', S1, lines)
}

const conversation = [userLine(m1), assistantLine(a1, { parent: m1 }), userLine(m2, { parent: a1 }), assistantLine(a2, { parent: m2 }), userLine(m3, { parent: a2 })]

interface Parsed {
  readonly type: string
  readonly uuid?: string
  readonly sessionId?: string
}

function parsed(lines: readonly string[]): Parsed[] {
  return lines.map((line) => JSON.parse(line) as Parsed)
}

describe('the transcript of a fork against the one that the client made', () => {
  it.each(['2.0.64', '2.1.112', '2.1.332'])('%s: folded snapshots and messages are the same lines in the same order', async (version) => {
    const { root } = await extractStore(version, 'fork')
    const [first, second] = takeInventory(root).sessions.map(({ id, members }) => {
      const path = members.find(({ kind }) => kind === 'transcript')?.path ?? ''
      return { id, lines: readFileSync(join(root, path), 'latin1').split('\n').slice(0, -1) }
    })
    if (first === undefined || second === undefined) throw new Error('two sessions expected')
    const [source, theirs] = first.lines.length < second.lines.length ? [first, second] : [second, first]
    const ours = forkOf(root, { newId: theirs.id }, source.id)
    const folded = (lines: readonly string[]): unknown[] => lines.filter((line) => line.startsWith('{"type":"file-history-snapshot"')).map((line) => JSON.parse(line) as unknown)
    expect(folded(ours)).toEqual(folded(theirs.lines).slice(0, folded(ours).length))
    const ids = new Set(parsed(source.lines).flatMap(({ uuid }) => uuid ?? []))
    const messages = (lines: readonly string[]): unknown[] => parsed(lines).filter(({ uuid }) => uuid !== undefined && ids.has(uuid)).map(({ uuid, sessionId }) => [uuid, sessionId])
    expect(messages(ours)).toEqual(messages(theirs.lines))
    // What it begins with besides: the same kinds of lines, those left out that the client wrote for the new run.
    const kinds = (lines: readonly string[]): string[] => [...new Set(parsed(lines).map(({ type }) => type))]
    expect(kinds(theirs.lines)).toEqual(expect.arrayContaining(kinds(ours)))
  })

  it('copies message lines byte for byte but for the session id', async () => {
    const { root } = await extractStore('2.1.332', 'mixed')
    const [session] = takeInventory(root).sessions.filter(({ members }) => members.some(({ kind }) => kind === 'transcript'))
    if (session === undefined) throw new Error('no session')
    const path = session.members.find(({ kind }) => kind === 'transcript')?.path ?? ''
    const wanted = readFileSync(join(root, path), 'latin1').split('\n').filter((line) => line.includes('"uuid":')).map((line) => line.replace(`"sessionId":"${session.id}"`, `"sessionId":"${S2}"`))
    expect(forkOf(root, { newId: S2 }, session.id).filter((line) => line.includes('"uuid":'))).toEqual(wanted)
  })
})

describe('lines of a fork', () => {
  it('of unknown types and with unknown fields survive byte for byte, nested session ids too', async () => {
    const root = await emptyRoot()
    const odd = `{ "type": "zz-new",  "sessionId": "${S1}", "n": 1.0, "nested": {"sessionId":"${S1}"} }`
    const message = userLine(m1).replace('"userType"', `"extra":{"sessionId":"${S1}","big":12345678901234567890},"userType"`)
    transcript(root, [odd, message, '{"type":"zz-without","leafUuid":"nobody"}'])
    const [first = '', second = '', third = ''] = forkOf(root)
    expect(first).toBe(odd.replace(`"sessionId": "${S1}"`, `"sessionId": "${S2}"`))
    expect(second).toBe(message.replace(`"cwd":"/home/u/project","sessionId":"${S1}"`, `"cwd":"/home/u/project","sessionId":"${S2}"`))
    expect(third).toBe('{"type":"zz-without","leafUuid":"nobody"}')
  })

  it('are not what the old session did: queue, last prompt, costs and requests stay behind', async () => {
    const root = await emptyRoot()
    const types = ['queue-operation', 'last-prompt', 'cost-state', 'api-request', 'api-request-shape', 'api-request-blob']
    transcript(root, [...types.map((type) => JSON.stringify({ type, sessionId: S1 })), userLine(m1)])
    expect(parsed(forkOf(root)).map(({ type }) => type)).toEqual(['user'])
  })

  it('begin with the last of each kind that holds for the session', async () => {
    const root = await emptyRoot()
    const mode = (value: string): string => JSON.stringify({ type: 'mode', mode: value, sessionId: S1 })
    transcript(root, [mode('plan'), userLine(m1), mode('normal')])
    expect(forkOf(root)).toEqual([mode('normal').replace(S1, S2), userLine(m1, { session: S2 })])
  })

  it('keep the version mark of the client that wrote them (R70)', async () => {
    const root = await emptyRoot()
    transcript(root, [userLine(m1, { version: '1.0.128' }), assistantLine(a1, { parent: m1, version: '2.1.332' })])
    expect(forkOf(root).map((line) => (JSON.parse(line) as { version: string }).version)).toEqual(['1.0.128', '2.1.332'])
  })

  it('fold updates and deltas into one snapshot with every field of the records', async () => {
    const root = await emptyRoot()
    const record = { backupFileName: `${H}@v1`, version: 1, backupTime: 'T1', realParentDir: '/p', later: { x: [1] } }
    transcript(root, [delta(a1, m1, 'early', null), userLine(m1), snap(m1, {}), delta(a1, m1, '__proto__', record), delta(a1, m1, '__proto__', null)])
    const [line = ''] = forkOf(root)
    expect(line).toContain(`"__proto__":${JSON.stringify(record)}`)
    const { snapshot, isSnapshotUpdate, messageId } = JSON.parse(line) as { snapshot: { trackedFileBackups: object }; isSnapshotUpdate: boolean; messageId: string }
    expect([Object.keys(snapshot.trackedFileBackups), isSnapshotUpdate, messageId]).toEqual([['early', '__proto__'], false, m1])
  })

  it('are whole records even where the old ones are damaged (R72, R73, R74)', async () => {
    const root = await emptyRoot()
    transcript(root, conversation)
    spliceRecords(root, S1, 0)
    addNulRun(root, S1, 1, 50)
    cutAndSplice(root, S1, 1, 120)
    appendFileSync(join(root, 'projects/-p', `${S1}.jsonl`), '{"type":"user","uuid":"torn')
    expect(parsed(forkOf(root)).map(({ uuid }) => uuid)).toEqual([m1, a1, a2, m3])
  })

  it('keep their own line ends (R80)', async () => {
    const root = await emptyRoot()
    transcript(root, [userLine(m1)])
    toCrlf(root, S1)
    expect(forkOf(root)).toEqual([`${userLine(m1, { session: S2 })}\r`])
  })

  it('are none when the history is of a newer format', async () => {
    const root = await emptyRoot()
    transcript(root, conversation)
    unknownHistoryLine(root, S1, `${H}@v1`)
    expect(() => forkOf(root)).toThrow('which this version does not know')
  })
})

describe('a fork that is cut before a message', () => {
  const history = [
    ...conversation,
    snap(m1, { a: `${H}@v1` }),
    snap(m2, { a: `${H}@v2` }),
    delta(a2, m2, 'b', `${H2}@v1`),
    snap(m3, { a: `${H}@v3`, b: `${H2}@v1` }),
  ]

  it('has no line about what went: messages, checkpoints, and lines that mention them', async () => {
    const root = await emptyRoot()
    const [first = '', ...rest] = history
    const extra = [`{"type":"summary","summary":"old","leafUuid":"${m3}"}`, `{"type":"summary","summary":"kept","leafUuid":"${a1}"}`, `{"type":"zz","about":"${a2}"}`]
    transcript(root, [...extra, first, ...rest, '{"type":"zz-later"}', JSON.stringify({ type: 'mode', mode: 'plan', sessionId: S1 })])
    const lines = forkOf(root, { newId: S2, before: m2 })
    expect(lines.join('\n')).not.toMatch(new RegExp(`${m2}|${m3}|${a2}|zz|plan`))
    expect(parsed(lines).map(({ type, uuid }) => uuid ?? type)).toEqual(['file-history-snapshot', 'summary', m1, a1])
  })

  it('keeps the original of a path that only a cut checkpoint tracked, so that what is left resolves as before', async () => {
    const root = await emptyRoot()
    transcript(root, history)
    const [line = ''] = forkOf(root, { newId: S2, before: m2 })
    const { trackedFileBackups } = (JSON.parse(line) as { snapshot: { trackedFileBackups: Record<string, { backupFileName: string }> } }).snapshot
    expect(Object.entries(trackedFileBackups).map(([path, { backupFileName }]) => [path, backupFileName])).toEqual([['a', `${H}@v1`], ['b', `${H2}@v1`]])
  })

  it('keeps an original that no checkpoint holds, as a delta that came too late or belongs to none', async () => {
    const root = await emptyRoot()
    const lines = [userLine(m1), snap(m1, {}), userLine(m2, { parent: m1 }), snap(m2, { a: `${H}@v2` }), delta(a2, m2, 'a', `${H}@v1`), delta(a2, 'nobody', 'b', `${H2}@v1`)]
    transcript(root, lines)
    const [first = '', second = ''] = forkOf(root)
    const tracked = (line: string): unknown => (JSON.parse(line) as { snapshot: { trackedFileBackups: Record<string, unknown> } }).snapshot.trackedFileBackups
    expect(tracked(first)).toMatchObject({ a: { version: 1 }, b: { version: 1 } })
    expect(tracked(second)).toMatchObject({ a: { version: 2 } })
  })

  it('is refused at the first message and at one that is not there', async () => {
    const root = await emptyRoot()
    transcript(root, history)
    expect(() => forkOf(root, { newId: S2, before: m1 })).toThrow('nothing stands before')
    expect(() => forkOf(root, { newId: S2, before: 'nobody' })).toThrow('no message')
  })
})

describe('delta lines that a reading parsed already', () => {
  const readAndFork = (root: string, change: () => void = () => undefined): { plain: string[]; shared: string[] } => {
    const store = openClaudeCode(root, { home: root, env: {}, platform: 'linux' })
    const ref = store.inventory().sessions.find(({ id }) => id === S1)
    if (ref === undefined) throw new Error('no such session')
    const { deltas = [] } = store.read(ref, { now: Date.parse('2026-12-01T00:00:00.000Z'), deltas: true })
    expect(deltas.length).toBe(1)
    change()
    return { plain: forkOf(root), shared: forkOf(root, { newId: S2, deltas }) }
  }
  const lines = [userLine(m1), snap(m1, {}), delta(a1, m1, 'a.txt', `${H}@v1`), delta(a1, m1, 'b.txt', `${H2}@v1`), assistantLine(a1, { parent: m1 })]

  it('are not parsed again, and the fork is the same', async () => {
    const root = await emptyRoot()
    transcript(root, lines)
    const { plain, shared } = readAndFork(root)
    expect(shared).toEqual(plain)
    expect(shared.join('\n')).toContain(`${H2}@v1`)
  })

  it('R74: a record that shares the line of a delta is not lost', async () => {
    const root = await emptyRoot()
    transcript(root, [...lines.slice(0, 2), `${delta(a1, m1, 'a.txt', `${H}@v1`)}${delta(a1, m1, 'b.txt', `${H2}@v1`)}`, assistantLine(a1, { parent: m1 })])
    const { plain, shared } = readAndFork(root)
    expect(shared).toEqual(plain)
    expect(shared.join('\n')).toContain(`${H2}@v1`)
  })

  it('count no more when the transcript was written to since', async () => {
    const root = await emptyRoot()
    transcript(root, lines)
    const other = lines.map((line) => line.replace(`${H}@v1`, `${H}@v3`))
    const { plain, shared } = readAndFork(root, () => { transcript(root, [...other, assistantLine(a2, { parent: a1 })]) })
    expect(shared).toEqual(plain)
    expect(shared.join('\n')).toContain(`${H}@v3`)
  })
})
