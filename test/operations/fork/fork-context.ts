import { join } from 'node:path'
import { openClaudeCode } from '../../../src/formats/claude-code/index.js'
import type { Store } from '../../../src/formats/format.js'
import { digestFile } from '../../../src/fs/probe.js'
import { resolve } from '../../../src/model/resolve.js'
import type { SessionRef } from '../../../src/model/session.js'
import type { ForkContext } from '../../../src/operations/fork/options.js'

export const now = Date.parse('2026-12-01T00:00:00.000Z')
/** Id for a session that is made. */
export const target = '99999999-9999-4999-8999-999999999999'

export function forkContext(more: Partial<ForkContext> = {}): ForkContext {
  return { now, pid: process.pid, token: 'c0ffee', processExists: () => true, ...more }
}

export function openStore(root: string): Store {
  return openClaudeCode(root, { home: join(root, '..'), env: {}, platform: 'linux' })
}

export function sessionOf(store: Store, id: string): SessionRef {
  const found = store.inventory().sessions.find((session) => session.id === id)
  if (found === undefined) throw new Error(`no session ${id}`)
  return found
}

/** Checkpoint → path → digest of the bytes there, `absent`, or what is wrong: what a rewind of the session would see. */
export function resolved(store: Store, id: string): Record<string, Record<string, string>> {
  const { history } = store.read(sessionOf(store, id), { now })
  return Object.fromEntries(
    history.checkpoints.map((checkpoint) => [
      checkpoint.id,
      Object.fromEntries(
        [...resolve(history, checkpoint)].map(([path, resolution]) => {
          if (resolution.state !== 'backup') return [path, resolution.state]
          return [path, digestFile(join(store.root, store.backupFolder(id), resolution.name)).digest]
        }),
      ),
    ]),
  )
}
