import { hash } from 'node:crypto'
import { isFields, textOf, type Fields } from '../../model/fields.js'
import { inGroup, sideFileOf, storeVersion } from './layout.js'

/** What a record says of the bytes before a change. */
type Content =
  | { readonly kind: 'absent' }
  /** Raw bytes in a side file of the same group; `size` in bytes. */
  | { readonly kind: 'side'; readonly name: string; readonly size: number }
  /** Text in the record itself. */
  | { readonly kind: 'text' }

interface Base {
  readonly group: number
  /** File name of the record in its group. */
  readonly name: string
  /** Written by another plugin into the same root (section 6.3). */
  readonly foreign: boolean
  /** The number that its place in a plan is decided by: the group, of a string-era record its own (section 3.1). */
  readonly anchor: number
  /** Milliseconds since 1970; 0 when none is recorded. */
  readonly time: number
}

interface Identified extends Base {
  readonly generation: 1 | 2
  readonly file: string
  readonly callId: string
  readonly parent?: string
}

export interface ContentRecord extends Identified {
  readonly kind: 'content'
  readonly content: Content
  readonly mode?: number
  readonly lossy: boolean
}

export interface LinkRecord extends Identified {
  readonly kind: 'link'
  readonly ref: string
}

/** A record that cannot be followed. `file` is known when only the content of the record is in doubt. */
interface DamagedRecord extends Base {
  readonly kind: 'damaged'
  readonly file?: string
  readonly reason: string
}

/** A record of a newer store version: nothing of it is read (section 1.6). */
interface NewerRecord extends Base {
  readonly kind: 'newer'
  readonly store: number
}

export type StoredRecord = ContentRecord | LinkRecord | DamagedRecord | NewerRecord

/** Parses a record from its bytes, by the table of section 1.6: decided per record, never per session. */
export function parseRecord(group: number, name: string, bytes: Buffer): StoredRecord {
  const base: Base = { group, name, foreign: false, anchor: group, time: 0 }
  const value = parseJson(bytes)
  if (!isFields(value)) return { ...base, kind: 'damaged', reason: 'it is not a JSON object' }
  const { store } = value
  if (typeof store === 'number' && store > storeVersion) return { ...base, kind: 'newer', store }
  const timed = { ...base, time: numberOf(value.time) ?? 0 }
  return store === storeVersion ? byteRecord(timed, value) : textRecord(timed, value)
}

/** The bytes of a text record; `undefined` when the record has none of its own. */
export function inlineBytesOf(bytes: Buffer): Buffer | undefined {
  const value = parseJson(bytes)
  if (!isFields(value) || value.store === storeVersion) return undefined
  return bytesOfText(value)
}

/** True for text that a lossy decoding went through: something in it stands for bytes that are gone (R52, R112). */
export function isLossyText(text: string): boolean {
  return text.includes('\ufffd') || /\p{Cs}/u.test(text)
}

function byteRecord(base: Base, value: Fields): StoredRecord {
  const file = textOf(value.file)
  if (file === undefined) return { ...base, kind: 'damaged', reason: 'it names no file' }
  const known = { ...base, generation: 2 as const, file, callId: textOf(value.callId) ?? '', ...pinOf(value) }
  if (typeof value.ref === 'string') return { ...known, kind: 'link', ref: value.ref }
  const { blob, size } = value
  const lossy = value.lossy === true
  if (blob === null) {
    if (lossy || (typeof size === 'number' && size !== 0)) return { ...base, file, kind: 'damaged', reason: 'it says that the file did not exist, and that it had content' }
    return { ...known, kind: 'content', content: { kind: 'absent' }, lossy: false }
  }
  if (blob !== sideFileOf(base.name)) return { ...base, file, kind: 'damaged', reason: 'it does not name its own side file' }
  const bytes = numberOf(size)
  const mode = numberOf(value.mode)
  return {
    ...known,
    kind: 'content',
    content: { kind: 'side', name: sideFileOf(base.name), size: bytes === undefined || bytes < 0 ? 0 : bytes },
    ...(mode === undefined || !Number.isInteger(mode) ? {} : { mode: mode & 0o7777 }),
    lossy,
  }
}

function textRecord(base: Base, value: Fields): StoredRecord {
  const file = textOf(value.path)
  const anchor = numberOf(value.anchorSeq)
  // The marks of other writers; `version` is not the store version.
  const foreign = 'existed' in value || 'version' in value
  const placed = { ...base, foreign, anchor: anchor ?? base.group }
  if (file === undefined || anchor === undefined) return { ...placed, ...(file === undefined ? {} : { file }), kind: 'damaged', reason: file === undefined ? 'it names no file' : 'it has no anchor number' }
  const known = { ...placed, generation: 1 as const, file, callId: textOf(value.callId) ?? '' }
  if (typeof value.ref === 'string') return { ...known, kind: 'link', ref: value.ref }
  const doubt = doubtOf(value)
  if (doubt !== undefined) return { ...placed, file, kind: 'damaged', reason: doubt }
  const isText = bytesOfText(value) !== undefined
  const lossy = typeof value.beforeBase64 !== 'string' && typeof value.before === 'string' && isLossyText(value.before)
  return { ...known, kind: 'content', content: { kind: isText ? 'text' : 'absent' }, lossy }
}

/** Why nobody can tell what a text record says of the content. */
function doubtOf(value: Fields): string | undefined {
  const bytes = bytesOfText(value)
  if (bytes === undefined && value.before !== null) return 'what it says of the content is neither text nor null'
  if (bytes === undefined && value.existed === true) return 'its writer says that the file existed, and not what was in it'
  if (bytes !== undefined && value.existed === false) return 'its writer says that the file did not exist, and what was in it'
  const { sha256 } = value
  const differs = bytes !== undefined && typeof sha256 === 'string' && hash('sha256', bytes, 'hex') !== sha256.toLowerCase()
  return differs ? 'its text is not what its own digest says' : undefined
}

function bytesOfText(value: Fields): Buffer | undefined {
  if (typeof value.beforeBase64 === 'string') return Buffer.from(value.beforeBase64, 'base64')
  return typeof value.before === 'string' ? Buffer.from(value.before, 'utf8') : undefined
}

function pinOf({ parent }: Fields): { parent?: string } {
  return typeof parent === 'string' && parent !== '' ? { parent } : {}
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

/** The name of a backup: the record with the text, or the side file. */
export function backupNameOf({ group, name, content }: ContentRecord): string | null {
  if (content.kind === 'absent') return null
  return inGroup(group, content.kind === 'text' ? name : content.name)
}
