import type { Store } from '../formats/format.js'
import { NoStoreError } from '../model/errors.js'
import type { ExpireOptions, PlanContext } from './expire/options.js'
import { ExpirePlanner, type Expiry } from './expire/planner.js'

export type { ExpireOptions, PlanContext } from './expire/options.js'
export type { Expiry } from './expire/planner.js'

/**
 * Plans the removal of every session that is older than its retention period (design section 7), over the whole store
 * whatever the working folder (R17). Reads only; without its own ledger all that is there counts as there from the beginning.
 * @throws RetentionUnknowableError when a settings layer cannot be used (R05, R06); NoStoreError when nothing in a store that
 *   is not empty is recognised (R18); NewerFormatError when the ledger is of a newer version of ours
 */
export function planExpire(store: Store, options: ExpireOptions, context: PlanContext): Expiry {
  const inventory = store.inventory()
  if (inventory.sessions.length === 0 && inventory.unrecognised > 0) {
    const hint = 'check --root, or report the names so that this version learns them; nothing was removed'
    throw new NoStoreError(`nothing in ${store.root} is recognised, and it is not empty`, { hint })
  }
  const planner = new ExpirePlanner(store, options, context, inventory)
  return planner.plan()
}
