import { isFollowed, type BackupRecord } from '../../model/backup.js'
import { isFields, textOf, type Fields } from '../../model/fields.js'
import type { HistoryEvent, SnapshotEvent } from '../../model/history.js'
import { isBackupName, parseBackupName } from '../../model/names.js'
import type { Writable } from '../../model/writable.js'

/** Where a line stands: which transcript of the session, and the byte offset of its first byte. */
export interface LinePlace {
  readonly source: number
  readonly offset: number
}

/** What a parsed line is to the history: an event, something odd, a newer kind of line, or nothing. */
export type HistoryLine =
  | { readonly kind: 'event'; readonly event: HistoryEvent; readonly maker: string | undefined }
  | { readonly kind: 'odd'; readonly message: string }
  | { readonly kind: 'newer'; readonly type: string }
  | { readonly kind: 'other' }

const other: HistoryLine = { kind: 'other' }

/** Reads one parsed line by formats/claude-code section 2. Unknown fields are left alone (R45, R116). */
export function readHistoryLine(value: unknown, place: LinePlace): HistoryLine {
  if (!isFields(value)) return other
  if (value.type === 'file-history-snapshot') return readSnapshot(value, place)
  if (value.type === 'file-history-delta') return readDelta(value, place)
  const type = textOf(value.type)
  return type?.startsWith('file-history-') === true ? { kind: 'newer', type } : other
}

/** How many records of an event name a backup by a name of known shape. */
export function countFollowed(event: HistoryEvent): number {
  if (event.kind === 'salvage') return event.names.length
  const records = event.kind === 'delta' ? [event.record] : event.files.values()
  let count = 0
  for (const record of records) if (isFollowed(record)) count += 1
  return count
}

function readSnapshot(line: Fields, place: LinePlace): HistoryLine {
  const maker = textOf(line.messageId)
  const snapshot = line.snapshot
  if (!isFields(snapshot)) return { kind: 'odd', message: 'a snapshot line has no snapshot' }
  // The inner id names the checkpoint; the outer one may be the message that made the edit (R37).
  const checkpoint = textOf(snapshot.messageId) ?? maker
  if (checkpoint === undefined) return { kind: 'odd', message: 'a snapshot line names no message' }
  const tracked = snapshot.trackedFileBackups
  if (!isFields(tracked)) return { kind: 'odd', message: `the snapshot of checkpoint ${checkpoint} lists no tracked files` }
  const files = new Map<string, BackupRecord>()
  for (const path of Object.keys(tracked)) files.set(path, readRecord(tracked[path]))
  const { source, offset } = place
  const event: Writable<SnapshotEvent> = { kind: 'snapshot', checkpoint, update: line.isSnapshotUpdate === true, files, source, offset }
  const time = textOf(snapshot.timestamp)
  if (time !== undefined) event.time = time
  return { kind: 'event', maker, event }
}

function readDelta(line: Fields, place: LinePlace): HistoryLine {
  const maker = textOf(line.messageId)
  const checkpoint = textOf(line.snapshotMessageId)
  const path = textOf(line.trackingPath)
  if (checkpoint === undefined || path === undefined) return { kind: 'odd', message: 'a delta line names no checkpoint or no path' }
  return { kind: 'event', maker, event: { kind: 'delta', checkpoint, path, record: readRecord(line.backup), source: place.source, offset: place.offset } }
}

function readRecord(value: unknown): BackupRecord {
  if (!isFields(value)) return { name: null, version: 0, unusable: 'the record is empty' }
  const name = value.backupFileName
  const record: Writable<BackupRecord> = { name: typeof name === 'string' ? name : null, version: readVersion(value.version, name) }
  const time = textOf(value.backupTime)
  const parent = textOf(value.realParentDir)
  if (time !== undefined) record.time = time
  if (parent !== undefined) record.parent = parent
  if (name !== null && typeof name !== 'string') record.unusable = 'the record names no backup'
  else if (name !== null && !isBackupName(name)) record.unusable = `${JSON.stringify(name)} is not a backup name`
  return record
}

function readVersion(value: unknown, name: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value
  return (typeof name === 'string' ? parseBackupName(name)?.version : undefined) ?? 0
}
