import { join } from 'node:path'
import { readLines } from '../../fs/blocks.js'
import { isFields, textOf } from '../../model/fields.js'
import { membersOf, type Message, type SessionRef } from '../../model/session.js'

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

interface Node {
  readonly parent: string | undefined
  readonly prompt: { readonly time: number | undefined; readonly text: string } | undefined
}

/**
 * The user messages of a session in the order of its transcript. A rewind of the conversation leaves the branch it cut
 * behind (formats/claude-code section 8): a message is active when the chain of parents from the last line reaches it.
 */
export function readMessages(root: string, session: SessionRef): Message[] {
  const nodes = new Map<string, Node>()
  let leaf: string | undefined
  for (const { path } of membersOf(session, 'transcript')) {
    readLines(join(root, path), {
      lines(buffer, length, offset) {
        const mark = offset === 0 && buffer.subarray(0, byteOrderMark.length).equals(byteOrderMark) ? byteOrderMark.length : 0
        for (const line of linesOf(buffer.subarray(mark, length))) {
          const node = readNode(line)
          if (node === undefined) continue
          nodes.set(node.id, node)
          leaf = node.id
        }
      },
      oversized() {
        // A line of this size is no prompt; what hangs off it is then shown as not active.
      },
    })
  }
  const active = chainOf(leaf, nodes)
  const messages: Message[] = []
  for (const [id, node] of nodes) {
    if (node.prompt === undefined) continue
    messages.push({
      id,
      ...(node.parent === undefined ? {} : { parent: node.parent }),
      ...(node.prompt.time === undefined ? {} : { time: node.prompt.time }),
      text: node.prompt.text,
      active: active.has(id),
    })
  }
  return messages
}

function* linesOf(view: Buffer): Generator<Buffer> {
  let start = 0
  while (start < view.length) {
    const feed = view.indexOf(0x0a, start)
    const end = feed === -1 ? view.length : feed
    // A crash leaves runs of NUL bytes in front of a line (R73).
    while (start < end && view[start] === 0) start += 1
    if (end > start) yield view.subarray(start, end)
    start = end + 1
  }
}

function readNode(line: Buffer): (Node & { readonly id: string }) | undefined {
  let value: unknown
  try {
    value = JSON.parse(line.toString('utf8'))
  } catch {
    return undefined
  }
  if (!isFields(value) || value.isSidechain === true) return undefined
  const id = textOf(value.uuid)
  if (id === undefined) return undefined
  // After a compaction the chain begins anew; the logical parent says what it goes on from.
  const parent = textOf(value.parentUuid) ?? textOf(value.logicalParentUuid)
  const text = value.type === 'user' && value.isMeta !== true ? promptText(value.message) : undefined
  const time = Date.parse(textOf(value.timestamp) ?? '')
  return { id, parent, prompt: text === undefined ? undefined : { text, time: Number.isNaN(time) ? undefined : time } }
}

/** The text of a prompt; `undefined` for a message that carries a tool result. */
function promptText(message: unknown): string | undefined {
  const content = isFields(message) ? message.content : undefined
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return undefined
  const texts: string[] = []
  for (const block of content as unknown[]) {
    if (!isFields(block)) continue
    if (block.type === 'tool_result') return undefined
    const text = block.type === 'text' ? textOf(block.text) : undefined
    if (text !== undefined) texts.push(text)
  }
  return texts.join('\n')
}

function chainOf(leaf: string | undefined, nodes: ReadonlyMap<string, Node>): Set<string> {
  const chain = new Set<string>()
  let at = leaf
  while (at !== undefined && !chain.has(at)) {
    chain.add(at)
    at = nodes.get(at)?.parent
  }
  return chain
}
