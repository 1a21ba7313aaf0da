import { textOf, type Fields } from '../../model/fields.js'
import type { Message, SessionRef } from '../../model/session.js'
import { readChain } from './chain.js'
import { promptText } from './prompt-text.js'

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
  readChain(root, session, ({ id, parent, value }) => {
    nodes.set(id, { parent, prompt: readPrompt(value) })
    leaf = id
  })
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

function readPrompt(value: Fields): Node['prompt'] {
  const text = value.type === 'user' && value.isMeta !== true ? promptText(value.message) : undefined
  const time = Date.parse(textOf(value.timestamp) ?? '')
  return text === undefined ? undefined : { text, time: Number.isNaN(time) ? undefined : time }
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
