import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { openClaudeCode } from '../../../src/formats/claude-code/index.js'
import type { Message } from '../../../src/model/session.js'
import { extractStore } from '../../helpers/corpus.js'
import { transcriptOf } from '../../helpers/damage.js'
import { assistantLine, emptyRoot, S1, toolResultLine, userLine, writeTranscript } from '../../helpers/store.js'

function messagesOf(root: string, session = S1): Message[] {
  const store = openClaudeCode(root, { home: root, env: {}, platform: 'linux' })
  const ref = store.inventory().sessions.find(({ id }) => id === session)
  return ref === undefined ? [] : store.messages(ref)
}

async function messages(lines: readonly string[] | Buffer): Promise<Message[]> {
  const root = await emptyRoot()
  writeTranscript(root, '-p', S1, lines)
  return messagesOf(root)
}

const changed = (line: string, fields: Readonly<Record<string, unknown>>): string => JSON.stringify({ ...(JSON.parse(line) as object), ...fields })

describe('user messages', () => {
  test('in the order of the transcript, with text, time and parent; answers and tool results are none', async () => {
    const lines = [
      userLine('m1', { text: 'first', time: '2026-11-01T10:00:00.000Z' }),
      assistantLine('x1', { parent: 'm1' }),
      toolResultLine('u1', { filePath: '/a' }, { parent: 'x1' }),
      userLine('m2', { text: 'second', parent: 'u1', time: 'never' }),
    ]
    expect(await messages(lines)).toEqual([
      { id: 'm1', text: 'first', time: Date.parse('2026-11-01T10:00:00.000Z'), active: true },
      { id: 'm2', parent: 'u1', text: 'second', active: true },
    ])
  })

  test('a text may be a plain string or several blocks, images are left out', async () => {
    const lines = [
      changed(userLine('m1'), { message: { role: 'user', content: 'plain' } }),
      changed(userLine('m2'), { message: { role: 'user', content: [{ type: 'text', text: 'one' }, { type: 'image' }, { type: 'text', text: 'two' }] } }),
    ]
    expect((await messages(lines)).map(({ text }) => text)).toEqual(['plain', 'one\ntwo'])
  })

  test('side chains, meta messages and damaged lines are none', async () => {
    const lines = [
      changed(userLine('m1'), { isSidechain: true }), changed(userLine('m2'), { isMeta: true }), userLine('m3').slice(0, -4), '[]', '5',
      changed(userLine('m4'), { message: null }), userLine('m5'),
    ]
    expect((await messages(lines)).map(({ id }) => id)).toEqual(['m5'])
  })

  test('R73, R80, R82: a byte order mark, NUL bytes and CRLF hide no message', async () => {
    const bytes = Buffer.from(`\ufeff${userLine('m1')}\r\n\0\0${userLine('m2', { text: 'a\u2028b' })}\r\n`)
    expect((await messages(bytes)).map(({ id, text }) => [id, text])).toEqual([['m1', 'note the sightings'], ['m2', 'a\u2028b']])
  })

  test('a branch left behind is not active; a compaction goes on by its logical parent', async () => {
    const lines = [
      userLine('m1'), userLine('m2', { parent: 'm1' }), userLine('m3', { parent: 'm1' }),
      changed(assistantLine('c'), { parentUuid: null, logicalParentUuid: 'm3' }), userLine('m4', { parent: 'c' }),
    ]
    expect((await messages(lines)).map(({ id, active }) => [id, active])).toEqual([['m1', true], ['m2', false], ['m3', true], ['m4', true]])
  })

  test('parents in a circle end', async () => {
    expect((await messages([userLine('m1', { parent: 'm2' }), userLine('m2', { parent: 'm1' })])).map(({ active }) => active)).toEqual([true, true])
  })
})

test('the rewound session of the corpus: p2, p3 and p4 are the dead branch', async () => {
  const store = await extractStore('2.1.332', 'rewound')
  const session = 'a1bf95c3-33b9-4ab2-8fc3-03dd0b533919'
  const found = messagesOf(store.root, session)
  const prompts = new Map(store.oracle?.targets.map(({ message, prompt }) => [message, prompt]))
  const refused = store.oracle?.targets.filter(({ outcome }) => outcome === 'refused').map(({ message }) => message)
  expect(found.filter(({ active, id }) => !active && prompts.has(id)).map(({ id }) => id)).toEqual(refused)
  expect(refused?.map((id) => prompts.get(id)?.slice(0, 2))).toEqual(['p2', 'p3', 'p4'])
  const texts = readFileSync(transcriptOf(store.root, session), 'utf8')
  for (const { id, text } of found) expect([id, texts.includes(JSON.stringify(text).slice(1, -1))]).toEqual([id, true])
  for (const [id, prompt] of prompts) expect(found.find((message) => message.id === id)?.text).toContain(prompt)
})
