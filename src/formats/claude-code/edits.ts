import { hash } from 'node:crypto'
import { readLineAt } from '../../fs/blocks.js'
import type { EditEvidence, TextDigest } from '../../model/evidence.js'
import type { EditTexts } from '../format.js'
import { isFields, textOf, type Fields } from '../../model/fields.js'
import type { LinePlace } from './lines.js'
import { parseRecord } from '../parse-record.js'

/** Reads the evidence of one line that carries a tool result; `undefined` when it proves nothing. */
export function readEdit(line: Buffer, place: LinePlace): EditEvidence | undefined {
  const value = parseRecord(line)
  const result = value?.toolUseResult
  if (value === undefined || !isFields(result) || value.isSidechain === true) return undefined
  const texts = editTexts(result)
  const time = Date.parse(textOf(value.timestamp) ?? '')
  if (texts === undefined || Number.isNaN(time)) return undefined
  const maker = textOf(value.sourceToolAssistantUUID) ?? textOf(value.parentUuid)
  return {
    path: texts.path,
    time,
    ...(maker === undefined ? {} : { maker }),
    before: texts.before === null ? null : digestOf(texts.before),
    ...(texts.after === undefined ? {} : { after: digestOf(texts.after) }),
    ...place,
  }
}

/** The texts of the tool result whose line begins at `offset` of the transcript at `path`. */
export function readEditTextsAt(path: string, offset: number): EditTexts | undefined {
  const result = parseRecord(readLineAt(path, offset))?.toolUseResult
  return isFields(result) ? editTexts(result) : undefined
}

function digestOf(text: string): TextDigest {
  return { sha256: hash('sha256', Buffer.from(text, 'utf8'), 'hex') }
}

/** Field names of formats/claude-code section 9; `originalFile` is left out of a creation by 1.0.128. */
function editTexts(result: Fields): EditTexts | undefined {
  const path = textOf(result.filePath)
  if (path === undefined) return undefined
  const created = result.type === 'create'
  const before = created ? null : result.originalFile
  if (before !== null && typeof before !== 'string') return undefined
  return { path, before, after: result.userModified === true ? undefined : textAfter(result, before) }
}

function textAfter(result: Fields, before: string | null): string | undefined {
  const content = textOf(result.content)
  if (content !== undefined) return content
  if (before === null) return undefined
  const single = replaced(before, result.oldString, result.newString, result.replaceAll)
  if (single !== undefined || !Array.isArray(result.edits)) return single
  let text: string | undefined = before
  for (const edit of result.edits as unknown[]) {
    if (!isFields(edit) || text === undefined) return undefined
    text = replaced(text, edit.old_string, edit.new_string, edit.replace_all)
  }
  return text
}

function replaced(text: string, oldString: unknown, newString: unknown, all: unknown): string | undefined {
  if (typeof oldString !== 'string' || typeof newString !== 'string' || oldString === '') return undefined
  const parts = text.split(oldString)
  if (parts.length < 2) return undefined
  if (all === true) return parts.join(newString)
  // Without "all" the tool insists on a single match; more than one leaves a doubt which was meant.
  return parts.length === 2 ? parts.join(newString) : undefined
}
