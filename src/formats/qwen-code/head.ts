import { closeSync, readSync } from 'node:fs'
import { openPlain } from '../../fs/blocks.js'
import { isFields } from '../../model/fields.js'
import type { SessionHead } from '../format.js'
import { balancedObjects } from './record-bytes.js'
import type { TranscriptFile } from './transcripts.js'

/** Bytes read of a transcript in search of its first record; a first prompt may be long. */
const headSizes = [32 * 1024, 4 * 1024 * 1024, 32 * 1024 * 1024]
const worktree = /^(.+)\/\.qwen\/worktrees\/[^/]+(?:\/|$)/

/** What the first record of each transcript says: that decides which project a session belongs to (section 1). */
export function readHead(files: readonly TranscriptFile[]): SessionHead {
  const folders = new Set<string>()
  let firstRecorded: number | undefined
  let forkedFrom: string | undefined
  for (const { path } of files) {
    const record = firstRecord(path)
    if (record === undefined) continue
    if (typeof record.cwd === 'string') folders.add(worktree.exec(record.cwd)?.[1] ?? record.cwd)
    const time = typeof record.timestamp === 'string' ? Date.parse(record.timestamp) : Number.NaN
    if (!Number.isNaN(time) && (firstRecorded === undefined || time < firstRecorded)) firstRecorded = time
    if (isFields(record.forkedFrom) && typeof record.forkedFrom.sessionId === 'string') forkedFrom ??= record.forkedFrom.sessionId
  }
  return { folders: [...folders], ...(firstRecorded === undefined ? {} : { firstRecorded }), ...(forkedFrom === undefined ? {} : { forkedFrom }) }
}

/** The first object of a transcript that says where it was made. A transcript that cannot be read says nothing. */
function firstRecord(path: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const fd = openPlain(path)
    try {
      for (const size of headSizes) {
        const bytes = Buffer.alloc(size)
        const count = readSync(fd, bytes, 0, size, 0)
        for (const line of linesOf(bytes.subarray(0, count))) {
          const found = balancedObjects(line).find(({ value }) => typeof value.cwd === 'string')
          if (found !== undefined) return found.value
        }
        if (count < size) return undefined
      }
      return undefined
    } finally {
      closeSync(fd)
    }
  } catch {
    return undefined
  }
}

function* linesOf(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start < bytes.length; ) {
    const feed = bytes.indexOf(0x0a, start)
    const end = feed === -1 ? bytes.length : feed
    yield bytes.subarray(start, end)
    start = end + 1
  }
}
