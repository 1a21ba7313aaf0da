import { lstatSync } from 'node:fs'
import { readLines, readPlain, NotRegularError } from '../../fs/blocks.js'
import { systemErrorCode } from '../../model/errors.js'
import { isFields, textOf, type Fields } from '../../model/fields.js'
import type { LogFile } from './log-places.js'
import { isTooLarge, splitFrames, type Unpacker } from './zstd.js'

/** A packed log of more bytes than this is not read. */
const packedLimit = 1024 * 1024 * 1024
/** The time of an event stands in the first so many bytes of its line. */
const eventHead = 256

const messageNeedle = Buffer.from('"user/message"')
const replaceNeedle = Buffer.from('"op":"replace"')

/** A message of a human in a log. */
interface LogMessage {
  /** Position of its event in the log. */
  readonly seq: number
  readonly id?: string
  /** Milliseconds since 1970. */
  readonly time?: number
  readonly text: string
}

/** What a conversation log says, as far as it matters here. Times are milliseconds since 1970. */
export interface Log {
  readonly file: LogFile
  readonly id?: string
  /** Log format by its header. */
  readonly version?: number
  readonly cwd?: string
  readonly createdAt?: number
  /** The session that this one was forked from, and how many events it has of it. */
  readonly parentSession?: string
  readonly seedLength?: number
  readonly messages: readonly LogMessage[]
  /** Every `user/message` event, of any source: what an anchor can be. */
  readonly anchors: ReadonlySet<number>
  /** Ranges of events that are no longer part of the conversation. */
  readonly replaced: readonly (readonly [first: number, last: number])[]
  readonly times: { readonly newest?: number; readonly future?: number }
  readonly size: number
  readonly mtimeMs: number
  /** True when it changed while it was read. */
  readonly changed: boolean
  /** What is wrong with it, in words. A torn end is not. */
  readonly trouble?: string
}

/** Reads a log. What cannot be read of it is said in `trouble`; nothing is thrown for what stands there. */
export function readLog(file: LogFile, unpacker: Unpacker, now: number): Log {
  const reader = new LogReader(file, now)
  try {
    const stamp = file.packed ? readPacked(file, reader, unpacker) : readLines(file.path, reader)
    return reader.finish(stamp)
  } catch (error) {
    const code = error instanceof NotRegularError ? error.found : systemErrorCode(error)
    if (code === undefined) throw error
    // That somebody wrote to it counts all the same.
    const mtimeMs = Math.floor(lstatSync(file.path, { throwIfNoEntry: false })?.mtimeMs ?? 0)
    return reader.finish({ size: 0, mtimeMs, changed: false }, `it cannot be read (${code})`)
  }
}

/** True when a message is still part of the conversation. */
export function isVisible(log: Log, seq: number): boolean {
  return !log.replaced.some(([first, last]) => seq >= first && seq <= last)
}

interface Stamp {
  readonly size: number
  readonly mtimeMs: number
  readonly changed: boolean
  readonly trouble?: string
}

function readPacked(file: LogFile, reader: LogReader, unpacker: Unpacker): Stamp {
  const before = lstatSync(file.path)
  const bytes = readPlain(file.path, packedLimit)
  const stamp = { size: before.size, mtimeMs: Math.floor(before.mtimeMs) }
  if (bytes === undefined) return { ...stamp, changed: false, trouble: 'it is too large to be unpacked' }
  const { frames } = splitFrames(bytes)
  let trouble = frames.length === 0 ? 'it holds no whole frame' : undefined
  for (const frame of frames) {
    try {
      if (isTooLarge(frame)) throw new Error('too large')
      const part = unpacker.unpack(frame)
      reader.lines(Buffer.from(part.buffer, part.byteOffset, part.byteLength), part.byteLength)
    } catch {
      trouble = 'a frame of it cannot be unpacked'
    }
  }
  const after = lstatSync(file.path, { throwIfNoEntry: false })
  const changed = after?.ino !== before.ino || after.size !== before.size || after.mtimeMs !== before.mtimeMs
  return { ...stamp, changed, ...(trouble === undefined ? {} : { trouble }) }
}

class LogReader {
  readonly #file: LogFile
  readonly #now: number
  #header: Fields | undefined
  readonly #messages: LogMessage[] = []
  readonly #anchors = new Set<number>()
  readonly #replaced: (readonly [number, number])[] = []
  #newest: number | undefined
  #future: number | undefined

