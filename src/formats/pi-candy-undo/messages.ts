import type { Message } from '../../model/session.js'
import { messagesNoted } from './recorded.js'
import type { State } from './state.js'
import type { Conversation } from './conversations.js'

/** The user messages of a conversation in the order of its file; active are those that the last entry goes back to. */
export function messagesOf(conversation: Conversation): Message[] {
  const active = new Set<string>()
  for (let at = conversation.leaf; at !== undefined && !active.has(at); at = conversation.entries.get(at)?.parent) active.add(at)
  return [...conversation.entries].flatMap(([id, { user }]): Message[] => {
    if (user === undefined) return []
    const parent = messageAbove(conversation, id)
    return [{ id, ...(parent === undefined ? {} : { parent }), ...(user.time === undefined ? {} : { time: user.time }), text: user.text, active: active.has(id) }]
  })
}

function messageAbove({ entries }: Conversation, id: string): string | undefined {
  const seen = new Set([id])
  for (let at = entries.get(id)?.parent; at !== undefined && !seen.has(at); at = entries.get(at)?.parent) {
    if (entries.get(at)?.user !== undefined) return at
    seen.add(at)
  }
  return undefined
}

/** The user messages that a recorder noted in a state, in the order in which they came. */
export function recordedMessages(state: State): Message[] {
  const kept = new Set(state.snapshots.map(({ id }) => id))
  const noted = messagesNoted(state).filter(({ snapshot }) => kept.has(snapshot))
  return noted.map(({ id, text = '', time }, index): Message => {
    const [before, at] = [noted[index - 1], Date.parse(time ?? '')]
    return { id, ...(before === undefined ? {} : { parent: before.id }), ...(Number.isNaN(at) ? {} : { time: at }), text, active: true }
  })
}
