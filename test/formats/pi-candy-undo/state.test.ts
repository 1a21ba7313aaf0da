import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseState, serialiseState, type State } from '../../../src/formats/pi-candy-undo/state.js'
import { extractPi, piScenarios } from '../../helpers/pi-corpus.js'

const time = '2026-11-30T18:31:58.896Z'

function parse(value: unknown): ReturnType<typeof parseState> {
  return parseState(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)))
}

function good(value: unknown): Extract<ReturnType<typeof parseState>, { kind: 'state' }> {
  const parsed = parse(value)
  if (parsed.kind !== 'state') throw new Error(`not a state: ${JSON.stringify(parsed)}`)
  return parsed
}

const empty = { version: 1, sessionId: 's', snapshots: [], originals: {}, trackedFiles: [], redo: [] }

describe('parseState', () => {
  it.each(piScenarios())('reads every state of %s, and what it writes is byte for byte what the plugin wrote', async (scenario) => {
    const { root } = await extractPi(scenario)
    const files = readdirSync(root).map((name) => join(root, name, 'state.json')).filter((file) => existsSync(file) && statSync(file).isFile())
    for (const file of files) {
      const bytes = readFileSync(file)
      const parsed = parseState(bytes)
      if (scenario === 'n-damaged' && parsed.kind !== 'state') continue
      if (parsed.kind !== 'state') throw new Error(`${file}: ${JSON.stringify(parsed)}`)
      if (parsed.faults.length > 0) continue
      expect(serialiseState(parsed.state).equals(bytes), file).toBe(true)
    }
    expect(files.length).toBeGreaterThan(0)
  })

  it.each([
    ['no bytes', '', '$', 'it is empty (0 bytes)'],
    ['a cut text', '{"version": 1, "sess', '$', 'it is not valid JSON'],
    ['a byte order mark, which the plugin does not accept', '\uFEFF{}', '$', 'it is not valid JSON'],
    ['a list', '[]', '$', 'its top level is not a JSON object'],
    ['no version', {}, '$.version', 'it is not 1'],
    ['version 0', { ...empty, version: 0 }, '$.version', 'it is not 1'],
    ['the version as a text', { ...empty, version: '1' }, '$.version', 'it is not 1'],
    ['no session id', { ...empty, sessionId: undefined }, '$.sessionId', 'it is not a text'],
    ['no snapshots', { ...empty, snapshots: undefined }, '$.snapshots', 'it is not a list'],
    ['no tracked files', { ...empty, trackedFiles: {} }, '$.trackedFiles', 'it is not a list'],
    ['no redo stack', { ...empty, redo: null }, '$.redo', 'it is not a list'],
    ['no originals', { ...empty, originals: null }, '$.originals', 'it is not an object'],
  ])('names what makes %s unusable: never an empty state (weakness 1)', (_, value, at, reason) => {
    expect(parse(value)).toEqual({ kind: 'unusable', at, reason })
  })

  it('tells a newer version from a broken one', () => {
    expect(parse({ version: 2, anything: true })).toEqual({ kind: 'newer', version: 2 })
  })

  it('names bad UTF-8 instead of replacing it', () => {
    expect(parseState(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]))).toEqual({ kind: 'unusable', at: '$', reason: 'it is not valid UTF-8' })
  })

  it('names each fault inside by its JSON path and never throws (weakness 35)', () => {
    const record = { backupFileName: '18b7cb099a9ea3f5@v1', version: 1, backupTime: time }
    const parsed = good({
      ...empty,
      snapshots: [
        null,
        { id: 'i', key: 'k', kind: 'operation', createdAt: time, files: { 'a.txt': { ...record, version: '1' }, b: 5, c: { ...record, backupFileName: 7 } } },
        { id: 'i', key: 4, kind: 'operation', createdAt: time, files: {} },
        { id: 'i', key: 'k', kind: 'other', createdAt: time, files: {} },
        { id: 'i', key: 'k', kind: 'operation', createdAt: 'then', files: {} },
        { id: 'i', key: 'k', kind: 'operation', createdAt: time, files: [] },
      ],
      trackedFiles: ['a.txt', 1],
      redo: [7, { type: 'all' }, { type: 'code', restoreKey: 1 }],
    })
    expect(parsed.faults.map(({ at }) => at)).toEqual([
      '$.snapshots[0]',
      '$.snapshots[1].files["a.txt"].version',
      '$.snapshots[1].files["b"]',
      '$.snapshots[1].files["c"].backupFileName',
      '$.snapshots[2].key',
      '$.snapshots[3].kind',
      '$.snapshots[4].createdAt',
      '$.snapshots[5].files',
      '$.trackedFiles[1]',
      '$.redo[0]',
      '$.redo[1].type',
      '$.redo[2].restoreKey',
    ])
    expect(parsed.state.snapshots[0]?.files.get('b')?.unusable).toBe('the record is not an object')
  })

  it('reads the shapes from before the current one: a snapshot without id, null in place of a record', () => {
    const parsed = good({ ...empty, snapshots: [{ key: 'k', kind: 'operation', createdAt: time, files: { a: null } }], originals: { a: null } })
    expect(parsed).toMatchObject({ old: true, faults: [] })
    expect(parsed.state.snapshots[0]?.id).toBeUndefined()
    expect(parsed.state.snapshots[0]?.files.get('a')).toMatchObject({ backupFileName: null, version: 1 })
    expect(serialiseState(parsed.state).toString()).not.toContain('"a": null')
  })
})

