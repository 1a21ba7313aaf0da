import { closeSync, readSync } from 'node:fs'
import { openPlain, readLineAt } from '../../fs/blocks.js'
import { isFields, textOf } from '../../model/fields.js'
import type { LogFile } from './log-places.js'
import { splitFrames, type Unpacker } from './zstd.js'

/** The first frame holds the header line alone (section 5.1). */
const headBytes = 256 * 1024

/** The header of a log, which says where its session was started. Times are milliseconds since 1970. */
export interface LogHead {
  readonly cwd?: string
  readonly createdAt?: number
  readonly parentSession?: string
  /** How many events of the parent it begins with. */
  readonly seedLength?: number
}

/** Reads the header of a log alone; an empty one when it cannot be read, which reading all of it reports. */
export function readLogHead(file: LogFile, unpacker: Unpacker): LogHead {
  try {
    const value: unknown = JSON.parse((file.packed ? firstFrame(file.path, unpacker) : readLineAt(file.path, 0)).toString('utf8'))
    if (!isFields(value) || value.type !== 'session') return {}
    const [cwd, parentSession] = [textOf(value.cwd), textOf(value.parentSession)]
    return {
      ...(cwd === undefined ? {} : { cwd }),
      ...(parentSession === undefined ? {} : { parentSession }),
      ...(typeof value.createdAt === 'number' ? { createdAt: value.createdAt } : {}),
      ...(typeof value.seedLength === 'number' ? { seedLength: value.seedLength } : {}),
    }
  } catch {
    return {}
  }
}

function firstFrame(path: string, unpacker: Unpacker): Buffer {
  const fd = openPlain(path)
  try {
    const bytes = Buffer.alloc(headBytes)
    const { frames } = splitFrames(bytes.subarray(0, readSync(fd, bytes, 0, headBytes, 0)))
    const line = Buffer.from(unpacker.unpack(frames[0] ?? Buffer.alloc(0)))
    const feed = line.indexOf(0x0a)
    return feed === -1 ? line : line.subarray(0, feed)
  } finally {
    closeSync(fd)
  }
}
