import { isFields, textOf, type Fields } from '../../model/fields.js'
import type { State, StateRecord } from './state.js'

/*
 * What our own recorder adds to a state. The plugin keeps fields that it does not know, through load, save and forks
 * (formats/pi-candy-undo section 2), so that these outlive it too.
 */

/** A file as it was when its newest record was made or last found true. Times in milliseconds since 1970 with their fraction. */
export interface Seen {
  /** The record that this speaks of, by its version: a later record of the plugin's makes it void. */
  readonly version: number
  readonly ino: number
  readonly size: number
  readonly mtimeMs: number
  readonly ctimeMs: number
  readonly mode: number
  /** When it was looked at. */
  readonly at: number
}

/** A message of the user's. */
export interface RecordedMessage {
  readonly id: string
  /** Id of the snapshot that it means. */
  readonly snapshot: string
  readonly text?: string
  /** ISO 8601. */
  readonly time?: string
}

/** The turn that was begun last. */
export interface RecordedTurn {
  /** Id of the message, or the word that stands for it until it is known. */
  readonly message: string
  /** Id of the snapshot that it means. */
  readonly snapshot: string
  /** Where the agent writes its conversation, and how many bytes that file had when the turn began. */
  readonly transcript?: { readonly path: string; readonly size: number }
}

/** What the recorder knows of a session besides the plugin's own fields. */
export interface Recorded {
  /** Working folder of the session, absolute; what relative paths mean. */
  readonly cwd: string
  /** Grows with each snapshot and never shrinks, whatever the cap takes. */
  readonly sequence: number
  readonly seen: ReadonlyMap<string, Seen>
  readonly turn?: RecordedTurn
  /** In the order in which they came; those of snapshots that the cap took are dropped when the next one comes. */
  readonly messages: readonly RecordedMessage[]
  /** Edits of links, of files with several names and of what is no plain file: they are not recorded. */
  readonly leftOut: number
  /** Messages whose turn could not be recorded. */
  readonly lostTurns: number
  /** ISO 8601; `null` while the session goes on. */
  readonly endedAt: string | null
}

/** Bytes of a backup as they were recorded; sizes in bytes. */
export interface RecordedBytes {
  readonly sha256?: string
  readonly size?: number
  readonly mode?: number
  /** Why nobody can tell what the file was. */
  readonly gap?: string
}

const hexDigest = /^[0-9a-f]{64}$/

/** What the recorder added to a record; what has not its shape is passed over. */
export function bytesOf({ from }: StateRecord): RecordedBytes {
  if (!isFields(from)) return {}
  const { sha256, size, mode, gap } = from
  return {
    ...(typeof sha256 === 'string' && hexDigest.test(sha256) ? { sha256 } : {}),
    ...(isCount(size) ? { size } : {}),
    ...(isCount(mode) && mode <= 0o777 ? { mode } : {}),
    ...(typeof gap === 'string' ? { gap } : {}),
  }
}

/** The messages that the recorder noted, in the order in which they came. */
export function messagesNoted({ from }: State): RecordedMessage[] {
  const own = isFields(from?.recorder) ? from.recorder : {}
  if (!Array.isArray(own.messages)) return []
  return (own.messages as unknown[]).flatMap((each): RecordedMessage[] => {
    if (!isFields(each) || typeof each.id !== 'string' || typeof each.snapshot !== 'string') return []
    const [text, time] = [textOf(each.text), textOf(each.time)]
    return [{ id: each.id, snapshot: each.snapshot, ...(text === undefined ? {} : { text }), ...(time === undefined ? {} : { time }) }]
  })
}

/** The working folder that a recorder noted in a state. */
export function recordedFolder({ from }: State): string | undefined {
  return textOf(from?.cwd)
}

/** What the recorder noted in a state; what is missing begins anew. */
export function recordedOf(state: State, cwd: string): Recorded {
  const own = isFields(state.from?.recorder) ? state.from.recorder : {}
  const turn = turnOf(own.turn)
  const sequence = state.from?.snapshotSequence
  return {
    cwd: recordedFolder(state) ?? cwd,
    sequence: isCount(sequence) && sequence >= state.snapshots.length ? sequence : state.snapshots.length,
    seen: seenOf(state.from?.seen),
    messages: messagesNoted(state),
    ...(turn === undefined ? {} : { turn }),
    leftOut: isCount(own.leftOut) ? own.leftOut : 0,
    lostTurns: isCount(own.lostTurns) ? own.lostTurns : 0,
    endedAt: textOf(own.endedAt) ?? null,
  }
}

/** The state with what the recorder notes in it; fields of others stay. */
export function withRecorded(state: State, { cwd, sequence, seen, turn, messages, leftOut, lostTurns, endedAt }: Recorded): State {
  const before = isFields(state.from?.recorder) ? state.from.recorder : {}
  const recorder = { ...before, version: 1, turn, leftOut, lostTurns, endedAt, messages }
  return { ...state, from: { ...state.from, cwd, snapshotSequence: sequence, recorder, seen: seenOut(seen) } }
}

/** What was read or is to be written of files seen, by the one object that stands for it: it is the largest part, and mostly the same. */
const seenByFields = new WeakMap<object, ReadonlyMap<string, Seen>>()
const fieldsBySeen = new WeakMap<ReadonlyMap<string, Seen>, Fields>()

function seenOut(seen: ReadonlyMap<string, Seen>): Fields {
  const known = fieldsBySeen.get(seen)
  if (known !== undefined) return known
  const fields = Object.fromEntries([...seen].map(([path, { version, ino, size, mtimeMs, ctimeMs, mode, at }]) => [path, [version, ino, size, mtimeMs, ctimeMs, mode, at].join(' ')]))
  fieldsBySeen.set(seen, fields)
  seenByFields.set(fields, seen)
  return fields
}

function seenOf(value: unknown): ReadonlyMap<string, Seen> {
  const seen = new Map<string, Seen>()
  if (!isFields(value)) return seen
  const known = seenByFields.get(value)
  if (known !== undefined) return known
  for (const [path, each] of Object.entries(value)) {
    const numbers = typeof each === 'string' ? each.split(' ').map(Number) : []
    if (numbers.length !== 7 || !numbers.every(Number.isFinite)) continue
    const [version, ino, size, mtimeMs, ctimeMs, mode, at] = numbers as [number, number, number, number, number, number, number]
    seen.set(path, { version, ino, size, mtimeMs, ctimeMs, mode, at })
  }
  fieldsBySeen.set(seen, value)
  seenByFields.set(value, seen)
  return seen
}

function turnOf(value: unknown): RecordedTurn | undefined {
  if (!isFields(value) || typeof value.message !== 'string' || typeof value.snapshot !== 'string') return undefined
  const { message, snapshot, transcript } = value
  const place: Fields | undefined = isFields(transcript) ? transcript : undefined
  return { message, snapshot, ...(typeof place?.path === 'string' && isCount(place.size) ? { transcript: { path: place.path, size: place.size } } : {}) }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
