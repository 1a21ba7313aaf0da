import { join } from 'node:path'
import { readLines } from '../../fs/blocks.js'
import { isFields, textOf, type Fields } from '../../model/fields.js'
import { membersOf, type SessionRef } from '../../model/session.js'
import type { Prompt, PromptImage } from '../conversation.js'
import { parseRecord } from '../parse-record.js'

/**
 * One message of the user's, with its pictures and the permission mode that held: the one of the message itself, else the
 * last one that a line before it says. `undefined` when no line of the transcripts is that message.
 */
export function readPrompt(root: string, session: SessionRef, message: string): Prompt | undefined {
  const id = Buffer.from(`"${message}"`)
  const modeNeedle = Buffer.from('"permission-mode"')
  let mode: string | undefined
  let found: Prompt | undefined
  for (const { path } of membersOf(session, 'transcript')) {
    readLines(join(root, path), {
      lines(buffer, length) {
        const view = buffer.subarray(0, length)
        for (let start = 0; start < length && found === undefined; ) {
          const feed = view.indexOf(0x0a, start)
          const end = feed === -1 ? length : feed
          const line = view.subarray(start, end)
          start = end + 1
          const isMode = line.includes(modeNeedle)
          if (!isMode && !line.includes(id)) continue
          const value = parseRecord(line)
          if (value?.type === 'permission-mode') mode = textOf(value.permissionMode) ?? mode
          else if (value?.uuid === message && value.type === 'user') found = promptOf(value, mode)
        }
      },
      oversized() {
        // A line of this size is no prompt.
      },
    })
    if (found !== undefined) return found
  }
  return undefined
}

function promptOf(value: Fields, standing: string | undefined): Prompt {
  const content = isFields(value.message) ? value.message.content : undefined
  const permissionMode = textOf(value.permissionMode) ?? standing
  const mode = permissionMode === undefined ? {} : { permissionMode }
  if (typeof content === 'string') return { text: content, ...mode, images: [] }
  const blocks: unknown[] = Array.isArray(content) ? content : []
  const texts = blocks.flatMap((block) => (isFields(block) && block.type === 'text' && typeof block.text === 'string' ? [block.text] : []))
  return { text: texts.join('\n'), ...mode, images: blocks.flatMap(imageOf) }
}

function imageOf(block: unknown): PromptImage[] {
  if (!isFields(block) || block.type !== 'image' || !isFields(block.source)) return []
  const { type, data, media_type: mediaType } = block.source
  if (type !== 'base64' || typeof data !== 'string') return []
  return [{ mediaType: textOf(mediaType) ?? '', bytes: Buffer.from(data, 'base64') }]
}
