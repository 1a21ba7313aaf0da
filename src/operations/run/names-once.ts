import type { Inventory, Store } from '../../formats/format.js'

/** How long an inventory is handed on, in milliseconds: after a long verification sessions may have come or gone. */
const goodForMs = 60_000

export interface NamesOnce {
  /** The store, whose inventory is taken once and handed on. */
  readonly store: Store
  /** Says that names in the store have changed: whoever asks next gets a new inventory. */
  readonly forget: () => void
}

/**
 * Takes the names of a store once for all steps of a job, as long as nothing was moved in between.
 * @param monotonic milliseconds since any fixed moment
 */
export function namesOnce(store: Store, monotonic: () => number): NamesOnce {
  let taken: { readonly at: number; readonly inventory: Inventory } | undefined
  return {
    store: {
      ...store,
      inventory: () => {
        if (taken === undefined || monotonic() - taken.at > goodForMs) taken = { at: monotonic(), inventory: store.inventory() }
        return taken.inventory
      },
    },
    forget: () => {
      taken = undefined
    },
  }
}
