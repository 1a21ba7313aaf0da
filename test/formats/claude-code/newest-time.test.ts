import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NewestTime } from '../../../src/formats/claude-code/newest-time.js'
import { text, now } from './scanning.js'

function newest(...pieces: readonly string[]): { past: string | undefined; future: string | undefined } {
  const found = new NewestTime(now)
  for (const piece of pieces) found.scan(Buffer.from(piece))
  const iso = (time: number | undefined): string | undefined => (time === undefined ? undefined : new Date(time).toISOString())
  return { past: iso(found.past), future: iso(found.future) }
}

const line = (time: string): string => text(`{"type":"user","timestamp":"${time}","x":1}`)
const none = { past: undefined, future: undefined }

describe('the newest time of a transcript', () => {
  test('R72: it is the largest, in whatever order and block the lines stand', () => {
    expect(newest(line('2026-11-03T00:00:00.000Z') + line('2026-11-05T00:00:00.001Z'), line('2026-11-04T00:00:00.000Z'))).toEqual({
      past: '2026-11-05T00:00:00.001Z',
      future: undefined,
    })
  })

  test('R08: a time in the future does not hide the newest one before it', () => {
    expect(newest(line('2026-11-03T00:00:00.000Z') + line('2031-01-01T00:00:00.000Z') + line('2030-01-01T00:00:00.000Z'))).toEqual({
      past: '2026-11-03T00:00:00.000Z',
      future: '2031-01-01T00:00:00.000Z',
    })
  })

  test('now itself is not in the future', () => {
    expect(newest(line(new Date(now).toISOString()))).toEqual({ past: new Date(now).toISOString(), future: undefined })
    expect(newest(line(new Date(now + 1).toISOString())).past).toBeUndefined()
  })

  test('seconds without milliseconds are read', () => {
    expect(newest(line('2026-11-03T00:00:00Z')).past).toBe('2026-11-03T00:00:00.000Z')
    expect(newest(line('2026-11-03T00:00:00.500Z') + line('2026-11-03T00:00:00Z')).past).toBe('2026-11-03T00:00:00.500Z')
    expect(newest(line('2026-11-03T00:00:00.500Z') + line('2026-11-03T00:00:01Z')).past).toBe('2026-11-03T00:00:01.000Z')
  })

  const nothing = [
    '2026-13-01T00:00:00.000Z', '2026-11-99T00:00:00.000Z', '2025-11-01T77:00:00.000Z', '2025-11-01T00:99:00.000Z', '20261103T000000.000Z', 'yesterdayZ', 'Z', '',
  ]
  test.each(nothing)('%j is no time, and hides none', (time) => {
    expect(newest(line(time))).toEqual(none)
    expect(newest(line('2024-11-03T00:00:00.000Z') + line(time)).past).toBe('2024-11-03T00:00:00.000Z')
  })

  test('other keys, and texts that quote a line, do not count', () => {
    expect(newest(text('{"backupTime":"2026-11-03T00:00:00.000Z"}', JSON.stringify({ text: line('2026-11-03T00:00:00.000Z') })))).toEqual(none)
  })

  test('it stands at any depth of a record: a file of nothing but snapshots has an age (R45)', () => {
    expect(newest('{"snapshot":{"trackedFileBackups":{},"timestamp":"2026-11-03T00:00:00.000Z"},"isSnapshotUpdate":false}').past).toBe('2026-11-03T00:00:00.000Z')
  })

  test('it agrees with the maximum of any times', () => {
    const times = fc.date({ min: new Date('2000-01-01'), max: new Date(now + 1e12), noInvalidDate: true })
    fc.assert(fc.property(fc.array(times, { minLength: 1 }), (dates) => {
      const largest = (some: Date[]): string | undefined => some.map((date) => date.toISOString()).sort().at(-1)
      expect(newest(dates.map((date) => line(date.toISOString())).join(''))).toEqual({
        past: largest(dates.filter((date) => date.getTime() <= now)),
        future: largest(dates.filter((date) => date.getTime() > now)),
      })
    }))
  })
})
