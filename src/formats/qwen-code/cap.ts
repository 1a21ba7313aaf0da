import { join } from 'node:path'
import { probeFolder } from '../../fs/probe.js'
import type { History } from '../../model/history.js'
import { isBackupName } from '../../model/names.js'
import { resolve } from '../../model/resolve.js'
import type { SessionReading, SessionRef } from '../../model/session.js'
import type { CapChoice } from '../format.js'
import { backupFolderOf } from './layout.js'

/**
 * Which backups a cap of `max` lets go (formats/qwen-code sections 6 and 11): those that no snapshot among the newest `max`
 * of the list names or falls back to. First versions are no other exception. What only evicted snapshots and dead branches name
 * goes as well; what no line names stays (R40). Nothing is rewritten: the list can only be appended to, and the agent evicts by
 * itself beyond its own cap; below that it marks what is not there as failed when it loads, and a rewind leaves such a path alone.
 * @param spared backups that stay whatever names them
 * @param outside a transcript beyond the root: nothing tells when a line is appended to it
 */
export function chooseForCap(root: string, session: SessionRef, { history }: SessionReading, max: number, spared: ReadonlySet<string>, outside: string | undefined): CapChoice {
  const count = history.checkpoints.length
  const checkpoints = Math.max(0, count - max)
  const folder = backupFolderOf(session.id)
  const { entries } = probeFolder({ path: join(root, folder), digest: 'none' })
  const needed = namesNeeded(history, checkpoints)
  const drop = entries.flatMap(({ name, node }) => {
    const reference = node === 'file' && isBackupName(name) ? history.references.get(name) : undefined
    if (reference === undefined || reference.pinned || spared.has(name) || needed.has(name)) return []
    const goes = reference.dropped === true || reference.newest < count - max
    return goes ? [{ kind: 'backups' as const, path: `${folder}/${name}`, folder: false }] : []
  })
  if (outside === undefined || drop.length === 0) return { checkpoints, drop, rewrites: [] }
  return { checkpoints, drop: [], rewrites: [], refusal: `its transcript ${outside} lies outside of the store` }
}

/** What the checkpoints from `first` on resolve to. */
function namesNeeded(history: History, first: number): Set<string> {
  const needed = new Set<string>()
  for (const checkpoint of history.checkpoints.slice(first)) {
    for (const resolution of resolve(history, checkpoint).values()) if (resolution.state === 'backup') needed.add(resolution.name)
  }
  return needed
}
