import type { LiveRegistry, Machine, Store } from '../../formats/format.js'
import type { StillAllowed } from '../../plan/remove-session.js'

/** Sessions that a process has open, each with words for it (R104). */
export function liveSessions(registry: LiveRegistry): ReadonlyMap<string, string> {
  return new Map(registry.live.map(({ session, pid, registry: file }) => [session, `open in process ${String(pid)} (${file})`]))
}

/** Says no for a session that a process has opened since the plan was made. */
export function notLive(store: Pick<Store, 'live'>, machine: Machine, now: number): StillAllowed {
  return (session) => liveSessions(store.live(machine, now)).get(session) ?? true
}
