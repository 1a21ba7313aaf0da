import { describe, expect, test } from 'vitest'
import { namesIn, salvage } from '../../../src/formats/claude-code/salvage.js'
import { delta, H, H2, snap, userLine } from '../../helpers/store.js'

const one = snap('m1', { a: `${H}@v1` })
const two = delta('x', 'm1', 'b', `${H2}@v2`)

function taken(line: string): { records: unknown[]; starts: number[]; names: readonly string[]; whole: boolean } {
  const { records, names, whole } = salvage(Buffer.from(line))
  return { records: records.map(({ value }) => value), starts: records.map(({ start }) => start), names, whole }
}

describe('R74: what can be had from a line that is not one record', () => {
  test('two records back to back are both had, nothing is left', () => {
    expect(taken(one + two)).toEqual({ records: [JSON.parse(one), JSON.parse(two)], starts: [0, one.length], names: [], whole: true })
  })

  test('three records, with blanks between', () => {
    expect(taken(`${one} ${two}  ${one}`)).toMatchObject({ records: [{}, {}, {}], whole: true })
  })

  test('a cut record in front of a whole one leaves its names', () => {
    const cut = one.slice(0, one.indexOf(',"version"'))
    expect(taken(cut + two)).toEqual({ records: [JSON.parse(two)], starts: [cut.length], names: [`${H}@v1`], whole: false })
  })

  test('a whole record in front of a cut one', () => {
    expect(taken(one + two.slice(0, -5))).toEqual({ records: [JSON.parse(one)], starts: [0], names: [`${H2}@v2`], whole: false })
  })

  test('a whole record between two cut ones', () => {
    expect(taken(`${one.slice(0, 20)}${userLine('m')}${two.slice(0, -5)}`)).toMatchObject({ records: [{ uuid: 'm' }], names: [`${H2}@v2`] })
  })

  test('offsets count bytes, not letters', () => {
    expect(taken(`{"type":"é鹭${two}`).starts).toEqual([Buffer.byteLength('{"type":"é鹭')])
  })

  test('a record start inside a text of a record splits nothing', () => {
    expect(taken(userLine('m', { text: '{"type":"file-history-delta"' }) + two).records).toHaveLength(2)
  })

  test('nothing but names', () => {
    expect(taken(`${H}@v1 and ${H2}@v3, but not ${H}@v0`)).toEqual({ records: [], starts: [], names: [`${H}@v1`, `${H2}@v3`], whole: false })
  })

  test('a hostile line of a million beginnings ends, with its names', () => {
    const { records, names } = salvage(Buffer.from(`${'{"type":'.repeat(1_000_000)}"${H}@v1"`))
    expect([records, names]).toEqual([[], [`${H}@v1`]])
  })
})

test('names in bytes that are no text are found, each once', () => {
  expect(namesIn(Buffer.concat([Buffer.from([0xff, 0x00]), Buffer.from(`${H}@v12,${H}@v12`), Buffer.from([0xfe])]))).toEqual([`${H}@v12`])
})
