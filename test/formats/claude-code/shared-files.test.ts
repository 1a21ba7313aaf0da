import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { withoutHistoryLines, withoutProjectKeys } from '../../../src/formats/claude-code/shared-files.js'

const isP = (project: string): boolean => project === '/p'

describe('withoutHistoryLines', () => {
  it.each([
    ['', ''],
    ['{"project":"/p"}', ''],
    ['{"project":"/q"}\r\n{"project":"/p"}\r\n\n{"project":"/q"}', '{"project":"/q"}\r\n\n{"project":"/q"}'],
    ['{"project":"/p"\n{"project":"/pp"}\n', '{"project":"/p"\n{"project":"/pp"}\n'],
    ['{"x":{"project":"/p"}}\n["/p"]\n', '{"x":{"project":"/p"}}\n["/p"]\n'],
  ])('of %j keeps every byte of the lines that are not of the project', (text, rest) => {
    expect(withoutHistoryLines(Buffer.from(text), isP).rest.toString()).toBe(rest)
  })

  it('keeps bytes that are not valid UTF-8', () => {
    const bytes = Buffer.from([0xff, 0xfe, 0x0a, 0x7b, 0x00, 0x0a])
    expect(withoutHistoryLines(bytes, isP).rest).toEqual(bytes)
  })
})

describe('withoutProjectKeys', () => {
  it.each([
    ['{"projects":{"/p":{}}}', '{"projects":{}}'],
    ['{"projects":{"/p":1,"/q":2}}', '{"projects":{"/q":2}}'],
    ['{"projects":{"/q":2,"/p":1}}', '{"projects":{"/q":2}}'],
    ['{"a":"}","projects" : { "/a":"\\"", "/p" : [ {"/p":1} ] , "/q":null } }', '{"a":"}","projects" : { "/a":"\\"" , "/q":null } }'],
    ['{"projects":{"\\/p":1,"/q":1e2}}', '{"projects":{"/q":1e2}}'],
  ])('cuts the project out of %s', (text, rest) => {
    const cut = withoutProjectKeys(Buffer.from(text), isP)
    expect(cut?.rest.toString()).toBe(rest)
    expect(cut?.keys).toEqual(['/p'])
  })

  it.each(['', '{', '[]', '{"projects":{"/p":1},"projects":{"/p":2}}', '{"projects":{"/p":1'])('leaves %j alone: it cannot be taken apart safely', (text) => {
    expect(withoutProjectKeys(Buffer.from(text), isP)).toBeUndefined()
  })

  it('for any JSON object and any indentation: what is left is the same object without the key', () => {
    const key = fc.oneof(fc.constantFrom('/p', '/q', '__proto__', ''), fc.string())
    fc.assert(
      fc.property(fc.dictionary(key, fc.jsonValue(), { noNullPrototype: true }), fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true }), fc.constantFrom(0, 2, 4), (projects, rest, indent) => {
        const before = { ...rest, projects }
        const cut = withoutProjectKeys(Buffer.from(JSON.stringify(before, undefined, indent)), isP)
        const expected = { ...rest, projects: Object.fromEntries(Object.entries(projects).filter(([name]) => name !== '/p')) }
        expect(JSON.parse(cut?.rest.toString() ?? 'null')).toEqual(JSON.parse(JSON.stringify(expected)))
      }),
    )
  })
})
