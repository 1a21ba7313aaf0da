import { isFields, textOf, type Fields } from '../../model/fields.js'
import type { Message } from '../../model/session.js'
import type { Prompt, PromptImage } from '../conversation.js'
import { loadTranscript, promptAbove, type ChainNode, type LoadedTranscript } from './chain.js'
import { parseRecord } from '../parse-record.js'
import { RecordReader } from './record-reader.js'
import type { TranscriptFile } from './transcripts.js'

/**
 * The messages of the user's in the order of the transcript. One is active when the chain of parents from the leaf reaches
 * it: a rewind leaves the others behind (formats/qwen-code section 4). Throws the system error when it cannot be read.
 */
export function readMessages(files: readonly TranscriptFile[]): Message[] {
  const [file] = files
  if (file === undefined) return []
  const transcript = loadTranscript(file.path, 0)
  const active = new Set(transcript.chain)
  const reader = new RecordReader(file.path)
  try {
    return [...transcript.nodes.values()].flatMap((node) => {
      const text = node.kind === 'prompt' ? textOfNode(node, reader) : undefined
      return text === undefined ? [] : [messageOf(node, text, transcript, active.has(node.id))]
    })
  } finally {
    reader.close()
  }
}

/** One message of the user's; `undefined` when no record is that message. */
export function readPrompt(files: readonly TranscriptFile[], id: string): Prompt | undefined {
  const [file] = files
  if (file === undefined) return undefined
  const transcript = loadTranscript(file.path, 0)
  const node = transcript.nodes.get(id)
  if (node?.kind !== 'prompt') return undefined
  const reader = new RecordReader(file.path)
  try {
    const parts = partsOf(node, reader)
    return parts === undefined ? undefined : { text: joined(parts), images: parts.flatMap(imageOf) }
  } finally {
    reader.close()
  }
}

function messageOf(node: ChainNode, text: string, { nodes }: LoadedTranscript, active: boolean): Message {
  const time = Date.parse(node.time ?? '')
  // What stands before the first message is no conversation.
  const isFirst = promptAbove(nodes, node, false) === undefined
  return {
    id: node.id,
    ...(node.parent === undefined || isFirst ? {} : { parent: node.parent }),
    ...(Number.isNaN(time) ? {} : { time }),
    text,
    active,
  }
}

function textOfNode(node: ChainNode, reader: RecordReader): string | undefined {
  const parts = partsOf(node, reader)
  return parts === undefined ? undefined : joined(parts)
}

/** The parts of a prompt; `undefined` for a record that carries the result of a tool. */
function partsOf(node: ChainNode, reader: RecordReader): Fields[] | undefined {
  const all: Fields[] = []
  for (const place of node.places) {
    const message = parseRecord(reader.read(place))?.message
    const parts: unknown[] = isFields(message) && Array.isArray(message.parts) ? message.parts : []
    all.push(...parts.filter(isFields))
  }
  return all.some((part) => part.functionResponse !== undefined) ? undefined : all
}

function joined(parts: readonly Fields[]): string {
  return parts.flatMap((part) => (part.thought === true ? [] : (textOf(part.text) ?? []))).join('\n')
}

function imageOf({ inlineData }: Fields): PromptImage[] {
  if (!isFields(inlineData) || typeof inlineData.data !== 'string') return []
  return [{ mediaType: textOf(inlineData.mimeType) ?? '', bytes: Buffer.from(inlineData.data, 'base64') }]
}
