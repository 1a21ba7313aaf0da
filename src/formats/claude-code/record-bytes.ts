import { textOf, type Fields } from '../../model/fields.js'
import { parseRecord } from '../parse-record.js'

const quote = 0x22
const backslash = 0x5c
const colon = 0x3a
const comma = 0x2c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d

const recordStart = /\{"(?:type|parentUuid|messageId|sessionId|leafUuid)":/g
/** Bytes that may be looked at in vain for one line, so that a hostile line costs bounded time. */
const searchBudget = 64 * 1024 * 1024

/** A stretch of bytes, from `start` up to but not including `end`. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/** A whole record inside a line, with what it says. */
export interface RecordRange extends ByteRange {
  readonly value: Fields
}

/**
 * Whole records in a line that is not one record: records that share a line, or follow a cut one (R74). Only objects that
 * look like a line of a transcript count; parts of a cut record do not.
 */
export function recordsIn(line: Buffer): RecordRange[] {
  // Latin-1 has one character for each byte, so that places in the text are places in the line.
  const text = line.toString('latin1')
  const records: RecordRange[] = []
  let from = 0
  let budget = Math.max(searchBudget, 16 * line.length)
  for (const { index } of text.matchAll(recordStart)) {
    if (index < from) continue
    if (budget <= 0) break
    const end = endOfObject(line, index)
    budget -= (end ?? line.length) - index
    const value = end === undefined ? undefined : parseRecord(line.subarray(index, end))
    if (end === undefined || value === undefined || !isTranscriptRecord(value)) continue
    records.push({ start: index, end, value })
    from = end
  }
  return records
}

function isTranscriptRecord(value: Fields): boolean {
  const type = textOf(value.type)
  if (type === undefined) return false
  return type.startsWith('file-history-') || [value.sessionId, value.uuid, value.leafUuid].some((field) => typeof field === 'string')
}

/** Where the object that begins at `start` ends, just after its brace; `undefined` when it does not. */
function endOfObject(bytes: Buffer, start: number): number | undefined {
  let depth = 0
  for (let at = start; at < bytes.length; at += 1) {
    const byte = bytes[at]
    if (byte === quote) at = endOfString(bytes, at) - 1
    else if (byte === openBrace || byte === openBracket) depth += 1
    else if (byte === closeBrace || byte === closeBracket) {
      depth -= 1
      if (depth === 0) return at + 1
    }
  }
  return undefined
}

/** Just after the quote that ends the string whose first quote is at `start`. */
function endOfString(bytes: Buffer, start: number): number {
  for (let at = start + 1; at < bytes.length; at += 1) {
    const byte = bytes[at]
    if (byte === backslash) at += 1
    else if (byte === quote) return at + 1
  }
  return bytes.length + 1
}

/**
 * Where the text of a field of the object itself stands, quotes left out; fields of nested objects do not count. Of a key
 * that is there twice it is the last, as JSON readers have it. `record` is one whole JSON object.
 */
export function fieldText(record: Buffer, key: string): ByteRange | undefined {
  const wanted = Buffer.from(`"${key}"`)
  let found: ByteRange | undefined
  let depth = 0
  let expectsKey = false
  for (let at = 0; at < record.length; at += 1) {
    const byte = record[at]
    if (byte === quote) {
      const end = endOfString(record, at)
      if (expectsKey && depth === 1 && record.subarray(at, end).equals(wanted)) {
        const value = afterColon(record, end)
        found = record[value] === quote ? { start: value + 1, end: endOfString(record, value) - 1 } : undefined
      }
      expectsKey = false
      at = end - 1
    } else if (byte === openBrace || byte === openBracket) {
      depth += 1
      expectsKey = byte === openBrace
    } else if (byte === closeBrace || byte === closeBracket) depth -= 1
    else if (byte === comma) expectsKey = true
  }
  return found
}

function afterColon(record: Buffer, from: number): number {
  let at = from
  while (at < record.length && (record[at] === colon || (record[at] ?? 0) <= 0x20)) at += 1
  return at
}
