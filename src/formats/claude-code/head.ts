import { closeSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { openPlain } from '../../fs/blocks.js'
import { listFolder } from '../../fs/folder.js'
import { membersOf, type SessionRef } from '../../model/session.js'
import type { SessionHead } from '../format.js'
import { isFields, textOf } from '../../model/fields.js'

const firstBlock = 32 * 1024
const nextBlock = 1024 * 1024
/** A line longer than this many bytes says nothing here. */
const lineLimit = 32 * 1024 * 1024
const lineFeed = 0x0a
const nothing = Buffer.alloc(0)
/** One block for all readings of this thread. */
let shared: Buffer | undefined
const folderNeedle = Buffer.from('"cwd":"')
const timeNeedle = Buffer.from('"timestamp":"')

/**
 * The folders a session was started in, by the first line of each transcript that records one (R25), and its first time.
 * Of a session without a transcript its subagents say it. A transcript that cannot be read says nothing.
 */
export function readHead(root: string, session: SessionRef): SessionHead {
  const folders = new Set<string>()
  let firstRecorded: number | undefined
  const transcripts = membersOf(session, 'transcript').map((member) => member.path)
  for (const path of transcripts.length > 0 ? transcripts : agentTranscripts(root, session)) {
    const head = readFirstLines(join(root, path))
    if (head.folder !== undefined) folders.add(head.folder)
    if (head.time !== undefined && (firstRecorded === undefined || head.time < firstRecorded)) firstRecorded = head.time
  }
  return { folders: [...folders], ...(firstRecorded === undefined ? {} : { firstRecorded }) }
}

function agentTranscripts(root: string, session: SessionRef): string[] {
  const flat = membersOf(session, 'agent').map((member) => member.path)
  const nested = membersOf(session, 'companion').flatMap(({ path }) => {
    const folder = `${path}/subagents`
    return listFolder(join(root, folder)).entries.filter((entry) => entry.isFile() && entry.name.endsWith('.jsonl')).map((entry) => `${folder}/${entry.name}`)
  })
  return [...flat, ...nested]
}

interface FirstLines {
  folder: string | undefined
  time: number | undefined
}

function readFirstLines(path: string): FirstLines {
  const found: FirstLines = { folder: undefined, time: undefined }
  let fd: number
  try {
    fd = openPlain(path)
  } catch {
    return found
  }
  try {
    let rest = nothing
    for (let size = firstBlock; found.folder === undefined; size = nextBlock) {
      const block = (shared ??= Buffer.allocUnsafeSlow(nextBlock))
      const count = readSync(fd, block, 0, size, null)
      if (count === 0) {
        takeLine(rest, found)
        break
      }
      const bytes = rest.length === 0 ? block.subarray(0, count) : Buffer.concat([rest, block.subarray(0, count)])
      const end = bytes.lastIndexOf(lineFeed) + 1
      takeLines(bytes.subarray(0, end), found)
      // A copy, because the block is used again.
      rest = end === bytes.length || bytes.length - end > lineLimit ? nothing : Buffer.from(bytes.subarray(end))
    }
    return found
  } catch {
    return found
  } finally {
    closeSync(fd)
  }
}

function takeLines(bytes: Buffer, found: FirstLines): void {
  for (let start = 0; start < bytes.length && found.folder === undefined; ) {
    const end = bytes.indexOf(lineFeed, start)
    takeLine(bytes.subarray(start, end), found)
    start = end + 1
  }
}

function takeLine(line: Buffer, found: FirstLines): void {
  if (!line.includes(folderNeedle) && (found.time !== undefined || !line.includes(timeNeedle))) return
  let value: unknown
  try {
    const text = line.toString('utf8')
    value = JSON.parse(text.slice(Math.max(0, text.indexOf('{'))))
  } catch {
    return
  }
  if (!isFields(value)) return
  found.folder ??= textOf(value.cwd)
  const time = Date.parse(textOf(value.timestamp) ?? '')
  if (!Number.isNaN(time)) found.time ??= time
}
