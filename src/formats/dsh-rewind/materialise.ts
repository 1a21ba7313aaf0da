import { join } from 'node:path'
import type { NewFile } from '../format.js'
import { inGroup, parseRef, sideFileOf, storeVersion } from './layout.js'
import { Links } from './links.js'
import { inlineBytesOf, type ContentRecord, type LinkRecord } from './record.js'
import { readRecordBytes, type SessionRecords } from './records.js'
import { readPlain } from '../../fs/blocks.js'

/** A side file of more bytes than this is not copied into another group. */
const contentLimit = 2 ** 31

/** What keeping some groups of a session takes. */
export interface Materialised {
  /** Files to write, relative to the session, each side file before its record. */
  readonly files: readonly NewFile[]
  /** Groups that must stay after all: a link into them cannot be followed or read. */
  readonly needed: ReadonlySet<number>
}

/**
 * Turns the links of kept groups into dropped ones into records of their own (section 2.6): same file name, call id and time,
 * the pin kept, no mode. A link that leads nowhere is left as it is, and keeps the group that it names. A session without a
 * store marker stays what its builds can read: its links become text records.
 */
export function materialise(folder: string, records: SessionRecords, isKept: (group: number) => boolean): Materialised {
  const links = new Links(records)
  const files: NewFile[] = []
  const needed = new Set<number>()
  for (const [group, ofGroup] of records.groups) {
    if (!isKept(group)) continue
    for (const record of ofGroup) {
      if (record.kind !== 'link') continue
      const place = parseRef(record.ref)
      if (place === undefined || isKept(place.group) || !records.groups.has(place.group)) continue
      const followed = links.follow(record)
      const made = 'record' in followed ? newFilesFor(folder, records, record, followed.record) : undefined
      if (made === undefined) needed.add(place.group)
      else files.push(...made)
    }
  }
  return { files, needed }
}

/** `undefined` when the content is not there to be copied. */
function newFilesFor(folder: string, records: SessionRecords, link: LinkRecord, target: ContentRecord): NewFile[] | undefined {
  try {
    const inMarkedStore = records.store.kind === 'number' && records.store.value === storeVersion
    return inMarkedStore || link.generation === 2 || target.content.kind === 'side' ? byteFiles(folder, link, target) : textFiles(folder, link, target)
  } catch {
    return undefined
  }
}

function byteFiles(folder: string, link: LinkRecord, target: ContentRecord): NewFile[] | undefined {
  const bytes = contentOf(folder, target)
  if (bytes === undefined) return undefined
  const blob = bytes === null ? null : sideFileOf(link.name)
  const record = {
    store: storeVersion,
    callId: link.callId,
    file: link.file,
    time: link.time,
    ...(link.parent === undefined ? {} : { parent: link.parent }),
    ...(target.lossy ? { lossy: true } : {}),
    blob,
    size: bytes?.length ?? 0,
  }
  const side: NewFile[] = bytes === null || blob === null ? [] : [{ path: inGroup(link.group, blob), bytes, mode: 0o644 }]
  return [...side, recordFile(link, record)]
}

function textFiles(folder: string, link: LinkRecord, target: ContentRecord): NewFile[] | undefined {
  const before = target.content.kind === 'absent' ? null : textOf(folder, target)
  if (before === undefined) return undefined
  return [recordFile(link, { callId: link.callId, anchorSeq: link.anchor, path: link.file, before, time: link.time })]
}

function recordFile({ group, name }: LinkRecord, record: unknown): NewFile {
  return { path: inGroup(group, name), bytes: Buffer.from(JSON.stringify(record), 'utf8') }
}

/** The bytes of a record; `null` where the file did not exist, `undefined` when they are not whole. */
function contentOf(folder: string, { group, name, content }: ContentRecord): Buffer | null | undefined {
  if (content.kind === 'absent') return null
  if (content.kind === 'side') {
    const bytes = readPlain(join(folder, String(group), content.name), contentLimit)
    return bytes?.length === content.size ? bytes : undefined
  }
  const record = readRecordBytes(folder, group, name)
  return record === undefined ? undefined : inlineBytesOf(record)
}

/** The text of a text record exactly as it stands there. Bytes that are no text have no such form. */
function textOf(folder: string, { group, name }: ContentRecord): string | undefined {
  const bytes = readRecordBytes(folder, group, name)
  const value: unknown = bytes === undefined ? undefined : JSON.parse(bytes.toString('utf8'))
  const before: unknown = typeof value === 'object' && value !== null && 'before' in value ? value.before : undefined
  return typeof before === 'string' ? before : undefined
}
