import { posix } from 'node:path'
import type { BackupRecord } from '../../model/backup.js'
import { isFields, textOf, type Fields } from '../../model/fields.js'
import { parseBackupName } from '../../model/names.js'
import type { Writable } from '../../model/writable.js'
import { nameRefusal } from './layout.js'

/** One snapshot of a record. */
export interface Snapshot {
  readonly promptId: string
  /** As recorded (ISO 8601). */
  readonly time: string | undefined
  /** Tracked path, relative to the start folder where it lies in it, to its record. */
  readonly files: ReadonlyMap<string, BackupRecord>
}

/** What a snapshot record says: its snapshots, or why the agent skips the whole of it. */
export type SnapshotRecord = { readonly snapshots: readonly Snapshot[] } | { readonly odd: string }

/** What stands in a record whose `failed` is set: the file could not be backed up, or its backup was missing (section 3). */
export const failedReason = 'the agent could not back the file up, or found its backup missing (failed)'

/**
 * Reads one `file_history_snapshot` record (sections 3 and 4). Unknown fields are left alone. A record in which any
 * snapshot lacks its list of files is skipped whole, as the agent does.
 * @param start folder that the session was started in; absolute keys inside it are shortened
 */
export function readSnapshotRecord(value: Fields, start: string | undefined): SnapshotRecord {
  const list = isFields(value.systemPayload) ? value.systemPayload.snapshots : undefined
  if (!Array.isArray(list)) return { odd: 'a snapshot record has no list of snapshots' }
  const snapshots: Snapshot[] = []
  for (const each of list as unknown[]) {
    if (!isFields(each)) return { odd: 'a snapshot record holds something that is no snapshot' }
    const promptId = textOf(each.promptId)
    if (promptId === undefined) return { odd: 'a snapshot names no prompt' }
    if (!isFields(each.trackedFileBackups)) return { odd: `the snapshot of prompt ${promptId} lists no tracked files; the agent skips the record` }
    const files = new Map<string, BackupRecord>()
    for (const [path, record] of Object.entries(each.trackedFileBackups)) files.set(shortened(path, start), readRecord(record))
    snapshots.push({ promptId, time: textOf(each.timestamp), files })
  }
  return { snapshots }
}

/** The key of a path as the agent has it after loading: relative when it lies in the start folder (section 3). */
export function shortened(path: string, start: string | undefined): string {
  if (start === undefined || !posix.isAbsolute(path)) return path
  const folder = start.endsWith('/') ? start : `${start}/`
  return path.startsWith(folder) && path.length > folder.length ? path.slice(folder.length) : path
}

function readRecord(value: unknown): BackupRecord {
  if (!isFields(value)) return { name: null, version: 0, unusable: 'the record is empty' }
  const name = value.backupFileName
  const record: Writable<BackupRecord> = { name: typeof name === 'string' ? name : null, version: versionOf(value.version, name) }
  const time = textOf(value.backupTime)
  if (time !== undefined) record.time = time
  const refusal = typeof name === 'string' ? nameRefusal(name) : name === null ? undefined : 'the record names no backup'
  if (refusal !== undefined) record.unusable = refusal
  else if (value.failed === true) record.unusable = failedReason
  return record
}

function versionOf(value: unknown, name: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value
  return (typeof name === 'string' ? parseBackupName(name)?.version : undefined) ?? 0
}
