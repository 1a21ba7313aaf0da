import { NoMatchError, UsageError } from '../model/errors.js'

/**
 * The sessions that the given ids or unique prefixes name; all of them when none is given. Throws `NoMatchError` for an
 * id that nothing begins with, and `UsageError` for one that several sessions begin with.
 */
export function selectSessions<T extends { readonly id: string }>(sessions: readonly T[], given: readonly string[] | undefined): readonly T[] {
  if (given === undefined || given.length === 0) return sessions
  return given.map((text) => {
    const matches = sessions.filter((session) => session.id.startsWith(text))
    const found = matches.find((session) => session.id === text) ?? matches[0]
    if (found === undefined) throw new NoMatchError(`no session begins with ${text}`, { hint: 'rewind-admin list' })
    if (matches.length > 1 && found.id !== text) {
      throw severalBegin(matches.map(({ id }) => id), text)
    }
    return found
  })
}

/** The error for a prefix that several sessions have. */
export function severalBegin(ids: readonly string[], text: string): UsageError {
  return new UsageError(`${String(ids.length)} sessions begin with ${text}: ${ids.slice(0, 3).join(', ')}${ids.length > 3 ? ', …' : ''}`)
}
