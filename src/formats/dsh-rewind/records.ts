import { join } from 'node:path'
import { NotRegularError, readPlain } from '../../fs/blocks.js'
import { listFolder } from '../../fs/folder.js'
import { systemErrorCode } from '../../model/errors.js'
import { readSmallFile } from '../../fs/read-small.js'
import { formatMarker, groupNumber, isRecordName, storeMarker, storeVersion } from './layout.js'
import { parseRecord, type StoredRecord } from './record.js'

/** A record of more bytes than this is not read: text records hold a whole file, escaped. */
const recordLimit = 256 * 1024 * 1024
const markerLimit = 4096

/** What a marker file says (section 1.7). */
export type Marker =
  | { readonly kind: 'none' }
  | { readonly kind: 'number'; readonly value: number }
  /** It stands there and is not understood. */
  | { readonly kind: 'odd'; readonly reason: string }

/** A path of a session that could not be read, relative to the session. */
interface Unread {
  readonly path: string
  /** A system error code, or what stands there in words. */
  readonly reason: string
  readonly regular: boolean
}

/** Every record of a session, by group in rising order; in a group by name. */
export interface SessionRecords {
  readonly store: Marker
  readonly format: Marker
  /** True when the marker says a newer store version: then nothing else was read. */
  readonly newer: boolean
  readonly groups: ReadonlyMap<number, readonly StoredRecord[]>
  readonly unread: readonly Unread[]
}

/** Reads the markers and all records of a session. Follows no link; opens nothing but plain files. */
export function readRecords(folder: string): SessionRecords {
  const store = readMarker(join(folder, storeMarker))
  const format = readMarker(join(folder, formatMarker))
  const newer = store.kind === 'number' && store.value > storeVersion
  const unread: Unread[] = store.kind === 'odd' ? [{ path: storeMarker, reason: store.reason, regular: true }] : []
  const groups = new Map<number, readonly StoredRecord[]>()
  if (newer || store.kind === 'odd') return { store, format, newer, groups, unread }
  for (const group of groupsIn(folder, unread)) groups.set(group, readGroup(folder, group, unread))
  return { store, format, newer, groups, unread }
}

/** One record again, from the disk. @throws system errors, `NotRegularError` */
export function readRecordBytes(folder: string, group: number, name: string): Buffer | undefined {
  return readPlain(join(folder, String(group), name), recordLimit)
}

/** Reads `store` or `format`: a number after trimming; anything else counts as no marker, an empty file as 0 (section 1.7). */
export function readMarker(path: string): Marker {
  const file = readSmallFile(path, { follow: false, limit: markerLimit })
  if (file.kind === 'missing') return { kind: 'none' }
  if (file.kind === 'unusable') return { kind: 'odd', reason: file.reason }
  const value = Number(file.bytes.toString('utf8').trim())
  return Number.isFinite(value) ? { kind: 'number', value } : { kind: 'none' }
}

/** Numbers of the anchor groups of a session, in rising order. */
function groupsIn(folder: string, unread: Unread[]): number[] {
  const { entries, error } = listFolder(folder)
  if (error !== undefined) unread.push({ path: '', reason: error, regular: true })
  const groups: number[] = []
  for (const entry of entries) {
    const group = groupNumber(entry.name)
    if (group === undefined) continue
    if (entry.isDirectory()) groups.push(group)
    else unread.push({ path: entry.name, reason: 'it is no folder', regular: false })
  }
  return groups.sort((a, b) => a - b)
}

function readGroup(folder: string, group: number, unread: Unread[]): StoredRecord[] {
  const { entries, error } = listFolder(join(folder, String(group)))
  if (error !== undefined) unread.push({ path: String(group), reason: error, regular: true })
  const records: StoredRecord[] = []
  for (const { name } of entries) {
    if (!isRecordName(name)) continue
    try {
      const bytes = readRecordBytes(folder, group, name)
      if (bytes === undefined) unread.push({ path: `${String(group)}/${name}`, reason: 'it is too large for a record', regular: true })
      else records.push(parseRecord(group, name, bytes))
    } catch (failure) {
      if (failure instanceof NotRegularError) unread.push({ path: `${String(group)}/${name}`, reason: failure.found, regular: false })
      else unread.push({ path: `${String(group)}/${name}`, reason: systemErrorCode(failure) ?? 'UNKNOWN', regular: true })
    }
  }
  return records
}
