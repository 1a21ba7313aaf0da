import { createHash } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compareText, proofsOf, type EditEvidence } from '../../src/model/evidence.js'
import { fold } from '../../src/model/fold.js'
import { H } from '../helpers/store.js'
import { snapshot } from './history-events.js'

const start = Date.parse('2026-11-01T09:00:00.000Z')
const at = (minutes: number): string => new Date(start + minutes * 60_000).toISOString()
const digest = (text: string): string => createHash('sha256').update(text).digest('hex')

/** The edit of `/p/a.txt` at a minute; `before: null` is a creation. */
function edit(minute: number, before: string | null, after?: string, maker = `e${String(minute)}`): EditEvidence {
  return {
    path: '/p/a.txt',
    time: start + minute * 60_000,
    maker,
    before: before === null ? null : { sha256: digest(before) },
    ...(after === undefined ? {} : { after: { sha256: digest(after) } }),
    source: 0,
    offset: minute,
  }
}

/** Version of a backup to grade and text of each proof, as `certain:one`. */
function proofs(
  backups: Readonly<Record<number, number>>,
  edits: readonly EditEvidence[],
  makers: ReadonlyMap<string, string> = new Map(),
  path = 'a.txt',
): string[] {
  const snapshots = Object.entries(backups).map(([version, minute], index) =>
    snapshot(`m${String(index)}`, { [path]: { name: `${H}@v${version}`, version: Number(version), time: at(minute) } }),
  )
  const texts = new Map(['one', 'two', 'three', 'else'].map((text) => [digest(text), text]))
  return proofsOf(fold(snapshots), edits, makers, '/p').map(
    (proof) => `v${proof.name.slice(18)} ${proof.grade} ${proof.side} ${texts.get(proof.sha256) ?? '?'}`,
  )
}

const makers = new Map([['a.txt', 'e1']])

describe('version 1 stands immediately before the first edit', () => {
  test('the edit of the message that made it proves it for certain', () => {
    expect(proofs({ 1: 1 }, [edit(1, 'one', 'two')], makers)).toEqual(['v1 certain before one'])
  })

  test('an edit of another message is only a neighbour', () => {
    expect(proofs({ 1: 0 }, [edit(2, 'one', 'two')])).toEqual(['v1 weak before one'])
  })

  test('an edit before the backup was made says nothing of it', () => {
    expect(proofs({ 1: 5 }, [edit(2, 'one', 'two')])).toEqual([])
  })

  test('a creation holds no text to compare with', () => {
    expect(proofs({ 1: 1 }, [edit(1, null, 'two')], makers)).toEqual([])
  })

  test('edits of another path say nothing', () => {
    expect(proofs({ 1: 1 }, [{ ...edit(1, 'one', 'two'), path: '/p/b.txt' }], makers)).toEqual([])
  })

  test('absolute keys and keys with .. find the edits of the same file (R102)', () => {
    for (const key of ['/p/a.txt', '../p/a.txt']) {
      expect(proofs({ 1: 1 }, [edit(1, 'one', 'two')], new Map([[key, 'e1']]), key)).toEqual(['v1 certain before one'])
    }
  })
})

describe('a later version stands between two edits', () => {
  test('when both neighbours agree, that is a strong proof', () => {
    expect(proofs({ 2: 5 }, [edit(1, 'one', 'two'), edit(9, 'two', 'three')])).toEqual(['v2 strong after two'])
  })

  test('when they disagree, each is weak: a shell edit lies between', () => {
    expect(proofs({ 2: 5 }, [edit(1, 'one', 'two'), edit(9, 'else', 'three')])).toEqual(['v2 weak after two', 'v2 weak before else'])
  })

  test('one neighbour alone is weak, before or after', () => {
    expect(proofs({ 2: 5 }, [edit(1, 'one', 'two')])).toEqual(['v2 weak after two'])
    expect(proofs({ 2: 5 }, [edit(9, 'two', 'three')])).toEqual(['v2 weak before two'])
  })

  test('only the nearest neighbours count', () => {
    const edits = [edit(1, 'one', 'else'), edit(2, 'else', 'two'), edit(9, 'two', 'three'), edit(10, 'three', 'one')]
    expect(proofs({ 2: 5 }, edits)).toEqual(['v2 strong after two'])
  })

  test('an edit whose text after it cannot be told leaves the other neighbour, weak', () => {
    expect(proofs({ 2: 5 }, [edit(1, 'one'), edit(9, 'two', 'three')])).toEqual(['v2 weak before two'])
  })

  test('a creation after it is no neighbour with a text', () => {
    expect(proofs({ 2: 5 }, [edit(1, 'one', 'two'), edit(9, null, 'three')])).toEqual(['v2 weak after two'])
  })
})

describe('comparing bytes with a decoded text', () => {
  const rows: readonly (readonly [string, Buffer, string, string])[] = [
    ['the same text', Buffer.from('one\n'), 'one\n', 'equal'],
    ['no text at all', Buffer.alloc(0), '', 'equal'],
    ['another text', Buffer.from('two\n'), 'one\n', 'differs'],
    ['cut to nothing', Buffer.alloc(0), 'one\n', 'differs'],
    ['bytes that are no UTF-8 where the text was fine', Buffer.from([0x6f, 0xff, 0x65, 0x0a]), 'one\n', 'differs'],
    ['a text with replacement characters: it was decoded with loss', Buffer.from('x\ufffd'), 'x\ufffd', 'doubtful'],
    ['bytes that are no UTF-8, decoded with loss', Buffer.from([0x78, 0xe9]), 'x\ufffd', 'doubtful'],
    ['line ends made LF', Buffer.from('one\r\n'), 'one\n', 'doubtful'],
    ['a byte order mark that the text lacks', Buffer.from([0xef, 0xbb, 0xbf, 0x61]), 'a', 'doubtful'],
    ['a byte order mark that the text keeps', Buffer.from([0xef, 0xbb, 0xbf, 0x61]), '\ufeffa', 'equal'],
    ['UTF-16', Buffer.from([0xff, 0xfe, 0x61, 0x00]), 'a', 'doubtful'],
  ]
  test.each(rows)('%s', (_, bytes, text, verdict) => {
    expect(compareText(bytes, text)).toBe(verdict)
  })

  test('a text always equals its own bytes, and never those with one bit over', () => {
    const plain = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '\n', '/', '{', '}', 'é', '鹭'), minLength: 1, maxLength: 40 })
    fc.assert(fc.property(plain, fc.nat(), fc.integer({ min: 0, max: 7 }), (text, where, bit) => {
      const bytes = Buffer.from(text)
      expect(compareText(bytes, text)).toBe('equal')
      const index = where % bytes.length
      bytes.writeUInt8(bytes.readUInt8(index) ^ (1 << bit), index)
      expect(compareText(bytes, text)).not.toBe('equal')
    }))
  })
})
