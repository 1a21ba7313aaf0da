import type { Conversation } from './conversations.js'
import type { State } from './state.js'

/**
 * Which snapshot each user message means, by its place in `snapshots` (formats/pi-candy-undo section 5): the last one with
 * the message's entry id as its key, else with that of the entry before it, and so on; else the baseline. A message whose
 * chain of entries is broken is left out: nobody can tell.
 * @param whole false when snapshots are damaged: then a message means the one with its own key, or nobody can tell
 */
export function meaningsOf(state: State, conversation: Conversation, whole: boolean): Map<string, number> {
  const byKey = new Map(state.snapshots.map(({ key }, index) => [key, index]))
  const baseline = state.snapshots.findIndex(({ kind }) => kind === 'baseline')
  const known = new Map<string, number | undefined>()
  const meaningOf = (message: string): number | undefined => {
    const passed: string[] = []
    let meaning: number | undefined
    for (let at: string | undefined = message; ; ) {
      if (at === undefined) {
        meaning = baseline === -1 ? undefined : baseline
        break
      }
      if (known.has(at)) {
        meaning = known.get(at)
        break
      }
      const entry = conversation.entries.get(at)
      if (entry === undefined || passed.includes(at)) break
      passed.push(at)
      meaning = byKey.get(at)
      if (meaning !== undefined || !whole) break
      at = entry.parent
    }
    for (const each of passed) known.set(each, meaning)
    return meaning
  }
  const meanings = new Map<string, number>()
  for (const [id, { user }] of conversation.entries) {
    const meaning = user === undefined ? undefined : meaningOf(id)
    if (meaning !== undefined) meanings.set(id, meaning)
  }
  return meanings
}
