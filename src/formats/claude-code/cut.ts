/** One message of a transcript by its place in the chain of parents. */
export interface MessageNode {
  readonly id: string
  readonly parent: string | undefined
  /** True for what a user typed: where a rewind can go. */
  readonly prompt: boolean
  /** Position among the messages, from 0. */
  readonly index: number
}

/**
 * The messages that stay when a conversation is cut before `message` (formats/claude-code section 8): those that it hangs
 * off, and what belongs to the same turns without being on the chain (results of tools that ran side by side). Branches
 * that an earlier rewind left behind do not stay, although they stand before the message in the file. Where damage broke
 * the chain, it goes on with the message before in the file.
 */
export function messagesBefore(nodes: ReadonlyMap<string, MessageNode>, message: string): Set<string> {
  const target = nodes.get(message)
  if (target === undefined) return new Set()
  const order = [...nodes.values()]
  const above = (node: MessageNode): MessageNode | undefined => {
    if (node.parent === undefined) return undefined
    return nodes.get(node.parent) ?? order[node.index - 1]
  }
  const chain = new Set<string>()
  const parent = above(target)
  for (let at = parent; at !== undefined && !chain.has(at.id); at = above(at)) chain.add(at.id)
  if (parent === undefined) return chain
  const turns = new Map<string, string>()
  for (const node of order) {
    if (node.index > parent.index) break
    const turn = node.prompt ? node.id : turns.get(node.parent ?? '')
    if (turn !== undefined) turns.set(node.id, turn)
    // A turn of its own without a prompt is one of an older client's subagents, which belongs to what stands around it.
    if (turn === undefined || chain.has(turn)) chain.add(node.id)
  }
  return chain
}
