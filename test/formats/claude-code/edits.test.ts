import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readEdit, readEditTextsAt } from '../../../src/formats/claude-code/edits.js'
import type { EditEvidence } from '../../../src/model/evidence.js'
import { T, toolResultLine, userLine, type MessageFields } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temp.js'

const place = { source: 1, offset: 99 }
const digest = (of: string): { sha256: string } => ({ sha256: createHash('sha256').update(of).digest('hex') })

function edit(result: Readonly<Record<string, unknown>>, fields: MessageFields = { parent: 'e1' }): EditEvidence | undefined {
  return readEdit(Buffer.from(toolResultLine('u1', { filePath: '/p/a', ...result }, fields)), place)
}

describe('what the result of an editing tool proves', () => {
  test('Write: the whole text before and after', () => {
    expect(edit({ type: 'update', originalFile: 'one', content: 'two' })).toEqual({
      path: '/p/a',
      time: Date.parse(T),
      maker: 'e1',
      before: digest('one'),
      after: digest('two'),
      ...place,
    })
  })

  test('a created file has no text before it, with or without the field', () => {
    expect(edit({ type: 'create', originalFile: null, content: 'two' })).toMatchObject({ before: null, after: digest('two') })
    expect(edit({ type: 'create', content: 'two' })).toMatchObject({ before: null, after: digest('two') })
  })

  test('Edit: the text after follows from the replaced part', () => {
    expect(edit({ originalFile: 'a b c', oldString: 'b', newString: '$& $1', replaceAll: false })?.after).toEqual(digest('a $& $1 c'))
    expect(edit({ originalFile: 'b b', oldString: 'b', newString: 'x', replaceAll: true })?.after).toEqual(digest('x x'))
  })

  test('MultiEdit: one replacement after the other', () => {
    const edits = [{ old_string: 'a', new_string: 'b' }, { old_string: 'b', new_string: 'c', replace_all: true }]
    expect(edit({ originalFile: 'a b', edits })?.after).toEqual(digest('c c'))
  })

  const doubtful: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
    ['a part that stands twice', { originalFile: 'b b', oldString: 'b', newString: 'x' }],
    ['a part that is not there', { originalFile: 'a', oldString: 'b', newString: 'x' }],
    ['an empty part', { originalFile: 'a', oldString: '', newString: 'x' }],
    ['a user who changed the proposal', { originalFile: 'a', oldString: 'a', newString: 'x', userModified: true }],
    ['a list of edits one of which fits nowhere', { originalFile: 'a', edits: [{ old_string: 'q', new_string: 'r' }] }],
    ['a list of edits that is none', { originalFile: 'a', edits: ['x'] }],
  ]
  test.each(doubtful)('%s leaves the text after it open', (_, result) => {
    const found = edit(result)
    expect(found?.before).toBeDefined()
    expect(found).not.toHaveProperty('after')
  })

  test('who made it is the assistant message, by its own field or by the parent', () => {
    const line = toolResultLine('u1', { filePath: '/p/a', originalFile: 'x' }, { parent: 'attachment' })
    const newer = JSON.stringify({ ...(JSON.parse(line) as object), sourceToolAssistantUUID: 'e7' })
    expect([readEdit(Buffer.from(line), place)?.maker, readEdit(Buffer.from(newer), place)?.maker]).toEqual(['attachment', 'e7'])
  })

  const nothing: readonly (readonly [string, string])[] = [
    ['a line without a result', userLine('u1')],
    ['a result that is a text', JSON.stringify({ type: 'user', timestamp: T, toolUseResult: 'Error: no' })],
    ['a result without a path', JSON.stringify({ type: 'user', timestamp: T, toolUseResult: { originalFile: 'x' } })],
    ['a result without the text before', toolResultLine('u1', { filePath: '/p/a', content: 'x' })],
    ['a line without a time', JSON.stringify({ type: 'user', toolUseResult: { filePath: '/p/a', originalFile: 'x' } })],
    ['a subagent, whose edits are not recorded here', JSON.stringify({ ...(JSON.parse(toolResultLine('u', { filePath: '/p', originalFile: 'x' })) as object), isSidechain: true })],
    ['a cut line', toolResultLine('u1', { filePath: '/p/a', originalFile: 'x' }).slice(0, -2)],
  ]
  test.each(nothing)('%s proves nothing', (_, line) => {
    expect(readEdit(Buffer.from(line), place)).toBeUndefined()
  })
})

test('the texts of an edit are read again from the offset of its line, also over 64 kB', async () => {
  const file = join(await temporaryFolder(), 't.jsonl')
  const before = 'é'.repeat(100_000)
  const first = userLine('m1', { text: 'é' })
  writeFileSync(file, `${first}\n${toolResultLine('u1', { filePath: '/p/a', originalFile: before, content: 'new' })}\n${userLine('m2')}\n`)
  expect(readEditTextsAt(file, Buffer.byteLength(first) + 1)).toEqual({ path: '/p/a', before, after: 'new' })
  expect(readEditTextsAt(file, 0)).toBeUndefined()
  expect(readEditTextsAt(file, 1_000_000)).toBeUndefined()
})
