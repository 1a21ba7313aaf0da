import { readLines, type LineSink } from '../fs/blocks.js'
import { LockedError } from '../model/errors.js'
import type { Mending } from './conversation.js'
import { parseRecord } from './parse-record.js'

const lineFeed = Buffer.from('\n')

/** Finds the whole records in a line that is not one record, by the rules of a format. */
export type FindRecords = (line: Buffer) => readonly { readonly start: number; readonly end: number }[]

/**
 * Hands over a transcript with the damage taken out that can be taken out without losing a byte of a record: runs of NUL
 * bytes go (R73), records that share a line get a line each, and so does what is left of a cut one (R74), and a cut last
 * line is ended (R75). Every other byte is handed over as it is, damaged lines included.
 * @throws LockedError when the transcript changes meanwhile; system errors
 */
export function mendLines(path: string, findRecords: FindRecords, write: (bytes: Buffer) => void): Mending {
  const sink = new Mender(findRecords, write)
  const { changed } = readLines(path, sink)
  if (changed) throw new LockedError(`${path} changed while it was read; it was left as it was`, { hint: 'run again when the session is quiet' })
  return sink.mending
}

class Mender implements LineSink {
  readonly #findRecords: FindRecords
  readonly #write: (bytes: Buffer) => void
  readonly mending = { nulRuns: 0, nulBytes: 0, split: 0, ended: false }

  constructor(findRecords: FindRecords, write: (bytes: Buffer) => void) {
    this.#findRecords = findRecords
    this.#write = write
  }

  lines(buffer: Buffer, length: number, offset: number): void {
    const view = buffer.subarray(0, length)
    // What need not be changed is handed over in stretches as long as can be.
    let same = 0
    let start = offset === 0 && view[0] === 0xef && view[1] === 0xbb && view[2] === 0xbf ? 3 : 0
    while (start < length) {
      const feed = view.indexOf(0x0a, start)
      const end = feed === -1 ? length : feed
      const next = feed === -1 ? length : feed + 1
      const mended = this.#mend(view.subarray(start, end), feed === -1)
      if (mended !== undefined) {
        if (start > same) this.#write(view.subarray(same, start))
        for (const line of mended) this.#write(Buffer.concat([line, lineFeed]))
        same = next
      }
      start = next
    }
    if (same < length) this.#write(view.subarray(same, length))
  }

  oversized(): void {
    throw new LockedError('the transcript has a line that is too long to be read whole; it was left as it was')
  }

  /** The lines that a line becomes; `undefined` when it stays as it is. */
  #mend(line: Buffer, isTail: boolean): Buffer[] | undefined {
    if (line.length === 0 || parseRecord(line) !== undefined) return undefined
    const rest = this.#withoutNul(line)
    if (isBlank(rest)) return rest.length === line.length ? undefined : []
    if (rest.length < line.length && parseRecord(rest) !== undefined) return [rest]
    const parts = partsOf(rest, this.#findRecords)
    if (parts.length > 1) this.mending.split += 1
    if (isTail && parts.length === 1 && parseRecord(rest) === undefined) this.mending.ended = true
    return parts.length > 1 || rest.length < line.length || isTail ? parts : undefined
  }

  #withoutNul(line: Buffer): Buffer {
    if (!line.includes(0)) return line
    const parts: Buffer[] = []
    for (let at = 0; at < line.length; ) {
      const nul = line.indexOf(0, at)
      if (nul === -1) {
        parts.push(line.subarray(at))
        break
      }
      parts.push(line.subarray(at, nul))
      at = nul
      while (at < line.length && line[at] === 0) at += 1
      this.mending.nulRuns += 1
      this.mending.nulBytes += at - nul
    }
    return Buffer.concat(parts)
  }
}

/** Whole records and what stands between them; blanks between records are left out. */
function partsOf(line: Buffer, findRecords: FindRecords): Buffer[] {
  const parts: Buffer[] = []
  let from = 0
  for (const { start, end } of findRecords(line)) {
    if (!isBlank(line.subarray(from, start))) parts.push(line.subarray(from, start))
    parts.push(line.subarray(start, end))
    from = end
  }
  if (!isBlank(line.subarray(from))) parts.push(line.subarray(from))
  return parts
}

function isBlank(bytes: Buffer): boolean {
  return bytes.toString('latin1').trim() === ''
}
