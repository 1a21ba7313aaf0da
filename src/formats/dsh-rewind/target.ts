import { NewerFormatError } from '../../model/errors.js'
import type { Checkpoint } from '../../model/history.js'
import type { SessionReading } from '../../model/session.js'
import type { SessionState } from './reading.js'
import { timeText } from './links.js'

/**
 * The checkpoint that a word means: an anchor number, `@` with one, or the id of a message of a human, whole or a unique
 * beginning (formats/dsh-rewind section 3.1). A message without a group of its own goes back to what the next group recorded. When the
 * conversation is there, a number must be a message or a group of it; without it nobody can tell, and any number is taken.
 * @throws NewerFormatError when the store, or a record that counts for the target, is of a newer version
 */
export function checkpointAt({ records, log }: SessionState, reading: SessionReading, word: string): Checkpoint | undefined {
  if (records.newer) throw newerThanKnown(reading.id, 'the store')
  const anchor = anchorOf(word, log)
  if (anchor === undefined) return undefined
  const { checkpoints } = reading.history
  const message = log?.messages.find(({ seq }) => seq === anchor)
  if (log !== undefined && log.trouble === undefined && message === undefined && !records.groups.has(anchor)) return undefined
  for (const [group, ofGroup] of records.groups) {
    if (group >= anchor && ofGroup.some(({ kind }) => kind === 'newer')) throw newerThanKnown(reading.id, `a record of group ${String(group)}`)
  }
  const next = checkpoints.find(({ id }) => Number(id) >= anchor)
  if (next !== undefined && Number(next.id) === anchor) return next
  const time = message?.time === undefined ? undefined : timeText(message.time)
  return {
    id: String(anchor),
    order: next?.order ?? checkpoints.length,
    aliases: [`@${String(anchor)}`, ...(message?.id === undefined ? [] : [message.id])],
    ...(time === undefined ? {} : { time }),
    files: next?.files ?? new Map(),
  }
}

/** The anchor number that a word means; only plain digits are a number. */
export function anchorOf(word: string, log: SessionState['log']): number | undefined {
  const digits = /^@?([0-9]+)$/.exec(word)?.[1]
  if (digits !== undefined) {
    const anchor = Number(digits)
    return Number.isSafeInteger(anchor) ? anchor : undefined
  }
  if (word === '') return undefined
  const messages = log?.messages ?? []
  const exact = messages.findLast(({ id }) => id === word)
  const begun = messages.filter(({ id }) => id?.startsWith(word) === true)
  return exact?.seq ?? (begun.length === 1 ? begun[0]?.seq : undefined)
}

function newerThanKnown(session: string, what: string): NewerFormatError {
  return new NewerFormatError(`session ${session}: ${what} was written by a newer version of the plugin; nothing was done`, { hint: 'update rewind-admin' })
}
