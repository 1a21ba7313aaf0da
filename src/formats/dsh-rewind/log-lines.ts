import { readPlain } from '../../fs/blocks.js'
import { frameChecksum } from './xxh64.js'
import type { LogFile } from './log-places.js'
import { isTooLarge, splitFrames, storedChecksum, type Unpacker } from './zstd.js'

/** A log of more bytes than this, packed or not, is not repaired: it is held in memory. */
const limit = 128 * 1024 * 1024
const tooLarge = 'it is too large to be held in memory'

/** The whole lines of a log without their line feeds, as far as it can be read. */
export interface LogLines {
  readonly lines: readonly Buffer[]
  /** Why there may be more of it, in words. */
  readonly trouble?: string
}

/**
 * Reads a log line by line. A checksum is compared whatever the decoder does: what was damaged must not be packed anew.
 * Throws as `readPlain` does.
 */
export function readLogLines(file: LogFile, unpacker: Unpacker): LogLines {
  const bytes = readPlain(file.path, limit)
  if (bytes === undefined) return { lines: [], trouble: tooLarge }
  const { content, trouble } = file.packed ? unpacked(bytes, unpacker) : { content: bytes }
  const end = content.lastIndexOf(0x0a) + 1
  const why = trouble ?? (end === content.length ? undefined : 'its last line is cut')
  return { lines: linesIn(content.subarray(0, end)), ...(why === undefined ? {} : { trouble: why }) }
}

function unpacked(bytes: Buffer, unpacker: Unpacker): { readonly content: Buffer; readonly trouble?: string } {
  const { frames, rest } = splitFrames(bytes)
  const parts: Buffer[] = []
  let size = 0
  let trouble = rest > 0 || frames.length === 0 ? 'its last frame is torn' : undefined
  for (const frame of frames) {
    const part = isTooLarge(frame) ? undefined : partOf(frame, unpacker)
    size += part?.content.length ?? 0
    if (size > limit) return { content: Buffer.concat(parts), trouble: tooLarge }
    if (part?.damaged !== false) trouble = 'a frame of it is damaged, or too large'
    if (part !== undefined) parts.push(part.content)
  }
  return { content: Buffer.concat(parts), ...(trouble === undefined ? {} : { trouble }) }
}

function partOf(frame: Buffer, unpacker: Unpacker): { readonly content: Buffer; readonly damaged: boolean } | undefined {
  try {
    const part = unpacker.unpack(frame)
    const content = Buffer.from(part.buffer, part.byteOffset, part.byteLength)
    const checksum = unpacker.checks ? undefined : storedChecksum(frame)
    return { content, damaged: checksum !== undefined && checksum !== frameChecksum(content) }
  } catch {
    return undefined
  }
}

function linesIn(content: Buffer): Buffer[] {
  const lines: Buffer[] = []
  let at = 0
  for (let feed = content.indexOf(0x0a); feed !== -1; feed = content.indexOf(0x0a, at)) {
    lines.push(content.subarray(at, feed))
    at = feed + 1
  }
  return lines
}
