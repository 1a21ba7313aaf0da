import type { State, StateRecord, Snapshot } from '../formats/pi-candy-undo/state.js'
import { bytesOf, type Seen } from '../formats/pi-candy-undo/recorded.js'
import { sameStamp, type Stamp } from './look.js'

/** A clock of a file system may be as coarse as this: what was written so shortly before a look may be written again unseen. Milliseconds. */
const settleMs = 2_000

/** The newest record of every tracked path: that of the newest snapshot which has one, else the original (formats/pi-candy-undo section 4). */
export function newestRecords({ snapshots, originals, trackedFiles }: State): Map<string, StateRecord> {
  const newest = new Map<string, StateRecord>()
  let left = new Set(trackedFiles)
  for (let index = snapshots.length - 1; index >= 0 && left.size > 0; index -= 1) {
    const files = snapshots[index]?.files
    const missing = new Set<string>()
    for (const path of left) {
      const record = files?.get(path)
      if (record === undefined) missing.add(path)
      else newest.set(path, record)
    }
    left = missing
  }
  for (const path of left) {
    const record = originals.get(path)
    if (record !== undefined) newest.set(path, record)
  }
  return newest
}

/** A record that says that there was no file. */
export function absentRecord(version: number, time: string): StateRecord {
  return { backupFileName: null, version, backupTime: time }
}

/**
 * A record of something whose bytes nobody has. It names a backup that is never made: the plugin then leaves the file alone and
 * says that it failed, where a missing record would send it to the original.
 */
export function gapRecord(name: string, version: number, time: string, reason: string): StateRecord {
  return { backupFileName: name, version, backupTime: time, from: { gap: reason } }
}

export function fileRecord(name: string, version: number, time: string, bytes: { readonly sha256: string; readonly size: number; readonly mode: number }): StateRecord {
  return { backupFileName: name, version, backupTime: time, from: { ...bytes } }
}

/** True for a record that says that nobody can tell, for this reason. */
export function isGap(record: StateRecord, reason?: string): boolean {
  const { gap } = bytesOf(record)
  return gap !== undefined && (reason === undefined || gap === reason)
}

/** True when a file has surely not been written to since its record was made: then it need not be read. */
export function isUntouched(record: StateRecord, seen: Seen | undefined, stamp: Stamp): boolean {
  return seen?.version === record.version && sameStamp(seen, stamp) && seen.at - stamp.ctimeMs > settleMs
}

/** What a file was when its record was made or found true. */
export function seenAs(record: StateRecord, stamp: Stamp, at: number): Seen {
  const { ino, size, mtimeMs, ctimeMs, mode } = stamp
  return { version: record.version, ino, size, mtimeMs, ctimeMs, mode, at }
}

/**
 * True when a rewind to this snapshot gives every tracked path its newest record: then a message at which nothing changed may
 * mean it.
 */
export function standsFor(snapshot: Snapshot, { originals, trackedFiles }: State, newest: ReadonlyMap<string, StateRecord>): boolean {
  if (snapshot.kind !== 'operation') return false
  return trackedFiles.every((path) => {
    const own = snapshot.files.get(path) ?? originals.get(path)
    const last = newest.get(path)
    return own === last || (own?.backupFileName === last?.backupFileName && own?.version === last?.version)
  })
}
