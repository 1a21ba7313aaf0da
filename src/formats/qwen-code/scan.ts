import type { LineSink } from '../../fs/blocks.js'
import { parseRecord } from '../parse-record.js'
import { balancedObjects, headOf, looksWhole, namesIn, readHeadOf, recordsIn, type RecordHead } from './record-bytes.js'

/** Where a record stands: which transcript of the session, byte offset and length. */
export interface Place {
  readonly source: number
  readonly offset: number
  readonly length: number
}

/** What is wrong with the bytes of a transcript; offsets in bytes. */
export interface ScanProblem {
  readonly kind: 'damaged-line' | 'spliced-line' | 'torn-tail' | 'oversized-line'
  readonly message: string
  readonly offset: number
  /** Something could not be read: nothing of the session may be removed on its own. */
  readonly loses: boolean
}

/** Receives what a transcript holds, in file order. */
export interface ScanHandler {
  /** The bytes are reused after the call. */
  record(head: RecordHead, place: Place, bytes: Buffer): void
  /** Backup names in bytes that are no record that the agent reads. */
  names(names: readonly string[]): void
  problem(problem: ScanProblem): void
}

const lineFeed = 0x0a
const carriageReturn = 0x0d

/**
 * Reads a transcript line by line as the agent does (formats/qwen-code section 4, step 1), parsing only lines that do not
 * look like one whole record. Memory does not grow with the file.
 */
export class TranscriptScan implements LineSink {
  readonly #handler: ScanHandler
  readonly #source: number

  constructor(handler: ScanHandler, source: number) {
    this.#handler = handler
    this.#source = source
  }

  lines(buffer: Buffer, length: number, offset: number, last: boolean): void {
    const view = buffer.subarray(0, length)
    let start = offset === 0 && view[0] === 0xef && view[1] === 0xbb && view[2] === 0xbf ? 3 : 0
    while (start < length) {
      const feed = view.indexOf(lineFeed, start)
      const end = feed === -1 ? length : feed
      const stop = end > start && view[end - 1] === carriageReturn ? end - 1 : end
      if (stop > start) this.#line(view.subarray(start, stop), offset + start, last && feed === -1)
      start = end + 1
    }
  }

  oversized(buffer: Buffer, length: number, offset: number): void {
    this.#handler.names(namesIn(buffer.subarray(0, length)))
    this.#handler.problem({ kind: 'oversized-line', message: 'a line is too long to parse; searched for backup names only', offset, loses: true })
  }

  #line(line: Buffer, offset: number, tail: boolean): void {
    // The last line may be cut where it seems whole.
    const head = !tail && looksWhole(line) ? readHeadOf(line) : undefined
    const value = head === undefined ? parseRecord(line) : undefined
    if (head !== undefined) this.#handler.record(head, this.#place(offset, line.length), line)
    else if (value !== undefined) this.#handler.record(headOf(value), this.#place(offset, line.length), line)
    else if (!isBlank(line)) this.#broken(line, offset, tail)
  }

  #broken(line: Buffer, offset: number, tail: boolean): void {
    const objects = balancedObjects(line)
    const rest: Buffer[] = []
    let from = 0
    for (const { start, end, value } of objects) {
      this.#handler.record(headOf(value), this.#place(offset + start, end - start), line.subarray(start, end))
      rest.push(line.subarray(from, start))
      from = end
    }
    rest.push(line.subarray(from))
    const left = Buffer.concat(rest)
    const loses = !isBlank(left)
    if (loses) this.#handler.names(namesIn(left))
    this.#handler.problem({ ...describe(objects.length, loses, recordsIn(left).length, tail), offset, loses })
  }

  #place(offset: number, length: number): Place {
    return { source: this.#source, offset, length }
  }
}

function describe(read: number, loses: boolean, swallowed: number, tail: boolean): Pick<ScanProblem, 'kind' | 'message'> {
  if (swallowed > 0) return { kind: 'spliced-line', message: 'a cut record swallows the one behind it in its line; the agent reads neither' }
  if (read > 0) {
    const message = loses ? 'a record shares its line with something that is none; the record was read' : 'several records, or stray bytes, share a line; every record was read'
    return { kind: 'spliced-line', message }
  }
  return tail ? { kind: 'torn-tail', message: 'the last line is cut, and swallows what the agent appends next' } : { kind: 'damaged-line', message: 'a line is not valid JSON' }
}

/** Blanks and NUL bytes say nothing. */
function isBlank(bytes: Buffer): boolean {
  for (const byte of bytes) if (byte > 0x20) return false
  return true
}
