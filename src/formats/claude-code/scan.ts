import type { LineSink } from '../../fs/blocks.js'
import { isFields, textOf } from '../../model/fields.js'
import {
  afterByteOrderMark,
  beginsRecordInside,
  carriageReturn,
  closeBrace,
  countBackupNames,
  fileNeedle,
  hasHistoryKey,
  hasToolResult,
  isHistoryHead,
  isInBackupName,
  isKnownHistoryHead,
  isToolResultKey,
  lineFeed,
  nameNeedle,
  namesHistory,
  openBrace,
  resultNeedle,
  uuidNeedle,
  withoutNul,
} from './line-bytes.js'
import { countFollowed, readHistoryLine, type HistoryLine, type LinePlace } from './lines.js'
import type { Writable } from '../../model/writable.js'
import { NewestTime } from './newest-time.js'
import { namesIn, salvage } from './salvage.js'

/** What is wrong with the bytes of a transcript; offsets and lengths in bytes. */
export interface TranscriptProblem {
  readonly kind: 'damaged-line' | 'spliced-line' | 'nul-run' | 'torn-tail' | 'oversized-line' | 'odd-record' | 'newer-format'
  readonly message: string
  readonly offset: number
}

/** What the first lines of a transcript say about the session. */
export interface Head {
  readonly cwd?: string
  readonly version?: string
  readonly entrypoint?: string
}

/** A record as it was parsed, and how many bytes it has in the file. */
export interface ParsedRecord {
  readonly value: unknown
  readonly length: number
}

/** Receives what a transcript holds, in file order. */
export interface ScanHandler {
  history(line: HistoryLine, place: LinePlace, record: ParsedRecord): void
  /** Names found in bytes that are no record. */
  names(names: readonly string[], place: LinePlace): void
  problem(problem: TranscriptProblem): void
  /** A line with a tool result; only when asked for. The bytes are reused after the call. */
  toolResult?(line: Buffer, place: LinePlace): void
  /** True when history lines of a known type are not asked for: they are not even parsed then. */
  readonly passesHistory?: boolean
  /** A line by its bytes, history lines and damaged ones left out; only when asked for, and dear. */
  otherLine?(line: Buffer, place: LinePlace): void
}

const cwdNeedle = Buffer.from('"cwd":"')
/** Lines parsed whole at the start of a transcript in search of the start folder. */
const headLines = 40

/**
 * Scans a transcript as bytes for the few lines that matter and parses only those (design: memory and time do not grow
 * with what the conversation says). Damage is seen at the edges of a line, where a history line does not parse, and
 * where a second record begins inside a line (reports group F).
 */
export class TranscriptScan implements LineSink {
  readonly #handler: ScanHandler
  readonly #source: number
  readonly newest: NewestTime
  readonly #head: Writable<Head> = {}
  #headLines = 0
  #lines = 0

  constructor(handler: ScanHandler, source: number, now: number) {
    this.#handler = handler
    this.#source = source
    this.newest = new NewestTime(now)
  }

  get head(): Head {
    return this.#head
  }

  get lineCount(): number {
    return this.#lines
  }

  lines(buffer: Buffer, length: number, offset: number, last: boolean): void {
    const view = buffer.subarray(0, length)
    this.newest.scan(view)
    const hasNul = view.includes(0)
    const listens = this.#handler.toolResult !== undefined || this.#handler.otherLine !== undefined
    const passes = this.#handler.passesHistory === true
    let start = offset === 0 ? afterByteOrderMark(view) : 0
    let file = view.indexOf(fileNeedle)
    let name = view.indexOf(nameNeedle)
    let uuid = view.indexOf(uuidNeedle)
    let result = this.#handler.toolResult === undefined ? -1 : view.indexOf(resultNeedle)
    if (this.#head.cwd === undefined && this.#headLines >= headLines) this.#findCwd(view)
    while (start < length) {
      const feed = view.indexOf(lineFeed, start)
      const end = feed === -1 ? length : feed
      const stop = end > start && view[end - 1] === carriageReturn ? end - 1 : end
      let history = false
      let names = 0
      let spliced = false
      let toolResult = false
      while (file !== -1 && file < stop) {
        history ||= namesHistory(view, file)
        file = view.indexOf(fileNeedle, history ? stop : file + 4)
      }
      while (name !== -1 && name < stop) {
        if (isInBackupName(view, name)) names += 1
        name = view.indexOf(nameNeedle, name + 2)
      }
      while (uuid !== -1 && uuid < stop) {
        spliced ||= beginsRecordInside(view, uuid, start)
        uuid = view.indexOf(uuidNeedle, uuid + 6)
      }
      while (result !== -1 && result < stop) {
        toolResult ||= isToolResultKey(view, result)
        result = view.indexOf(resultNeedle, toolResult ? stop : result + 7)
      }
      if (stop > start) {
        this.#lines += 1
        const tail = last && feed === -1
        const irregular = view[start] !== openBrace || view[stop - 1] !== closeBrace || spliced || (hasNul && view.subarray(start, stop).includes(0))
        const passed = passes && !irregular && !tail && isKnownHistoryHead(view, start)
        const record = !passed && (history || names > 0 || tail || isHistoryHead(view, start) || this.#wantsHead)
        // Most lines are of no interest: no view is made of them.
        if (irregular || record || listens) {
          const line = view.subarray(start, stop)
          const place = { source: this.#source, offset: offset + start }
          if (irregular) this.#irregular(line, place, tail)
          else if (record) this.#record(line, place, tail, toolResult, names)
          else this.#message(line, place, toolResult)
        }
      }
      start = end + 1
    }
  }

  oversized(buffer: Buffer, length: number, offset: number): void {
    const piece = buffer.subarray(0, length)
    this.newest.scan(piece)
    this.#handler.names(namesIn(piece), { source: this.#source, offset })
    this.#handler.problem({ kind: 'oversized-line', message: 'a line is too long to parse; searched for backup names only', offset })
  }

  get #wantsHead(): boolean {
    return this.#headLines < headLines && this.#head.cwd === undefined
  }

  /** A line that has to be parsed: for its history, for the start folder, or because it may be cut. */
  #record(line: Buffer, place: LinePlace, tail: boolean, toolResult: boolean, names: number): void {
    const value = parse(line)
    if (value === undefined) this.#damaged(line, place, tail)
    else if (!this.#takeHistory(value, line, place, names)) {
      if (this.#wantsHead && isFields(value)) {
        this.#headLines += 1
        this.#takeHead(value)
      }
      // Records in a line of another type: its head may be damaged.
      if (names > 0 && hasHistoryKey(line)) this.#handler.names(namesIn(line), place)
      this.#message(line, place, toolResult)
    }
  }

  #message(line: Buffer, place: LinePlace, toolResult: boolean): void {
    if (toolResult) this.#handler.toolResult?.(line, place)
    this.#handler.otherLine?.(line, place)
  }

