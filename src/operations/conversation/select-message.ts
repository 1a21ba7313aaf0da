import type { Store } from '../../formats/format.js'
import { NoMatchError, UsageError } from '../../model/errors.js'
import type { Message, SessionRef } from '../../model/session.js'

/**
 * The user message that an id or a unique prefix names. Throws `NoMatchError` when none begins with it and `UsageError`
 * when several do.
 */
export function selectMessage(store: Store, session: SessionRef, given: string): Message {
  const messages = store.messages(session)
  const matches = messages.filter(({ id }) => id.startsWith(given))
  const found = matches.find(({ id }) => id === given) ?? matches[0]
  if (found === undefined || given === '') throw new NoMatchError(`session ${session.id} has no message that begins with ${JSON.stringify(given)}`, { hint: `rewind-admin show ${session.id}` })
  if (matches.length > 1 && found.id !== given) {
    const shown = matches.slice(0, 3).map(({ id }) => id)
    throw new UsageError(`${String(matches.length)} messages begin with ${given}: ${shown.join(', ')}${matches.length > 3 ? ', …' : ''}`)
  }
  return found
}
