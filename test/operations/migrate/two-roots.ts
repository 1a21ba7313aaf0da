import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../../../src/formats/format.js'
import { resolve } from '../../../src/model/resolve.js'
import type { DshStore } from '../../helpers/dsh.js'

/** A small session in a root. */
export function newSession(store: DshStore, session: string): void {
  store.bytes({ anchor: 1, call: 'a', file: '/p/a', before: session, time: 1 }, session)
  store.markers(3, session)
}

/** The text of every path at every checkpoint of the only session of a store. */
export function unionPlans(store: Store, now: number): Record<string, Record<string, string>> {
  const [session] = store.inventory().sessions
  if (session === undefined) throw new Error('no session')
  const { history } = store.read(session, { now })
  return Object.fromEntries(
    history.checkpoints.map((checkpoint) => {
      const files = [...resolve(history, checkpoint)].map(([path, resolution]): [string, string] => {
        if (resolution.state !== 'backup') return [path, resolution.state]
        const bytes = store.inlineBytes?.(session.id, resolution.name) ?? readFileSync(join(store.root, session.id, resolution.name))
        return [path, bytes.toString('utf8')]
      })
      return [checkpoint.id, Object.fromEntries(files)]
    }),
  )
}
