import { closeSync, fstatSync, readSync } from 'node:fs'
import { openPlain } from '../../fs/blocks.js'
import { isFields, textOf, type Fields } from '../../model/fields.js'
import { promptText } from './prompt-text.js'

/** Bytes of a transcript that are looked through: a prompt is written soon after it was sent. */
const reach = 1024 * 1024

/** A prompt as it was sent: its text, or the begin of it. */
export interface SentPrompt {
  readonly text: string
  readonly whole: boolean
}

/**
 * The id of the message that a prompt became, from what was written to the transcript since it was sent. `undefined` when it is
 * not there (yet), and for a transcript that is no plain file; links are not followed.
 * @param from size in bytes that the transcript had when the prompt was sent
 */
export function writtenPrompt(path: string, from: number, prompt: SentPrompt): string | undefined {
  const text = prompt.text.trim()
  if (text === '') return undefined
  for (const line of linesAfter(path, from)) {
    const value = line.includes('"user"') ? parsed(line) : undefined
    if (isFields(value) && isWritten(value, text, prompt.whole)) return textOf(value.uuid)
  }
  return undefined
}

function linesAfter(path: string, from: number): string[] {
  let fd: number
  try {
    fd = openPlain(path)
  } catch {
    return []
  }
  try {
    const { size } = fstatSync(fd)
    if (size <= from) return []
    const buffer = Buffer.allocUnsafe(Math.min(reach, size - from))
    const length = readSync(fd, buffer, 0, buffer.length, from)
    return buffer.toString('utf8', 0, length).split('\n')
  } catch {
    return []
  } finally {
    closeSync(fd)
  }
}

function isWritten(value: Fields, text: string, whole: boolean): boolean {
  if (value.type !== 'user' || value.isMeta === true || value.isSidechain === true) return false
  const written = promptText(value.message)?.trim()
  if (written === undefined) return false
  // A command is written with its name in a tag.
  const [, command] = /^(\/\S+)/.exec(text) ?? []
  if (command !== undefined && written.includes(`<command-name>${command}</command-name>`)) return true
  return whole ? written === text || firstText(value.message)?.trim() === text : written.startsWith(text)
}

/** The first text of a message, before pictures and what the client adds. */
function firstText(message: unknown): string | undefined {
  const content = isFields(message) ? message.content : undefined
  const block: unknown = Array.isArray(content) ? (content as unknown[]).find((each) => isFields(each) && each.type === 'text') : undefined
  return isFields(block) ? textOf(block.text) : undefined
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
