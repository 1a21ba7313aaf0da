import { describe, expect, it } from 'vitest'
import { planExpire } from '../../src/operations/expire.js'
import { corpusStores, extractStore } from '../helpers/corpus.js'
import { carry, dayMs, expireOptions, machineWith, openStore, restore, storeTree } from '../helpers/removal.js'

/** Long after everything in the corpus, and with the guards open. */
const later = Date.parse('2028-01-01T00:00:00.000Z')

describe('every store of the corpus', () => {
  const stores = corpusStores('claude-code').map(({ version, scenario }) => [version, scenario] as const)

  it.each(stores)('R60: %s %s: the tree after expire and restore is the one before: bytes, modes, times, links', async (version, scenario) => {
    const { root } = await extractStore(version, scenario)
    const store = openStore(root)
    const sessions = store.inventory().sessions.filter(({ members }) => members.some(({ kind }) => kind === 'transcript'))
    expect(sessions.length).toBeGreaterThan(0)
    const before = storeTree(root)
    const removal = planExpire(store, expireOptions({ olderThanMs: dayMs, floorMs: 0, quietPeriodMs: 0 }), { now: later, machine: machineWith() })
    expect(removal.plan.kept).toEqual([])
    const result = await carry(store, removal, { at: later })
    expect(result.errors).toEqual([])
    for (const { id } of sessions) expect(Object.keys(storeTree(root)).filter((path) => path.includes(id))).toEqual([])
    await restore(store, result.runId)
    expect(storeTree(root)).toEqual(before)
  })
})
