import * as zlib from 'node:zlib'
import { decompress } from 'fzstd'

/** A frame of more bytes than this, packed or not, is not unpacked. */
const frameLimit = 512 * 1024 * 1024
const magic = 0xfd2fb528

/** Unpacks one frame. Throws when it is damaged, as far as it can tell. */
export interface Unpacker {
  unpack(frame: Buffer): Uint8Array
  /** Whether the checksum of a frame is compared with its content. */
  readonly checks: boolean
}

/** The decoder of this Node where it has one, which compares checksums; else the library, which does not. */
export function findUnpacker(library: object = zlib): Unpacker {
  const own: unknown = 'zstdDecompressSync' in library ? library.zstdDecompressSync : undefined
  if (typeof own !== 'function') return { unpack: (frame) => decompress(frame), checks: false }
  const unpackOwn = own as (bytes: Uint8Array, options: object) => Uint8Array
  return { unpack: (frame) => unpackOwn(frame, { maxOutputLength: frameLimit }), checks: true }
}

/** What a file of frames holds. */
export interface Frames {
  readonly frames: readonly Buffer[]
  /** Bytes at the end that are no whole frame: a torn last one (formats/dsh-rewind section 5.1), or no frame at all. */
  readonly rest: number
}

/**
 * Splits a file into its frames by their own lengths. Searching for the magic number would find it in data too. Frames that
 * are skipped by rule are left out.
 */
export function splitFrames(bytes: Buffer): Frames {
  const frames: Buffer[] = []
  let at = 0
  while (at < bytes.length) {
    const end = frameEnd(bytes, at)
    if (end === undefined || end > bytes.length) break
    if (bytes.readUInt32LE(at) === magic) frames.push(bytes.subarray(at, end))
    at = end
  }
  return { frames, rest: bytes.length - at }
}

/** True when the frame says that its content is larger than what is unpacked. */
export function isTooLarge(frame: Buffer): boolean {
  return frame.length > frameLimit || (contentSize(frame) ?? 0) > frameLimit
}

/** The checksum that a whole frame ends with, if it has one. */
export function storedChecksum(frame: Buffer): number | undefined {
  return ((frame[4] ?? 0) & 4) === 0 ? undefined : frame.readUInt32LE(frame.length - 4)
}

/** Where the frame that begins at `start` ends; `undefined` when no whole frame begins there. */
function frameEnd(bytes: Buffer, start: number): number | undefined {
  if (bytes.length - start < 8) return undefined
  const word = bytes.readUInt32LE(start)
  if ((word & 0xfffffff0) >>> 0 === 0x184d2a50) return start + 8 + bytes.readUInt32LE(start + 4)
  if (word !== magic) return undefined
  const descriptor = bytes[start + 4] ?? 0
  let at = start + headerSize(descriptor)
  for (;;) {
    if (at + 3 > bytes.length) return undefined
    const header = bytes.readUIntLE(at, 3)
    const type = (header >> 1) & 3
    if (type === 3) return undefined
    at += 3 + (type === 1 ? 1 : header >> 3)
    if ((header & 1) === 1) return at + ((descriptor & 4) === 0 ? 0 : 4)
  }
}

/** Bytes from the magic number to the first block. */
function headerSize(descriptor: number): number {
  const single = (descriptor & 0x20) !== 0
  return 4 + 1 + (single ? 0 : 1) + dictionarySize(descriptor) + contentSizeSize(descriptor)
}

function dictionarySize(descriptor: number): number {
  return [0, 1, 2, 4][descriptor & 3] ?? 0
}

function contentSizeSize(descriptor: number): number {
  const flag = descriptor >> 6
  if (flag === 0) return (descriptor & 0x20) === 0 ? 0 : 1
  return 1 << flag
}

function contentSize(frame: Buffer): number | undefined {
  const descriptor = frame[4] ?? 0
  const size = contentSizeSize(descriptor)
  const at = headerSize(descriptor) - size
  if (size === 0 || at + size > frame.length) return undefined
  if (size === 8) return Number(frame.readBigUInt64LE(at))
  return frame.readUIntLE(at, size) + (size === 2 ? 256 : 0)
}
