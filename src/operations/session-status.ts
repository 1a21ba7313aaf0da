import type { Machine, Store } from '../formats/format.js'
import { NoMatchError } from '../model/errors.js'
import { ExitCode } from '../model/exit-code.js'
import { noItems, type Json, type Report } from '../model/report.js'
import { rowJson } from './list.js'
import { selectSessions } from './select.js'
import { InodeCount, sessionRow } from './session-facts.js'
import { findTombstone } from './tombstones.js'

/**
 * Whether a session is there, and when it was removed if it is not (R124): exit code 0 when it is there, 1 when it is gone.
 * Throws `NoMatchError` for an id that nothing is known of, `UsageError` for a prefix of several.
 */
export function sessionStatus(stores: readonly Store[], id: string, context: { readonly now: number; readonly machine: Machine }): Report {
  for (const store of stores) {
    const matching = store.inventory().sessions.filter((session) => session.id.startsWith(id))
    const [ref] = matching.length === 0 ? [] : selectSessions(matching, [id])
    if (ref === undefined) continue
    const live = store.live(context.machine, context.now).live.some(({ session }) => session === ref.id)
    const row = sessionRow(store, ref, store.read(ref, { now: context.now }), new InodeCount(), live)
    return reportOf(store, { state: live ? 'live' : 'there', session: ref.id }, ExitCode.done, { sessions: [rowJson(row)] })
  }
  for (const store of stores) {
    const tombstone = findTombstone(store, id)
    if (tombstone === undefined) continue
    const word = tombstone.command === 'expire' ? 'expired' : 'removed'
    return reportOf(store, { state: word, session: tombstone.session, on: tombstone.removedAt, run: tombstone.runId }, ExitCode.findings, { tombstone: { ...tombstone } })
  }
  throw new NoMatchError(`no session begins with ${id}, and none was removed by rewind-admin`, { hint: 'rewind-admin list' })
}

function reportOf(store: Store, summary: Readonly<Record<string, Json>>, exitCode: ExitCode, extra: Readonly<Record<string, Json>>): Report {
  return { command: 'status', roots: [store.root], applied: false, summary, ...noItems, exitCode, extra }
}
