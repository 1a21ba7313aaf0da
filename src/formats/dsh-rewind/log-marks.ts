import { isFields, type Fields } from '../../model/fields.js'

/** What stands in a message without text: strict gateways refuse an empty one (formats/dsh-rewind section 5.2). */
const placeholder = '(empty message)'
const plugin = 'dsh-rewind'

/** True for a marker of the forms A and B: an answer of no model, which replaces a part of the conversation. */
export function isAnswerMark({ type, data, surfaceOp }: Fields): boolean {
  if (type !== 'assistant/message' || !isReplace(surfaceOp)) return false
  const source = sourceOf(messageIn(data))
  return (source.kind === 'model' && source.provider === plugin && source.model === 'rewind-marker') || isPluginSource(source)
}

/** True for a marker of the forms C and D: a message of the plugin, which replaces a part of the conversation. */
export function isMessageMark({ type, data, surfaceOp }: Fields): boolean {
  if (type !== 'user/message' || !isReplace(surfaceOp) || !isFields(data)) return false
  const source = sourceOf(data)
  return isPluginSource(source) || source.kind === plugin
}

/** True for a marker of the first form C, which strict gateways refuse. */
export function isEmptyMark(event: Fields): boolean {
  return isMessageMark(event) && isFields(event.data) && Array.isArray(event.data.content) && event.data.content.length === 0
}

/** True when a marker stands between a begin and an end of a step that were made for it alone (form B). */
export function isFramed(before: Fields | undefined, mark: Fields, after: Fields | undefined): boolean {
  if (before?.type !== 'step/start' || after?.type !== 'step/end') return false
  const [start, own, end] = [before.data, mark.data, after.data]
  if (!isFields(start) || !isFields(own) || !isFields(end) || typeof own.turn !== 'number' || typeof own.step !== 'number') return false
  return [start, end].every(({ turn, step }) => turn === own.turn && step === own.step)
}

/** A marker of any form as form C: its number, id and range stay, and so do fields that are not known (section 5.4). */
export function messageMark(event: Fields): Fields {
  const { seq, time, surfaceOp, sourceEventSeqs } = event
  const data = isFields(event.data) ? event.data : {}
  const own: Fields = { ...messageIn(data), ...without(data, ['turn', 'step', 'message']) }
  const { content, source, id } = own
  const kept = Array.isArray(content) && content.length > 0 ? content : [{ type: 'text', text: placeholder }]
  const from = isFields(source) && isPluginSource(source) ? source : { kind: 'plugin', plugin }
  return {
    type: 'user/message',
    seq,
    time,
    data: { role: 'user', content: kept, source: from, id, ...without(own, ['role', 'content', 'source', 'id']) },
    surfaceOp,
    ...(sourceEventSeqs === undefined ? {} : { sourceEventSeqs }),
    ...without(event, ['type', 'seq', 'time', 'data', 'surfaceOp', 'sourceEventSeqs']),
  }
}

/** The first event of the part of the conversation that a marker replaces. */
export function startOfRange({ surfaceOp }: Fields): number | undefined {
  const start = isFields(surfaceOp) ? (surfaceOp.startSeq ?? surfaceOp.start) : undefined
  return typeof start === 'number' ? start : undefined
}

function without(fields: Fields, keys: readonly string[]): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([key]) => !keys.includes(key)))
}

function isReplace(surfaceOp: unknown): boolean {
  return isFields(surfaceOp) && surfaceOp.op === 'replace'
}

function messageIn(data: unknown): Fields {
  return isFields(data) && isFields(data.message) ? data.message : {}
}

function sourceOf({ source }: Fields): Fields {
  return isFields(source) ? source : {}
}

function isPluginSource({ kind, plugin: name }: Fields): boolean {
  return kind === 'plugin' && name === plugin
}