describe('serialiseState', () => {
  it('writes two spaces and a final line feed, with the six fields in the order of the plugin', () => {
    const state: State = {
      sessionId: 's',
      snapshots: [{ id: 'i', key: 'baseline', kind: 'baseline', createdAt: time, files: new Map() }],
      originals: new Map([['a', { backupFileName: null, version: 1, backupTime: time }]]),
      trackedFiles: ['a'],
      redo: [{ type: 'code', restoreKey: 'k', oldLeafId: null, createdAt: time }],
    }
    expect(serialiseState(state).toString()).toBe(
      [
        '{',
        '  "version": 1,',
        '  "sessionId": "s",',
        '  "snapshots": [',
        '    {',
        '      "id": "i",',
        '      "key": "baseline",',
        '      "files": {},',
        `      "createdAt": "${time}",`,
        '      "kind": "baseline"',
        '    }',
        '  ],',
        '  "originals": {',
        '    "a": {',
        '      "backupFileName": null,',
        '      "version": 1,',
        `      "backupTime": "${time}"`,
        '    }',
        '  },',
        '  "trackedFiles": [',
        '    "a"',
        '  ],',
        '  "redo": [',
        '    {',
        '      "type": "code",',
        '      "restoreKey": "k",',
        '      "oldLeafId": null,',
        `      "createdAt": "${time}"`,
        '    }',
        '  ]',
        '}',
        '',
      ].join('\n'),
    )
  })

  it('keeps keys such as __proto__ and constructor, and unknown fields of every level, in their places (weakness 17)', () => {
    const text = `{
  "before": { "__proto__": 1 },
  "version": 1,
  "sessionId": "s",
  "snapshots": [
    { "id": "i", "x": [], "key": "k", "files": { "__proto__": { "y": 2, "backupFileName": null, "version": 2, "backupTime": "${time}" }, "constructor": { "backupFileName": null, "version": 2, "backupTime": "${time}" } }, "createdAt": "${time}", "kind": "operation", "z": null }
  ],
  "originals": { "__proto__": { "backupFileName": null, "version": 1, "backupTime": "${time}", "w": "" } },
  "trackedFiles": [ "__proto__", "constructor" ],
  "redo": [ { "type": "both", "v": {}, "restoreKey": "k", "oldLeafId": "l", "createdAt": "${time}" } ],
  "after": true
}`
    const parsed = good(text)
    expect([...(parsed.state.snapshots[0]?.files.keys() ?? [])]).toEqual(['__proto__', 'constructor'])
    const written = serialiseState(parsed.state).toString()
    expect(written.replace(/\s/g, '')).toBe(text.replace(/\s/g, ''))
    expect(serialiseState(good(written).state).toString()).toBe(written)
  })

  it('is undone by reading, whatever the keys are', () => {
    const key = fc.oneof(fc.constantFrom('__proto__', 'constructor', '', '..x', 'a\\b', 'toJSON', 'hasOwnProperty'), fc.string({ unit: 'binary' }))
    const record = fc.record({ backupFileName: fc.option(fc.string(), { nil: null }), version: fc.integer({ min: 1 }), backupTime: fc.constant(time) })
    const records = fc.array(fc.tuple(key, record)).map((pairs) => new Map(pairs))
    const snapshot = fc.record({
      id: fc.uuid(),
      key,
      kind: fc.constantFrom('baseline' as const, 'operation' as const, 'redo-point' as const),
      createdAt: fc.constant(time),
      files: records,
    })
    fc.assert(
      fc.property(fc.array(snapshot), records, fc.array(key), (snapshots, originals, trackedFiles) => {
        const state: State = { sessionId: 's', snapshots, originals, trackedFiles, redo: [] }
        const read = good(serialiseState(state).toString())
        expect(read.faults).toEqual([])
        expect(read.state.trackedFiles).toEqual(trackedFiles)
        for (const [path, { backupFileName, version }] of originals) expect(read.state.originals.get(path)).toMatchObject({ backupFileName, version })
        read.state.snapshots.forEach((each, index) => {
          expect(new Set(each.files.keys())).toEqual(new Set(snapshots[index]?.files.keys()))
        })
      }),
    )
  })
})
