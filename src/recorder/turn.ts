import { closeSync, fstatSync } from 'node:fs'
import { openPlain } from '../fs/blocks.js'
import { digestOpen } from '../fs/content.js'
import { bytesOf, type Recorded, type Seen } from '../formats/pi-candy-undo/recorded.js'
import type { Snapshot, State, StateRecord } from '../formats/pi-candy-undo/state.js'
import type { TrackedTarget } from '../model/tracked-path.js'
import type { Backups } from './backups.js'
import { lookAt, sameStamp, stampOf, type Stamp } from './look.js'
import { absentRecord, fileRecord, gapRecord, isGap, isUntouched, newestRecords, seenAs, standsFor } from './records.js'

/** What a turn is made from. Times in milliseconds since 1970, sizes in bytes. */
export interface TurnContext {
  readonly backups: Backups
  readonly recorded: Recorded
  readonly now: number
  /** The clock of the file system at a moment before the first look. */
  readonly fileClock: number
  readonly limit: number
  readonly everyTurn: boolean
  uuid(): string
  /** What a tracked path stands for. */
  targetOf(key: string): TrackedTarget
}

/** What a turn did to a session. */
export interface Turn {
  readonly state: State
  readonly seen: ReadonlyMap<string, Seen>
  /** The snapshot that the message means. */
  readonly snapshot: Snapshot
  /** False when nothing had changed, so that the message means the snapshot before it. */
  readonly own: boolean
  /** Paths whose state was not the one of their newest record. */
  readonly changed: readonly string[]
  /** Paths of which nobody can tell what they were. */
  readonly gaps: readonly string[]
}

/**
 * What every tracked file is now, as a snapshot for a message that begins. A file that did not change keeps its record, word
 * for word; where none changed, the message becomes another name of the newest snapshot unless `everyTurn`.
 * @throws system errors of writing a backup
 */
export function takeTurn(state: State, message: string, context: TurnContext): Turn {
  const newest = newestRecords(state)
  const before = context.recorded.seen
  const renewed = new Map<string, Seen | undefined>()
  const files = new Map<string, StateRecord>()
  const changed: string[] = []
  const gaps: string[] = []
  for (const path of state.trackedFiles) {
    const last = newest.get(path)
    const taken = capture(path, last, state, context)
    if (taken === undefined) continue
    files.set(path, taken.record)
    if (taken.untouched !== true && (taken.stamp !== undefined || before.has(path))) {
      renewed.set(path, taken.stamp === undefined ? undefined : seenAs(taken.record, taken.stamp, context.fileClock))
    }
    if (taken.record !== last) changed.push(path)
    if (isGap(taken.record)) gaps.push(path)
  }
  const seen = renewed.size === 0 ? before : withRenewed(before, renewed)
  const last = state.snapshots.at(-1)
  if (!context.everyTurn && changed.length === 0 && last !== undefined && standsFor(last, state, newest)) {
    return { state, seen, snapshot: last, own: false, changed, gaps }
  }
  const snapshot: Snapshot = {
    id: context.uuid(),
    key: message,
    kind: 'operation',
    createdAt: new Date(context.now).toISOString(),
    files,
    from: { sequence: context.recorded.sequence + 1 },
  }
  return { state: { ...state, snapshots: [...state.snapshots, snapshot] }, seen, snapshot, own: true, changed, gaps }
}

function withRenewed(before: ReadonlyMap<string, Seen>, renewed: ReadonlyMap<string, Seen | undefined>): Map<string, Seen> {
  const seen = new Map(before)
  for (const [path, each] of renewed) {
    if (each === undefined) seen.delete(path)
    else seen.set(path, each)
  }
  return seen
}

interface Taken {
  readonly record: StateRecord
  /** True when what is known of the file still holds, so that it was not read. */
  readonly untouched?: true
  /** Absent where there is no file to look at again. */
  readonly stamp?: Stamp
}

function capture(key: string, before: StateRecord | undefined, state: State, context: TurnContext): Taken | undefined {
  const target = context.targetOf(key)
  // A path that names nothing here was never touched by us either: it keeps what it has.
  if ('refused' in target) return before === undefined ? undefined : { record: before }
  const { backups, now, limit } = context
  const time = new Date(now).toISOString()
  const gap = (reason: string): Taken => {
    if (before !== undefined && isGap(before, reason)) return { record: before }
    const { name, version } = backups.nextName(key, state)
    return { record: gapRecord(name, version, time, reason) }
  }
  const look = lookAt(target.path, limit)
  if (look.kind === 'left-out' || look.kind === 'too-big') return gap(look.reason)
  if (look.kind === 'absent') {
    if (before?.backupFileName === null && before.unusable === undefined) return { record: before }
    return { record: absentRecord(backups.nextName(key, state).version, time) }
  }
  if (before !== undefined && isUntouched(before, context.recorded.seen.get(key), look.stamp)) return { record: before, stamp: look.stamp, untouched: true }
  if (before !== undefined && isSame(target.path, look.stamp, before, backups)) return { record: before, stamp: look.stamp }
  const result = backups.stage(target.path, key, limit)
  if (result.kind === 'refused') return gap(result.reason)
  const { copy } = result
  const { name, version } = backups.publish(copy, key, state)
  return { record: fileRecord(name, version, time, { sha256: copy.sha256, size: copy.stamp.size, mode: copy.stamp.mode }), stamp: copy.stamp }
}

/** True when a file has the bytes and the mode of a record; it is read where both could be. */
function isSame(path: string, stamp: Stamp, record: StateRecord, backups: Backups): boolean {
  const name = record.backupFileName
  if (name === null || record.unusable !== undefined || isGap(record)) return false
  const { size, mode, sha256 } = bytesOf(record)
  if ((size !== undefined && size !== stamp.size) || (mode !== undefined && mode !== stamp.mode)) return false
  const wanted = sha256 ?? backups.digest(name, stamp.size)
  return wanted !== undefined && digestUnchanged(path, stamp) === wanted && (mode !== undefined || backups.modeOf(name) === stamp.mode)
}

/** sha256 of a file that is what it was when it was looked at, before and after. */
function digestUnchanged(path: string, stamp: Stamp): string | undefined {
  let fd: number
  try {
    fd = openPlain(path)
  } catch {
    return undefined
  }
  try {
    if (!sameStamp(stampOf(fstatSync(fd)), stamp)) return undefined
    const digest = digestOpen(fd, { offset: 0, size: stamp.size })
    return sameStamp(stampOf(fstatSync(fd)), stamp) ? digest : undefined
  } finally {
    closeSync(fd)
  }
}
