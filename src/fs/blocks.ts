import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, type Stats } from 'node:fs'

/** Size of one read in bytes: large enough to amortise the call, small enough to stay in the cache. */
const blockSize = 512 * 1024
/** A line longer than this many bytes is handed over in pieces. */
const lineLimit = 256 * 1024 * 1024

/** Receives a file as whole lines, block by block. The buffer is reused: copy what must outlive the call. */
export interface LineSink {
  /** `buffer[0..length)` holds whole lines; `offset` is where they begin in the file; only the last may lack its line feed. */
  lines(buffer: Buffer, length: number, offset: number, last: boolean): void
  /** A piece of a line that is too long to hold; pieces of one line overlap by 64 bytes. */
  oversized(buffer: Buffer, length: number, offset: number): void
}

/** Thrown when what stands at a path is not a plain file; nothing was opened for reading content. */
export class NotRegularError extends Error {
  readonly code = 'NOT_REGULAR'
  constructor(
    readonly path: string,
    readonly found: string,
  ) {
    super(`${path} is ${found}, not a plain file`)
  }
}

/** How a file looked before and after it was read. */
export interface ReadStamp {
  readonly inode: number
  readonly size: number
  readonly mtimeMs: number
  /** True when size, time or inode at the path differed after the reading: what was read may be torn. */
  readonly changed: boolean
}

/**
 * Reads a file by bytes, split at 0x0A only (R80), with memory that does not grow with the file (R78, R83). Never
 * follows a link and never waits on a pipe. Throws `NotRegularError`, or the system error of open, stat or read.
 */
export function readLines(path: string, sink: LineSink): ReadStamp {
  const { fd, stats: before } = openStated(path)
  try {
    readAll(fd, before.size, sink)
    // What stands at the path now is the file that was read, unless its inode differs: one look tells both.
    const after = lstatSync(path, { throwIfNoEntry: false })
    const changed =
      after?.ino !== before.ino || after.dev !== before.dev || after.size !== before.size || after.mtimeMs !== before.mtimeMs
    return { inode: before.ino, size: before.size, mtimeMs: Math.floor(before.mtimeMs), changed }
  } finally {
    closeSync(fd)
  }
}

/** The bytes of the one line that begins at `offset`, without its line feed. Throws as `readLines` does. */
export function readLineAt(path: string, offset: number): Buffer {
  const fd = openPlain(path)
  try {
    const parts: Buffer[] = []
    let at = offset
    for (;;) {
      const part = Buffer.allocUnsafe(64 * 1024)
      const count = readSync(fd, part, 0, part.length, at)
      const feed = part.subarray(0, count).indexOf(0x0a)
      parts.push(part.subarray(0, feed === -1 ? count : feed))
      if (count === 0 || feed !== -1) return Buffer.concat(parts)
      at += count
    }
  } finally {
    closeSync(fd)
  }
}

/** All bytes of a plain file; `undefined` when it has more than `limit`. Throws as `readLines` does. */
export function readPlain(path: string, limit: number): Buffer | undefined {
  const fd = openPlain(path)
  try {
    const { size } = fstatSync(fd)
    if (size > limit) return undefined
    const bytes = Buffer.alloc(size)
    let filled = 0
    while (filled < size) {
      const count = readSync(fd, bytes, filled, size - filled, null)
      if (count === 0) break
      filled += count
    }
    return bytes.subarray(0, filled)
  } finally {
    closeSync(fd)
  }
}

/** Opens a plain file for reading; refuses links, pipes, devices and folders without waiting on any of them. */
export function openPlain(path: string): number {
  return openStated(path).fd
}

function openStated(path: string): { readonly fd: number; readonly stats: Stats } {
  const found = lstatSync(path)
  if (!found.isFile()) throw new NotRegularError(path, nodeWord(found))
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  const stats = fstatSync(fd)
  if (stats.isFile()) return { fd, stats }
  closeSync(fd)
  throw new NotRegularError(path, 'no longer a plain file')
}

/** What a directory entry or a stat is, in words. */
export function nodeWord(node: {
  isSymbolicLink(): boolean
  isDirectory(): boolean
  isFIFO(): boolean
  isSocket(): boolean
  isFile(): boolean
}): string {
  if (node.isSymbolicLink()) return 'a symbolic link'
  if (node.isDirectory()) return 'a folder'
  if (node.isFIFO()) return 'a pipe'
  if (node.isSocket()) return 'a socket'
  if (node.isFile()) return 'a file'
  return 'a device'
}

/** One block for all readings of this thread: transcripts are read one after the other. */
let shared: Buffer | undefined

function readAll(fd: number, size: number, sink: LineSink): void {
  const small = size < blockSize
  let buffer = (shared ??= Buffer.allocUnsafeSlow(blockSize))
  let filled = 0
  let offset = 0
  let inOversized = false
  let ended = false
  for (;;) {
    const room = small && filled === 0 ? Math.min(buffer.length, size + 1) : buffer.length - filled
    const count: number = ended ? 0 : readSync(fd, buffer, filled, room, null)
    if (count === 0) break
    // One byte more than the file holds was asked for: an answer of exactly its size is all of it.
    ended = small && filled === size
    filled += count
    const cut = lastLineFeed(buffer, filled) + 1
    if (cut === 0) {
      if (filled < buffer.length) continue
      if (buffer.length >= lineLimit) {
        sink.oversized(buffer, filled, offset)
        inOversized = true
        buffer.copyWithin(0, filled - 64, filled)
        offset += filled - 64
        filled = 64
      } else {
        const larger = Buffer.allocUnsafeSlow(buffer.length * 2)
        buffer.copy(larger, 0, 0, filled)
        buffer = larger
      }
      continue
    }
    const start = inOversized ? endOversized(buffer, filled, offset, sink) : 0
    inOversized = false
    if (cut > start) {
      const lines = start === 0 ? buffer : buffer.subarray(start)
      sink.lines(lines, cut - start, offset + start, false)
    }
    buffer.copyWithin(0, cut, filled)
    filled -= cut
    offset += cut
    if (buffer.length > blockSize && filled < blockSize) {
      buffer.copy(shared, 0, 0, filled)
      buffer = shared
    }
  }
  if (filled === 0) return
  if (inOversized) sink.oversized(buffer, filled, offset)
  else sink.lines(buffer, filled, offset, true)
}

function lastLineFeed(buffer: Buffer, filled: number): number {
  return buffer.subarray(0, filled).lastIndexOf(0x0a)
}

/** Hands over the end of an oversized line; returns where the next line begins. */
function endOversized(buffer: Buffer, filled: number, offset: number, sink: LineSink): number {
  const end = buffer.subarray(0, filled).indexOf(0x0a) + 1
  sink.oversized(buffer, end, offset)
  return end
}
