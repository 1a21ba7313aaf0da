import { join } from 'node:path'
import { readLines } from '../../fs/blocks.js'
import { textOf, type Fields } from '../../model/fields.js'
import { membersOf, type SessionRef } from '../../model/session.js'
import { afterByteOrderMark, lineFeed } from './line-bytes.js'
import { parseRecord } from '../parse-record.js'

const uuidNeedle = Buffer.from('"uuid":"')

/** One line of the chain of messages. */
export interface ChainLink {
  readonly id: string
  /** What it hangs off; after a compaction the chain begins anew, and the logical parent says what it goes on from. */
  readonly parent: string | undefined
  readonly value: Fields
}

/**
 * Hands over every line of the message chain of a session in file order; side chains and lines that do not parse are left
 * out. A byte order mark and runs of NUL bytes before a line hide nothing (R73, R82). A line that is too long to hold is
 * passed over: what hangs off it begins anew. Throws the system error when a transcript cannot be read.
 */
export function readChain(root: string, session: SessionRef, take: (link: ChainLink) => void): void {
  for (const { path } of membersOf(session, 'transcript')) {
    readLines(join(root, path), {
      lines(buffer, length, offset) {
        const view = buffer.subarray(0, length)
        for (const line of linesOf(offset === 0 ? view.subarray(afterByteOrderMark(view)) : view)) {
          const link = readLink(line)
          if (link !== undefined) take(link)
        }
      },
      oversized() {
        // A line of this size is no prompt.
      },
    })
  }
}

function* linesOf(view: Buffer): Generator<Buffer> {
  let start = 0
  while (start < view.length) {
    const feed = view.indexOf(lineFeed, start)
    const end = feed === -1 ? view.length : feed
    while (start < end && view[start] === 0) start += 1
    if (end > start) yield view.subarray(start, end)
    start = end + 1
  }
}

function readLink(line: Buffer): ChainLink | undefined {
  if (!line.includes(uuidNeedle)) return undefined
  const value = parseRecord(line)
  const id = textOf(value?.uuid)
  if (value === undefined || id === undefined || value.isSidechain === true) return undefined
  return { id, parent: textOf(value.parentUuid) ?? textOf(value.logicalParentUuid), value }
}
