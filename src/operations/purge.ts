import type { Store } from '../formats/format.js'
import type { ErrorItem } from '../model/report.js'
import type { PurgeContext, PurgeOptions } from './purge/options.js'
import { PurgePlanner, type Purge } from './purge/planner.js'
import { purgeTarget } from './purge/target.js'

export type { PurgeContext, PurgeOptions } from './purge/options.js'
export type { Purge } from './purge/planner.js'
export { rewriteShared } from './purge/shared.js'

/**
 * Plans the removal of all state of projects, chosen by the folder that sessions recorded, never by the name of a folder of
 * the store (R25, R98). What is live stays, and so does what shares a folder with another project. Reads only.
 * @throws UsageError for the home folder, a root, the store and what contains it; NoMatchError when nothing belongs to them
 */
export function planPurge(store: Store, options: PurgeOptions, context: PurgeContext): Purge {
  const place = { cwd: context.cwd, home: context.home, root: store.root, probe: context.probe }
  const targets = options.projects.map((project) => purgeTarget(project, place))
  const planner = new PurgePlanner(store, options, context, targets)
  return planner.plan()
}

/** Paths of the sessions that are still there after they were removed (R30). */
export function leftBehind(store: Store, removed: Iterable<string>): ErrorItem[] {
  const gone = new Set(removed)
  return store.inventory().sessions.flatMap(({ id, members }) => {
    if (!gone.has(id)) return []
    return members.map(({ path }) => ({ code: 'LEFT_BEHIND', path, message: `${path} of the removed session ${id} is still there` }))
  })
}
