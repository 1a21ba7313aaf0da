import { describe, expect, it } from 'vitest'
import { envelopeOf } from '../../src/cli/envelope.js'
import { json } from '../../src/cli/reporters/json.js'
import { ndjson } from '../../src/cli/reporters/ndjson.js'
import { finding } from '../../src/model/finding.js'
import type { Report } from '../../src/model/report.js'
import { emptyReport, metaOf } from './reports.js'

const full: Report = {
  command: 'expire',
  roots: ['/home/u/.claude'],
  applied: true,
  runId: 'r1',
  summary: { sessions: 2 },
  findings: [
    finding('missing-backup', 'gone', { session: 's1', path: 'projects/-p/s1.jsonl', offset: 12 }),
    finding('foreign-file', 'odd name', { path: 'file-history/x' }),
    finding('busy', 'not to be seen', { severity: 'ignore' }),
  ],
  plan: [{ action: 'trash', path: 'projects/-p/s2.jsonl', session: 's2', bytes: 10, reason: 'older than 30 days' }],
  kept: [{ session: 's1', reason: 'live' }],
  errors: [{ code: 'EACCES', path: 'file-history/s3', message: 'cannot be read' }],
  exitCode: 3,
  extra: { removed: ['s2'] },
  next: 'rewind-admin repair',
}

const golden = `{
  "schemaVersion": 1,
  "tool": "rewind-admin",
  "version": "9.8.7",
  "command": "expire",
  "startedAt": "2026-01-31T04:00:00.000Z",
  "durationMs": 1500,
  "root": "/home/u/.claude",
  "applied": true,
  "runId": "r1",
  "summary": {
    "sessions": 2
  },
  "findings": [
    {
      "id": "missing-backup",
      "severity": "error",
      "session": "s1",
      "place": "projects/-p/s1.jsonl#12",
      "message": "gone",
      "remedy": "rewind-admin repair"
    },
    {
      "id": "foreign-file",
      "severity": "info",
      "place": "file-history/x",
      "message": "odd name"
    }
  ],
  "plan": [
    {
      "action": "trash",
      "path": "projects/-p/s2.jsonl",
      "session": "s2",
      "bytes": 10,
      "reason": "older than 30 days"
    }
  ],
  "kept": [
    {
      "session": "s1",
      "reason": "live"
    }
  ],
  "errors": [
    {
      "code": "EACCES",
      "path": "file-history/s3",
      "message": "cannot be read"
    }
  ],
  "exitCode": 3,
  "removed": [
    "s2"
  ]
}
`

describe('the JSON contract', () => {
  it('has exactly these fields in this order (R123)', () => {
    expect(json.write(full, metaOf())).toBe(golden)
  })

  it('has every common field even when nothing was found, and no runId', () => {
    expect(Object.keys(envelopeOf(emptyReport(), metaOf()))).toEqual([
      'schemaVersion',
      'tool',
      'version',
      'command',
      'startedAt',
      'durationMs',
      'root',
      'applied',
      'summary',
      'findings',
      'plan',
      'kept',
      'errors',
      'exitCode',
    ])
  })

  it('names one root as a string, several or none as an array', () => {
    expect(envelopeOf(emptyReport(), metaOf()).root).toBe('/home/u/.claude')
    expect(envelopeOf(emptyReport({ roots: ['/a', '/b'] }), metaOf()).root).toEqual(['/a', '/b'])
    expect(envelopeOf(emptyReport({ roots: [] }), metaOf()).root).toEqual([])
  })

  it('refuses a command that redefines a common field', () => {
    expect(() => envelopeOf(emptyReport({ extra: { findings: [] } }), metaOf())).toThrow('findings')
    expect(() => envelopeOf(emptyReport({ extra: { runId: 'x' } }), metaOf())).toThrow('runId')
  })

  it('keeps control characters of names away from terminals and reads back the same', () => {
    const message = 'a\u001b[31m\u009b31m\u2028b\u007f'
    const text = json.write(emptyReport({ errors: [{ code: 'X', message }] }), metaOf())
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028]/)
    expect(JSON.parse(text)).toHaveProperty('errors.0.message', message)
  })
})

describe('ndjson', () => {
  it('gives one typed object per line and the summary last', () => {
    const lines = ndjson
      .write(full, metaOf())
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(lines.map((line) => line.type)).toEqual(['finding', 'finding', 'plan', 'kept', 'error', 'summary'])
    expect(lines[0]).toEqual({
      type: 'finding',
      id: 'missing-backup',
      severity: 'error',
      session: 's1',
      place: 'projects/-p/s1.jsonl#12',
      message: 'gone',
      remedy: 'rewind-admin repair',
    })
    expect(lines[5]).toMatchObject({ schemaVersion: 1, command: 'expire', exitCode: 3, removed: ['s2'], summary: { sessions: 2 } })
    expect(lines[5]).not.toHaveProperty('findings')
  })

  it('never breaks a line inside an object, whatever a reader takes for a line end (R80)', () => {
    const text = ndjson.write(emptyReport({ kept: [{ session: 's\u2028\u2029\u0085\n', reason: 'r' }] }), metaOf())
    expect(text.trimEnd().split(/[\n\u0085\u2028\u2029]/)).toHaveLength(2)
    expect(JSON.parse(text.split('\n')[0] ?? '')).toHaveProperty('session', 's\u2028\u2029\u0085\n')
  })
})