  /** Takes the record of a history line; false when it is another kind of line. `names` stand in its bytes. */
  #takeHistory(value: unknown, bytes: Buffer, place: LinePlace, names: number): boolean {
    const line = readHistoryLine(value, place)
    if (line.kind === 'other') return false
    if (line.kind === 'event') this.#handler.history(line, place, { value, length: bytes.length })
    else if (line.kind === 'odd') this.#handler.problem({ kind: 'odd-record', message: line.message, offset: place.offset })
    else this.#handler.problem({ kind: 'newer-format', message: `a line of type ${line.type} is not known`, offset: place.offset })
    // Whatever names a backup without being a record that was read keeps it in use: odd shapes, repeated keys.
    if (names !== (line.kind === 'event' ? countFollowed(line.event) : 0)) this.#handler.names(namesIn(bytes), place)
    return true
  }

  /** A line with NUL bytes, or one that does not look like one JSON object. */
  #irregular(line: Buffer, place: LinePlace, tail: boolean): void {
    for (const { bytes, start, nul } of withoutNul(line)) {
      const at = { ...place, offset: place.offset + start }
      if (nul) this.#handler.problem({ kind: 'nul-run', message: `${String(bytes.length)} NUL bytes where a line should be`, offset: at.offset })
      else this.#record(bytes, at, tail, hasToolResult(bytes), countBackupNames(bytes))
    }
  }

  #damaged(line: Buffer, place: LinePlace, tail: boolean): void {
    const { records, names, whole } = salvage(line)
    for (const { value, start, end } of records) {
      const bytes = line.subarray(start, end)
      const at = { ...place, offset: place.offset + start }
      if (this.#takeHistory(value, bytes, at, countBackupNames(bytes))) continue
      // It may be a part of a history record.
      this.#handler.names(namesIn(bytes), at)
      this.#message(bytes, at, hasToolResult(bytes))
    }
    this.#handler.names(names, place)
    const at = { offset: place.offset }
    if (records.length > 0) {
      const message = whole ? 'two records share a line; both were read' : 'a cut record and a whole one share a line; the whole one was read'
      this.#handler.problem({ kind: 'spliced-line', message, ...at })
    } else if (tail) this.#handler.problem({ kind: 'torn-tail', message: 'the last line is cut', ...at })
    else this.#handler.problem({ kind: 'damaged-line', message: 'a line is not valid JSON', ...at })
  }

  #takeHead(value: Readonly<Record<string, unknown>>): void {
    const cwd = textOf(value.cwd)
    const version = textOf(value.version)
    const entrypoint = textOf(value.entrypoint)
    // What an earlier line said stays.
    if (cwd !== undefined) this.#head.cwd ??= cwd
    if (version !== undefined) this.#head.version ??= version
    if (entrypoint !== undefined) this.#head.entrypoint ??= entrypoint
  }

  /** The start folder when no line near the start says it: the first line that does. */
  #findCwd(view: Buffer): void {
    const found = view.indexOf(cwdNeedle)
    if (found === -1) return
    const start = view.lastIndexOf(lineFeed, found) + 1
    const feed = view.indexOf(lineFeed, found)
    const value = parse(view.subarray(start, feed === -1 ? view.length : feed))
    if (isFields(value)) this.#takeHead(value)
  }
}

function parse(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString('utf8'))
  } catch {
    return undefined
  }
}
