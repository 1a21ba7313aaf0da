import type { Inventory, Store } from '../formats/format.js'
import { NoStoreError } from '../model/errors.js'

/**
 * The inventory of a store of which something is known. An empty store is one, too.
 * @throws NoStoreError when nothing in a store that is not empty is recognised (R18)
 */
export function recognisedInventory(store: Pick<Store, 'root' | 'inventory'>): Inventory {
  const inventory = store.inventory()
  if (inventory.sessions.length === 0 && inventory.unrecognised > 0) {
    const hint = 'check --root, or report the names so that this version learns them; nothing was changed'
    throw new NoStoreError(`nothing in ${store.root} is recognised, and it is not empty`, { hint })
  }
  return inventory
}
