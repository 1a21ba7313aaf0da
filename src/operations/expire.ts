import type { Store } from '../formats/format.js'
import type { ExpireOptions, PlanContext } from './expire/options.js'
import { ExpirePlanner, type Expiry } from './expire/planner.js'
import { recognisedInventory } from './recognised.js'

export type { ExpireOptions, PlanContext } from './expire/options.js'
export type { Expiry } from './expire/planner.js'

/**
 * Plans the removal of every session that is older than its retention period (design section 7), over the whole store
 * whatever the working folder (R17). Reads only; without its own ledger all that is there counts as there from the beginning.
 * @throws RetentionUnknowableError when a settings layer cannot be used (R05, R06); NoStoreError when nothing in a store that
 *   is not empty is recognised (R18); NewerFormatError when the ledger is of a newer version of ours
 */
export function planExpire(store: Store, options: ExpireOptions, context: PlanContext): Expiry {
  return new ExpirePlanner(store, options, context, recognisedInventory(store)).plan()
}
