import { isFields, type Fields } from '../../model/fields.js'
import { inGroup, parseRef, sideFileOf, storeVersion } from './layout.js'
import { inlineBytesOf, type ContentRecord, type LinkRecord } from './record.js'

/** Keys of either generation. The pin and the mode tell of a moment that a text record does not know (section 2.8). */
const known: ReadonlySet<string> = new Set([
  'callId', 'anchorSeq', 'path', 'before', 'beforeBase64', 'time', 'ref', 'store', 'file', 'blob', 'size', 'lossy', 'parent', 'mode',
])

/**
 * A text record as the byte builds write it (sections 1.4 and 1.5), with the fields of others kept. It has none of the fields
 * that a text build needs, so that such a build passes it over (R113).
 * @param bytes the text record as it is stored
 */
export function byteRecordOf(record: ContentRecord | LinkRecord, bytes: Buffer): Buffer {
  const { callId, file, time } = record
  const base = { store: storeVersion, callId, file, ...(record.kind === 'link' ? { ref: plainRef(record.ref) } : {}), time }
  return json({ ...base, ...(record.kind === 'link' ? {} : contentFields(record, bytes)), ...othersIn(bytes) })
}

/** The bytes that the side file of a text record holds. Throws when the record has none any more. */
export function sideBytesOf(bytes: Buffer): Buffer {
  const content = inlineBytesOf(bytes)
  if (content === undefined) throw new Error('the record holds no text')
  return content
}

/** A version 1 journal as version 2 under its own name: texts stay texts (section 2.6). */
export function secondJournalOf(bytes: Buffer): Buffer {
  const { actions, ...rest } = parse(bytes)
  const changed = Array.isArray(actions) ? (actions as unknown[]).map(secondAction) : actions
  return json({ ...rest, version: 2, actions: changed })
}

/** True when a journal is of the first version. */
export function isFirstJournal(bytes: Buffer): boolean {
  const { version } = parse(bytes)
  return version === undefined || version === 1
}

/** A record or any other JSON object with some fields set, in their places. */
export function withFields(bytes: Buffer, fields: Fields): Buffer {
  return json({ ...parse(bytes), ...fields })
}

/** The fields of a JSON object; none when it is not one. */
export function fieldsOf(bytes: Buffer): Fields {
  try {
    return parse(bytes)
  } catch {
    return {}
  }
}

function contentFields({ name, lossy, content }: ContentRecord, bytes: Buffer): Fields {
  if (content.kind === 'absent') return { blob: null, size: 0 }
  return { ...(lossy ? { lossy: true } : {}), blob: sideFileOf(name), size: sideBytesOf(bytes).length }
}

function othersIn(bytes: Buffer): Fields {
  return Object.fromEntries(Object.entries(parse(bytes)).filter(([key]) => !known.has(key)))
}

/** In the one form that the byte builds take. */
function plainRef(ref: string): string {
  const place = parseRef(ref)
  return place === undefined ? ref : inGroup(place.group, place.name)
}

function secondAction(action: unknown): unknown {
  if (!isFields(action)) return action
  const { before, rescue } = action
  return {
    ...action,
    ...(typeof before === 'string' ? { before: { text: before } } : {}),
    ...(typeof rescue === 'string' ? { rescue: { text: rescue } } : {}),
  }
}

function parse(bytes: Buffer): Fields {
  const value: unknown = JSON.parse(bytes.toString('utf8'))
  return isFields(value) ? value : {}
}

function json(value: Fields): Buffer {
  return Buffer.from(JSON.stringify(value), 'utf8')
}