  constructor(file: LogFile, now: number) {
    this.#file = file
    this.#now = now
  }

  lines(buffer: Buffer, length: number): void {
    let start = 0
    while (start < length) {
      const feed = buffer.indexOf(0x0a, start)
      const end = feed === -1 || feed > length ? length : feed
      this.#line(buffer.subarray(start, end))
      start = end + 1
    }
  }

  /** A line of that length is no message. */
  oversized(): void {
    return undefined
  }

  finish({ size, mtimeMs, changed, trouble }: Stamp, failure?: string): Log {
    const header = this.#header ?? {}
    const version = numberOf(header.version)
    const found = failure ?? trouble ?? this.#headerTrouble(version)
    const created = numberOf(header.createdAt)
    const seed = numberOf(header.seedLength)
    return {
      file: this.#file,
      ...optional('id', textOf(header.id)),
      ...optional('version', version),
      ...optional('cwd', textOf(header.cwd)),
      ...optional('createdAt', created),
      ...optional('parentSession', textOf(header.parentSession)),
      ...optional('seedLength', seed),
      messages: this.#messages,
      anchors: this.#anchors,
      replaced: this.#replaced,
      times: { ...optional('newest', this.#newest), ...optional('future', this.#future) },
      size,
      mtimeMs,
      changed,
      ...optional('trouble', found),
    }
  }

  #headerTrouble(version: number | undefined): string | undefined {
    if (this.#header === undefined) return 'its first line is no header'
    if (version !== this.#file.version) return `its header says version ${String(version)}, its name version ${String(this.#file.version)}`
    return undefined
  }

  #line(line: Buffer): void {
    this.#noteTime(line)
    const first = this.#header === undefined
    if (!first && !line.includes(messageNeedle) && !line.includes(replaceNeedle)) return
    const event = parse(line)
    if (event === undefined) return
    if (first) {
      if (event.type === 'session') this.#header = event
      if (typeof event.createdAt === 'number') this.#take(event.createdAt)
      return
    }
    const seq = numberOf(event.seq)
    if (seq === undefined) return
    this.#noteReplaced(event)
    if (event.type === 'user/message') this.#message(seq, event)
  }

  #message(seq: number, event: Fields): void {
    this.#anchors.add(seq)
    const data = isFields(event.data) ? event.data : {}
    const text = messageText(data.content)
    if (!isFields(data.source) || data.source.kind !== 'user' || isMarkerText(text)) return
    this.#messages.push({ seq, text, ...optional('id', textOf(data.id)), ...optional('time', numberOf(event.time)) })
  }

  #noteReplaced({ surfaceOp }: Fields): void {
    if (!isFields(surfaceOp) || surfaceOp.op !== 'replace') return
    const first = numberOf(surfaceOp.startSeq ?? surfaceOp.start)
    const last = numberOf(surfaceOp.endSeq ?? surfaceOp.end)
    if (first !== undefined && last !== undefined) this.#replaced.push([first, last])
  }

  #noteTime(line: Buffer): void {
    const match = /"time":([0-9]{1,15})[,}]/.exec(line.toString('latin1', 0, Math.min(line.length, eventHead)))
    if (match !== null) this.#take(Number(match[1]))
  }

  #take(time: number): void {
    if (time > this.#now) this.#future = Math.max(this.#future ?? time, time)
    else this.#newest = Math.max(this.#newest ?? time, time)
  }
}

/** The two oldest marker forms look like messages of a human (section 5.2). */
function isMarkerText(text: string): boolean {
  return text.startsWith('[回退标记 / rewind marker]') || text.startsWith('__DSH_REWIND__:')
}

function messageText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.flatMap((block: unknown) => (isFields(block) && typeof block.text === 'string' ? [block.text] : [])).join('\n')
}

function parse(line: Buffer): Fields | undefined {
  try {
    const value: unknown = JSON.parse(line.toString('utf8'))
    return isFields(value) ? value : undefined
  } catch {
    return undefined
  }
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

function optional<K extends string, T>(key: K, value: T | undefined): Partial<Record<K, T>> {
  return value === undefined ? {} : ({ [key]: value } as Record<K, T>)
}
