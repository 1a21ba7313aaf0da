import { eachMember, stringIn } from '../../fs/json-members.js'
import type { Fields } from '../../model/fields.js'
import { parseRecord } from '../parse-record.js'

const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d

const recordStart = Buffer.from('{"uuid":')
const backupName = /[0-9a-f]{16}@v[1-9][0-9]*/g
/** Bytes that may be looked at in vain for one line, so that a hostile line costs bounded time. */
const searchBudget = 64 * 1024 * 1024

/** A whole record inside a line; `start` up to but not including `end`. */
export interface RecordRange {
  readonly start: number
  readonly end: number
  readonly value: Fields
}

/** The members of a record that stand before its content; texts only, `null` as such. */
export interface RecordHead {
  readonly uuid?: string
  readonly parentUuid?: string | null
  readonly sessionId?: string
  readonly timestamp?: string
  readonly type?: string
  readonly subtype?: string
  readonly provenance?: string
  readonly cwd?: string
  readonly version?: string
}

const headKeys: ReadonlySet<string> = new Set(['uuid', 'parentUuid', 'sessionId', 'timestamp', 'type', 'subtype', 'provenance', 'cwd', 'version'])
/** What a record is about: large, and behind everything that is of interest here. */
const contentKeys: ReadonlySet<string> = new Set(['message', 'systemPayload', 'toolCallResult'])

/** Reads the head of a line that looks like one record, without looking at its content; `undefined` when it is none. */
export function readHeadOf(line: Buffer): RecordHead | undefined {
  const head: Record<string, string | null> = {}
  try {
    for (const { key, value, end } of eachMember(line, 0)) {
      if (contentKeys.has(key) && head.uuid !== undefined && head.type !== undefined) break
      if (!headKeys.has(key)) continue
      const text = line[value] === quote ? stringIn(line, value, end) : undefined
      if (text !== undefined) head[key] = text
      else if (line.toString('latin1', value, end) === 'null') head[key] = null
    }
    return head
  } catch {
    return undefined
  }
}

/** The head of a record that was parsed. */
export function headOf(value: Fields): RecordHead {
  const entries = [...headKeys].flatMap((key) => (typeof value[key] === 'string' || value[key] === null ? [[key, value[key]]] : []))
  return Object.fromEntries(entries) as RecordHead
}

/** False for a line that may be more or less than one record: then it has to be parsed whole. */
export function looksWhole(line: Buffer): boolean {
  return line[0] === openBrace && line[line.length - 1] === closeBrace && !line.includes(0) && line.indexOf(recordStart, 1) === -1
}

/**
 * The objects that the agent takes out of a line which is not one record (section 4, step 1): balanced ones, one after the
 * other. A cut record is never balanced and swallows everything behind it.
 */
export function balancedObjects(line: Buffer): RecordRange[] {
  const found: RecordRange[] = []
  for (let start = line.indexOf(openBrace); start !== -1; ) {
    const end = endOfObject(line, start)
    if (end === undefined) break
    const value = parseRecord(line.subarray(start, end))
    if (value !== undefined) found.push({ start, end, value })
    start = line.indexOf(openBrace, end)
  }
  return found
}

/** Every whole record in a line that is not one, those behind a cut record as well. */
export function recordsIn(line: Buffer): RecordRange[] {
  const found: RecordRange[] = []
  let budget = Math.max(searchBudget, 16 * line.length)
  for (let start = line.indexOf(recordStart); start !== -1 && budget > 0; ) {
    const end = endOfObject(line, start)
    budget -= (end ?? line.length) - start
    const value = end === undefined ? undefined : parseRecord(line.subarray(start, end))
    const isRecord = end !== undefined && value !== undefined && typeof value.uuid === 'string' && typeof value.type === 'string'
    if (isRecord) found.push({ start, end, value })
    start = line.indexOf(recordStart, isRecord ? end : start + 1)
  }
  return found
}

/** Backup names that stand anywhere in some bytes. */
export function namesIn(bytes: Buffer): string[] {
  return [...new Set(Array.from(bytes.toString('latin1').matchAll(backupName), ([name]) => name))]
}

/** Just behind the brace that ends the object which begins at `start`; `undefined` when it does not end. */
function endOfObject(bytes: Buffer, start: number): number | undefined {
  let depth = 0
  for (let at = start; at < bytes.length; at += 1) {
    const byte = bytes[at]
    if (byte === quote) {
      for (at += 1; at < bytes.length && bytes[at] !== quote; at += 1) if (bytes[at] === backslash) at += 1
    } else if (byte === openBrace) depth += 1
    else if (byte === closeBrace) {
      depth -= 1
      if (depth === 0) return at + 1
    }
  }
  return undefined
}
