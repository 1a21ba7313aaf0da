import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { mendTranscript } from '../../../src/formats/claude-code/mend.js'
import { corpusStores, extractStore } from '../../helpers/corpus.js'
import { addBom, addInvalidUtf8, addNulRun, cutAndSplice, cutLine, cutTail, linesOf, spliceRecords, toCrlf, transcriptOf } from '../../helpers/damage.js'
import { emptyRoot, S1, snap, userLine, writeTranscript } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { takeInventory } from '../../../src/formats/claude-code/inventory.js'

function mended(path: string): { bytes: Buffer; mending: object } {
  const parts: Buffer[] = []
  const mending = mendTranscript(path, (bytes) => parts.push(Buffer.from(bytes)))
  return { bytes: Buffer.concat(parts), mending: { ...mending } }
}

const none = { nulRuns: 0, nulBytes: 0, split: 0, ended: false }

async function threeLines(): Promise<{ root: string; path: string; lines: Buffer[] }> {
  const root = await emptyRoot()
  writeTranscript(root, '-p', S1, [userLine('u1', { text: 'äöü' }), snap('u1', {}), userLine('u2')])
  return { root, path: transcriptOf(root, S1), lines: linesOf(root, S1) }
}

function joined(lines: readonly (Buffer | string)[]): Buffer {
  return Buffer.concat(lines.flatMap((line) => [Buffer.from(line), Buffer.from('\n')]))
}

describe('mending a transcript', () => {
  it.each(corpusStores('claude-code').map(({ version, scenario }) => ({ version, scenario })))('leaves a good one byte for byte: $version/$scenario', async ({ version, scenario }) => {
    const { root } = await extractStore(version, scenario)
    for (const { members } of takeInventory(root).sessions) {
      for (const { path } of members.filter(({ kind }) => kind === 'transcript')) {
        const { bytes, mending } = mended(join(root, path))
        expect(bytes.equals(readFileSync(join(root, path)))).toBe(true)
        expect(mending).toEqual(none)
      }
    }
  })

  it('takes a run of NUL bytes out, on a line of its own and before a line (R73)', async () => {
    const { root, path, lines } = await threeLines()
    addNulRun(root, S1, 1, 4096, { ownLine: true })
    addNulRun(root, S1, 0, 7)
    expect(mended(path)).toEqual({ bytes: joined(lines), mending: { ...none, nulRuns: 2, nulBytes: 4103 } })
  })

  it('gives two records that share a line a line each (R74)', async () => {
    const { root, path, lines } = await threeLines()
    spliceRecords(root, S1, 0)
    spliceRecords(root, S1, 0)
    expect(mended(path)).toEqual({ bytes: joined(lines), mending: { ...none, split: 1 } })
  })

  it('parts a cut record from the whole one behind it and keeps every byte of both (R74)', async () => {
    const { root, path, lines } = await threeLines()
    cutAndSplice(root, S1, 0, 130)
    const [first = Buffer.alloc(0), ...rest] = lines
    expect(mended(path)).toEqual({ bytes: joined([first.subarray(0, 130), ...rest]), mending: { ...none, split: 1 } })
  })

  it('takes no part of a cut record for a record', async () => {
    const { root, path } = await threeLines()
    // Cut within the message: whole blocks of its content stand before the cut.
    cutLine(root, S1, 0, 190)
    expect(mended(path)).toEqual({ bytes: readFileSync(path), mending: none })
  })

  it('ends a cut last line, so that the next append does not join it (R75)', async () => {
    const { root, path } = await threeLines()
    cutTail(root, S1, 20)
    expect(mended(path)).toEqual({ bytes: Buffer.concat([readFileSync(path), Buffer.from('\n')]), mending: { ...none, ended: true } })
  })

  it('leaves a good last line without line feed, a byte order mark, carriage returns and bad UTF-8 as they are', async () => {
    const { root, path } = await threeLines()
    addInvalidUtf8(root, S1)
    toCrlf(root, S1)
    addBom(root, S1)
    cutTail(root, S1, 1)
    expect(mended(path)).toEqual({ bytes: readFileSync(path), mending: none })
  })

  it('mends bytes that are no UTF-8 without changing one of them', async () => {
    const path = join(await temporaryFolder(), 't.jsonl')
    const odd = Buffer.concat([Buffer.from('{"type":"user","sessionId":"x","text":"'), Buffer.from([0xff, 0xe9]), Buffer.from('"}')])
    writeFileSync(path, Buffer.concat([Buffer.from([0xc3]), odd, odd]))
    appendFileSync(path, '\n')
    expect(mended(path).bytes).toEqual(joined([Buffer.from([0xc3]), odd, odd]))
  })

  it('a second time changes nothing', async () => {
    const { root, path } = await threeLines()
    cutAndSplice(root, S1, 0, 130)
    addNulRun(root, S1, 0, 9)
    writeFileSync(path, mended(path).bytes)
    expect(mended(path).mending).toEqual(none)
  })
})
