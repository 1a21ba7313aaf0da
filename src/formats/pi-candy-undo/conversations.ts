import { closeSync, lstatSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { openPlain, readLines } from '../../fs/blocks.js'
import { listFolder } from '../../fs/folder.js'
import { isFields, textOf, type Fields } from '../../model/fields.js'

/** The first line of a conversation file of pi. */
export interface Header {
  readonly id: string
  /** Absolute path of the working folder, where it is recorded. */
  readonly cwd?: string
  /** ISO 8601. */
  readonly timestamp?: string
  /** Version of the conversation format. */
  readonly version?: number
}

interface UserText {
  readonly text: string
  /** Milliseconds since 1970. */
  readonly time?: number
}

/** One entry of a conversation: the one before it on its branch, and the text of a user message. */
interface Entry {
  readonly parent: string | undefined
  readonly user?: UserText
}

/** A conversation of pi, as far as checkpoints need it. It is the user's and never written. */
export interface Conversation {
  /** Absolute. */
  readonly path: string
  readonly header: Header
  /** Entry id to entry, in the order of the file. */
  readonly entries: ReadonlyMap<string, Entry>
  /** Id of the last entry. */
  readonly leaf?: string
  /** Every time in it, newest not in the future first; milliseconds since 1970. */
  readonly newest?: number
  readonly future?: number
  readonly mtimeMs: number
  /** Lines that could not be read, and messages without an id. */
  readonly damaged: number
  readonly withoutId: number
}

/** A file of more than this many levels below the folder is not looked for. */
const deepest = 4
const headBytes = 64 * 1024

/** Finds the conversations of sessions: every `*.jsonl` below a folder whose first line is a session header. */
export class Conversations {
  readonly #folder: string
  #byId: Map<string, { path: string; header: Header }[]> | undefined
  #last: { readonly path: string; readonly stamp: string; readonly now: number; readonly conversation: Conversation } | undefined

  constructor(folder: string) {
    this.#folder = folder
  }

  get folder(): string {
    return this.#folder
  }

  /** Forgets what was listed, so that conversations that came meanwhile are found. */
  refresh(): void {
    this.#byId = undefined
  }

  /** Headers of every conversation file with this session id, sorted by path. */
  headersOf(session: string): readonly { readonly path: string; readonly header: Header }[] {
    this.#byId ??= indexOf(this.#folder)
    return this.#byId.get(session) ?? []
  }

  /** The conversation of a session; the first file when there are several. `undefined` when there is none that can be read. */
  of(session: string, now: number): Conversation | undefined {
    const [found] = this.headersOf(session)
    if (found === undefined) return undefined
    try {
      const { size, mtimeMs, ino } = lstatSync(found.path)
      const stamp = `${String(size)} ${String(mtimeMs)} ${String(ino)}`
      const last = this.#last
      if (last?.path === found.path && last.stamp === stamp && last.now === now) return last.conversation
      const conversation = readConversation(found.path, found.header, now)
      this.#last = { path: found.path, stamp, now, conversation }
      return conversation
    } catch {
      return undefined
    }
  }
}

/** The folders in which a session was started, as its conversation files say; several only where they disagree. */
export function foldersOf(conversations: Conversations, session: string): string[] {
  return [...new Set(conversations.headersOf(session).flatMap(({ header }) => (header.cwd === undefined ? [] : [header.cwd])))]
}

function indexOf(folder: string): Map<string, { path: string; header: Header }[]> {
  const byId = new Map<string, { path: string; header: Header }[]>()
  const visit = (path: string, depth: number): void => {
    for (const entry of listFolder(path).entries) {
      const inside = join(path, entry.name)
      if (entry.isDirectory() && depth < deepest) visit(inside, depth + 1)
      if (!entry.isFile() || !entry.name.endsWith('.jsonl')) continue
      const header = readHeader(inside)
      if (header === undefined) continue
      const known = byId.get(header.id)
      if (known === undefined) byId.set(header.id, [{ path: inside, header }])
      else known.push({ path: inside, header })
    }
  }
  visit(folder, 0)
  return byId
}

function readHeader(path: string): Header | undefined {
  try {
    const fd = openPlain(path)
    try {
      const buffer = Buffer.alloc(headBytes)
      const count = readSync(fd, buffer, 0, buffer.length, 0)
      const feed = buffer.subarray(0, count).indexOf(0x0a)
      const value: unknown = JSON.parse(buffer.toString('utf8', 0, feed === -1 ? count : feed))
      return isFields(value) ? headerOf(value) : undefined
    } finally {
      closeSync(fd)
    }
  } catch {
    return undefined
  }
}

function headerOf(value: Fields): Header | undefined {
  if (value.type !== 'session' || typeof value.id !== 'string') return undefined
  const cwd = textOf(value.cwd)
  const timestamp = textOf(value.timestamp)
  return {
    id: value.id,
    ...(cwd === undefined || cwd === '' ? {} : { cwd }),
    ...(timestamp === undefined ? {} : { timestamp }),
    ...(typeof value.version === 'number' ? { version: value.version } : {}),
  }
}

function readConversation(path: string, header: Header, now: number): Conversation {
  const entries = new Map<string, Entry>()
  const found = { leaf: undefined as string | undefined, newest: undefined as number | undefined, future: undefined as number | undefined, damaged: 0, withoutId: 0 }
  const line = (bytes: Buffer, isLast: boolean): void => {
    const value = parse(bytes)
    if (value === undefined) {
      // The last line may be in the making.
      if (!isLast) found.damaged += 1
      return
    }
    const time = Date.parse(textOf(value.timestamp) ?? '')
    if (time > now) found.future = Math.max(found.future ?? time, time)
    else if (!Number.isNaN(time)) found.newest = Math.max(found.newest ?? time, time)
    if (value.type === 'session') return
    if (typeof value.id !== 'string') {
      if (value.type === 'message') found.withoutId += 1
      return
    }
    const text = value.type === 'message' ? userText(value.message) : undefined
    const user = text === undefined ? {} : { user: { text, ...(Number.isNaN(time) ? {} : { time }) } }
    if (!entries.has(value.id)) entries.set(value.id, { parent: textOf(value.parentId), ...user })
    found.leaf = value.id
  }
  const stamp = readLines(path, {
    lines(buffer, length, _offset, last) {
      let start = 0
      while (start < length) {
        const feed = buffer.indexOf(0x0a, start)
        const end = feed === -1 || feed >= length ? length : feed
        if (end > start) line(buffer.subarray(start, end), last && end === length)
        start = end + 1
      }
    },
    oversized() {
      found.damaged += 1
    },
  })
  const { leaf, newest, future, damaged, withoutId } = found
  return {
    path,
    header,
    entries,
    ...(leaf === undefined ? {} : { leaf }),
    ...(newest === undefined ? {} : { newest }),
    ...(future === undefined ? {} : { future }),
    mtimeMs: stamp.mtimeMs,
    damaged,
    withoutId,
  }
}

function parse(line: Buffer): Fields | undefined {
  try {
    const value: unknown = JSON.parse(line.toString('utf8'))
    return isFields(value) ? value : undefined
  } catch {
    return undefined
  }
}

function userText(message: unknown): string | undefined {
  if (!isFields(message) || message.role !== 'user') return undefined
  const { content } = message
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return undefined
  return (content as unknown[]).flatMap((part) => (isFields(part) && part.type === 'text' && typeof part.text === 'string' ? [part.text] : [])).join('\n')
}
