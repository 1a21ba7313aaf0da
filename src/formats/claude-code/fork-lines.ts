import { closeSync, fstatSync, lstatSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { openPlain, readLines, type LineSink } from '../../fs/blocks.js'
import { FenceError, LockedError, NewerFormatError, NoMatchError, UsageError } from '../../model/errors.js'
import { textOf, type Fields } from '../../model/fields.js'
import { membersOf, type ReadDeltas, type SessionRef } from '../../model/session.js'
import type { ForkOutline, ForkRequest } from '../conversation.js'
import { messagesBefore, type MessageNode } from './cut.js'
import { FoldedLines } from './folded-lines.js'
import { parseRecord } from '../parse-record.js'
import { fieldText, recordsIn, type ByteRange } from './record-bytes.js'

/** What the client writes anew by itself: a fork of the client has none of the old lines (corpus, `fork`). */
const passing: ReadonlySet<string> = new Set(['queue-operation', 'last-prompt', 'cost-state', 'api-request', 'api-request-shape', 'api-request-blob'])
/** What holds for the session until a later line says otherwise: a fork of the client begins with the last of each. */
const standing: ReadonlySet<string> = new Set(['mode', 'permission-mode', 'atis-latch', 'tools-used'])

/** A line of the old transcript that can become one of the new, by its place. */
interface Line {
  readonly source: number
  readonly offset: number
  readonly length: number
  /** The `uuid` of a message; of other lines nothing. */
  readonly message?: string
  /** Where the session id stands in it. */
  readonly session?: ByteRange
  /** Ids that the line of an unknown type mentions. */
  readonly mentions?: readonly string[]
}

/**
 * Writes the transcript of a fork (formats/claude-code section 8) through `write`, in pieces: the last line of each kind
 * that holds for the session, one folded snapshot for each checkpoint, then the messages in their order with the new
 * session id and not another byte changed. Lines of types that nobody knows are copied like messages. Queue operations, the
 * last prompt, costs and requests are about what the old session did and are left out, as the client does.
 *
 * With `before` it is cut there: messages that the named one does not hang off go, with their checkpoints, and so does
 * every other line that stands after it or mentions a message that went. The first record of a path that only a cut
 * checkpoint held moves to an earlier checkpoint, so that what is left resolves as before.
 *
 * @throws NoMatchError when the session has no transcript, or no message `before`; UsageError when nothing stands before it;
 *   NewerFormatError for history lines of an unknown type; LockedError when a transcript changes meanwhile
 */
export function forkTranscript(root: string, session: SessionRef, request: ForkRequest, write: (bytes: Buffer) => void): ForkOutline {
  const paths = membersOf(session, 'transcript').map(({ path }) => join(root, path))
  if (paths.length === 0) throw new NoMatchError(`session ${session.id} has no transcript; there is nothing to fork`)
  const files = paths.map((path) => openPlain(path))
  try {
    const collector = new Collector(request.before)
    for (const [source, path] of paths.entries()) collector.read(path, source, parsedBefore(files[source] ?? -1, request.deltas?.[source]))
    const read = readerOf(files)
    const { lines, checkpoints, notWhole } = collector.choose(read)
    const write1 = (line: Line): void => { write(withSession(read(line.source, line.offset, line.length), line.session, request.newId)) }
    for (const line of lines.standing) write1(line)
    for (const line of checkpoints.lines(read)) write(line)
    for (const line of lines.rest) write1(line)
    for (const [source, path] of paths.entries()) assertSame(files[source] ?? -1, path)
    return { messages: lines.rest.filter(({ message }) => message !== undefined).length, checkpoints: checkpoints.count, notWhole }
  } finally {
    for (const file of files) closeSync(file)
  }
}

type ReadAt = (source: number, offset: number, length: number) => Buffer

function readerOf(files: readonly number[]): ReadAt {
  return (source, offset, length) => {
    const bytes = Buffer.allocUnsafe(length)
    let filled = 0
    while (filled < length) {
      const count = readSync(files[source] ?? -1, bytes, filled, length - filled, offset + filled)
      if (count === 0) throw new LockedError('the transcript became shorter while it was read; nothing was made', { hint: 'run again when the session is quiet' })
      filled += count
    }
    return bytes
  }
}

/** The lines that were parsed already, unless the file was written to since. */
function parsedBefore(file: number, deltas: ReadDeltas | undefined): ReadDeltas['lines'] | undefined {
  const { ino, size, mtimeMs } = fstatSync(file)
  return deltas?.inode === ino && deltas.size === size && deltas.mtimeMs === Math.floor(mtimeMs) ? deltas.lines : undefined
}

function assertSame(file: number, path: string): void {
  const [held, there] = [fstatSync(file), lstatSync(path, { throwIfNoEntry: false })]
  if (there?.ino === held.ino && there.dev === held.dev) return
  throw new LockedError(`${path} was replaced while it was read; nothing was made`, { hint: 'run again when the session is quiet' })
}

const lineFeed = Buffer.from('\n')

function withSession(line: Buffer, place: ByteRange | undefined, id: string): Buffer {
  if (place === undefined) return Buffer.concat([line, lineFeed])
  return Buffer.concat([line.subarray(0, place.start), Buffer.from(id), line.subarray(place.end), lineFeed])
}

class Collector implements LineSink {
  readonly #before: string | undefined
  readonly #nodes = new Map<string, MessageNode>()
  readonly #lines: Line[] = []
  readonly #standing = new Map<string, Line>()
  readonly #folded = new FoldedLines()
  #source = 0
  #path = ''
  #parsed: ReadDeltas['lines'] = new Map()
  #cutAt: number | undefined
  #notWhole = 0

  constructor(before: string | undefined) {
    this.#before = before
  }

  /** `parsed` are lines that need no parsing, by their offsets. */
  read(path: string, source: number, parsed: ReadDeltas['lines'] = new Map()): void {
    this.#parsed = parsed
    this.#source = source
    this.#path = path
    const { changed } = readLines(path, this)
    if (changed) throw new LockedError(`${path} changed while it was read; nothing was made`, { hint: 'run again when the session is quiet' })
  }

  lines(buffer: Buffer, length: number, offset: number): void {
    const view = buffer.subarray(0, length)
    let start = offset === 0 && buffer[0] === 0xef && buffer[1] === 0xbb && buffer[2] === 0xbf ? 3 : 0
    while (start < length) {
      const feed = view.indexOf(0x0a, start)
      const end = feed === -1 ? length : feed
      const known = this.#parsed.get(offset + start)
      if (known?.length === end - start) this.#folded.addDelta(known.event, known.backup)
      else if (end > start) this.#line(view.subarray(start, end), offset + start)
      start = end + 1
    }
  }

  oversized(): void {
    throw new FenceError(`${this.#path} has a line that is too long to be read whole; nothing was made`)
  }

  choose(read: ReadAt): { lines: { standing: readonly Line[]; rest: readonly Line[] }; checkpoints: FoldedLines; notWhole: number } {
    const before = this.#before
    const notWhole = this.#notWhole
    const standing = [...this.#standing.values()]
    if (before === undefined) {
      this.#folded.keep(() => true, read)
      return { lines: { standing, rest: this.#lines }, checkpoints: this.#folded, notWhole }
    }
    const target = this.#nodes.get(before)
    if (target === undefined) throw new NoMatchError(`no message ${before} in the transcript`)
    const kept = messagesBefore(this.#nodes, before)
    if (kept.size === 0) {
      throw new UsageError(`nothing stands before message ${before}; a new session begins there by itself`, { hint: 'name a later message' })
    }
    const cutAt = this.#cutAt ?? this.#lines.length
    const isCut = (id: string): boolean => this.#nodes.has(id) && !kept.has(id)
    const rest = this.#lines.filter((line, index) =>
      line.message === undefined ? index < cutAt && !(line.mentions ?? []).some(isCut) : kept.has(line.message),
    )
    this.#folded.keep((checkpoint) => (this.#nodes.has(checkpoint) ? kept.has(checkpoint) : this.#folded.isOlder(checkpoint, before)), read)
    return { lines: { standing, rest }, checkpoints: this.#folded, notWhole }
  }

  #line(line: Buffer, offset: number): void {
    const value = parseRecord(line)
    if (value !== undefined) {
      this.#record(value, line, offset)
      return
    }
    if (line.toString('latin1').trim() === '') return
    this.#notWhole += 1
    for (const { start, end, value: found } of recordsIn(line)) this.#record(found, line.subarray(start, end), offset + start)
  }

  #record(value: Fields, bytes: Buffer, offset: number): void {
    const type = textOf(value.type) ?? ''
    const place = { source: this.#source, offset, length: bytes.length }
    if (type.startsWith('file-history-')) {
      if (!this.#folded.add(value, place)) {
        throw new NewerFormatError(`${this.#path} has lines of the type ${type}, which this version does not know; nothing was made`, { hint: 'update rewind-admin' })
      }
      return
    }
    const session = typeof value.sessionId === 'string' ? sessionPlace(bytes, value.sessionId) : undefined
    const line: Line = { ...place, ...(session === undefined ? {} : { session }) }
    const id = textOf(value.uuid)
    if (id !== undefined) this.#message(id, value, line)
    else if (passing.has(type)) return
    else if (standing.has(type)) {
      // The last one before the cut, and at the place of the last.
      if (this.#cutAt !== undefined) return
      this.#standing.delete(type)
      this.#standing.set(type, line)
    } else this.#lines.push({ ...line, mentions: Object.values(value).filter((field) => typeof field === 'string') })
  }

  #message(id: string, value: Fields, line: Line): void {
    // The same message in a second transcript of the session, or written twice: the first one counts.
    if (this.#nodes.has(id)) return
    if (id === this.#before) this.#cutAt = this.#lines.length
    const parent = textOf(value.parentUuid) ?? textOf(value.logicalParentUuid)
    this.#nodes.set(id, { id, parent, prompt: isPrompt(value), index: this.#nodes.size })
    this.#lines.push({ ...line, message: id })
  }
}

function isPrompt(value: Fields): boolean {
  return value.type === 'user' && value.isSidechain !== true && value.isMeta !== true && value.toolUseResult === undefined && !holdsToolResult(value.message)
}

function holdsToolResult(message: unknown): boolean {
  const content = typeof message === 'object' && message !== null && 'content' in message ? message.content : undefined
  return Array.isArray(content) && content.some((block: unknown) => typeof block === 'object' && block !== null && 'type' in block && block.type === 'tool_result')
}

/** Most lines hold the key once; only where nested objects have one too is the line taken apart. */
function sessionPlace(line: Buffer, id: string): ByteRange | undefined {
  const needle = `"sessionId":"${id}"`
  const at = line.indexOf(needle)
  if (at !== -1 && line.indexOf('"sessionId"', at + 1) === -1 && line.indexOf('"sessionId"') === at) {
    const start = at + '"sessionId":"'.length
    return { start, end: start + id.length }
  }
  return fieldText(line, 'sessionId')
}
