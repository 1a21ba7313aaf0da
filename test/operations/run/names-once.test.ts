import { describe, expect, it } from 'vitest'
import { nightly } from '../../../jobs/nightly.js'
import type { Store } from '../../../src/formats/format.js'
import { FirstSeen } from '../../../src/operations/first-seen.js'
import { namesOnce } from '../../../src/operations/run/names-once.js'
import { now, openStore, session } from '../../helpers/removal.js'
import { S1, S2, emptyRoot } from '../../helpers/store.js'
import { runOn, twoSessions } from './running.js'

/** A store that counts how often its names are taken. */
function counting(root: string): { readonly store: Store; readonly count: () => number } {
  let count = 0
  const store = openStore(root)
  return {
    store: {
      ...store,
      inventory: () => {
        count += 1
        return store.inventory()
      },
    },
    count: () => count,
  }
}

describe('the names of a store', () => {
  it('are taken once by the steps of a nightly job that removes nothing, and once more to measure what it leaves', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 1)
    const { store, count } = counting(root)
    await runOn(store, nightly)
    expect(count()).toBe(2)
  })

  it('are taken anew after a removal: the ledger no longer knows what is gone', async () => {
    const root = await twoSessions()
    const { store, count } = counting(root)
    const report = await runOn(store, nightly)
    expect(report.plan.map(({ session: id }) => id)).toEqual([S2])
    expect(count()).toBe(3)
    // Who comes back has a new date, who stayed has none.
    const ledger = FirstSeen.read(openStore(root))
    const [back] = openStore(await twoSessions()).inventory().sessions.filter(({ id }) => id === S2)
    if (back === undefined) throw new Error('there is no such session')
    expect(ledger.seenAt(back, now)).toBe(now)
  })

  it('are handed on for a minute, and taken anew when somebody says so', async () => {
    const { store, count } = counting(await twoSessions())
    let time = 0
    const names = namesOnce(store, () => time)
    const ask = (at: number): number => {
      time = at
      names.store.inventory()
      return count()
    }
    expect([ask(0), ask(60_000), ask(60_001), ask(60_002)]).toEqual([1, 1, 2, 2])
    names.forget()
    expect(ask(60_003)).toBe(3)
  })
})
