import * as zlib from 'node:zlib'
import { frameChecksum } from './xxh64.js'

/** A frame is closed once it has so many bytes of content. */
const frameSize = 1024 * 1024
/** The largest block that there is. */
const blockSize = 128 * 1024
const magic = Buffer.from('28b52ffd', 'hex')
/** Four bytes of content size and a checksum; a window of 128 KiB. */
const descriptor = 0x84
const window = 0x38

/** Makes one frame of some content, with a checksum. */
export type Packer = (content: Buffer) => Buffer

/** The encoder of this Node where it has one; else frames are stored as they are, which every decoder reads all the same. */
export function findPacker(library: object = zlib): Packer {
  const own: unknown = 'zstdCompressSync' in library ? library.zstdCompressSync : undefined
  if (typeof own !== 'function') return stored
  const pack = own as (bytes: Uint8Array, options: object) => Buffer
  const flag = 'constants' in library ? (library.constants as { ZSTD_c_checksumFlag?: number }).ZSTD_c_checksumFlag : undefined
  // The number is part of the library's stable interface.
  return (content) => pack(content, { params: { [flag ?? 201]: 1 } })
}

/** The frames of a log (section 5.1): the header line alone, then whole lines; `lines` have no line feeds. */
export function packLog(lines: readonly Buffer[], pack: Packer): Buffer {
  const frames: Buffer[] = []
  let parts: Buffer[] = []
  let size = 0
  const close = (): void => {
    if (parts.length > 0) frames.push(pack(Buffer.concat(parts)))
    parts = []
    size = 0
  }
  for (const [index, line] of lines.entries()) {
    parts.push(line, Buffer.from('\n'))
    size += line.length + 1
    if (index === 0 || size >= frameSize) close()
  }
  close()
  return Buffer.concat(frames)
}

function stored(content: Buffer): Buffer {
  const size = Buffer.alloc(4)
  size.writeUInt32LE(content.length)
  const parts: Buffer[] = [magic, Buffer.from([descriptor, window]), size]
  for (let at = 0; at === 0 || at < content.length; at += blockSize) {
    const block = content.subarray(at, at + blockSize)
    const header = Buffer.alloc(3)
    header.writeUIntLE(block.length * 8 + (at + blockSize >= content.length ? 1 : 0), 0, 3)
    parts.push(header, block)
  }
  const checksum = Buffer.alloc(4)
  checksum.writeUInt32LE(frameChecksum(content))
  return Buffer.concat([...parts, checksum])
}
