import type { ProbedFolder } from '../../fs/probe.js'
import type { SessionSeals } from '../seals.js'

/** What is counted of one session. */
export interface SessionCounts {
  readonly unchanged: boolean
  readonly checkpoints: number
  readonly proven: number
  readonly backups: number
  readonly digested: number
  readonly sealed: number
  /** Bytes of the backups with one link. */
  readonly bytes: number
  /** Those with more: inode and size by turns. */
  readonly shared: readonly (string | number)[]
}

/** Counts the backups of a session, which `isBackup` tells by their names. `seals` are those before the check. */
export function countSession(
  folder: ProbedFolder | undefined,
  seals: SessionSeals | undefined,
  isBackup: (name: string) => boolean,
  { unchanged = false, checkpoints = 0, proven = 0 } = {},
): SessionCounts {
  const shared: (string | number)[] = []
  let backups = 0
  let digested = 0
  let sealed = 0
  let bytes = 0
  for (const { name, node, digest, links, inode, size } of folder?.entries ?? []) {
    if (node !== 'file' || !isBackup(name)) continue
    backups += 1
    if (digest !== undefined) digested += 1
    if (seals?.backups.has(name) === true) sealed += 1
    if (links > 1) shared.push(inode, size)
    else bytes += size
  }
  return { unchanged, checkpoints, proven, backups, digested, sealed, bytes, shared }
}
