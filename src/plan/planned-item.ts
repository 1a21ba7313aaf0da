import { observe, sameIdentity, sameInode } from '../fs/identity.js'
import type { InodeName, Observation } from '../fs/identity.js'
import { insideRoot } from '../fs/safe-path.js'
import type { Member } from '../model/session.js'
import type { PlannedItem } from './action.js'

export interface Planned {
  readonly item: PlannedItem
  /** See `Observation.newestNs`. */
  readonly newestNs: bigint
  /** Files at or below the path, for `FreedBytes`. */
  readonly inodes: readonly InodeName[]
}

/**
 * Looks at one path of a session for a plan. `undefined` when nothing is there.
 * @throws FenceError when a folder on the way is a link; system errors when a folder cannot be listed
 */
export function planItem(root: string, member: Pick<Member, 'kind' | 'path'>): Planned | undefined {
  const path = insideRoot(root, member.path)
  const seen = path === undefined ? undefined : observe(path)
  return seen === undefined ? undefined : { item: itemOf(member, seen), newestNs: seen.newestNs, inodes: seen.inodes }
}

function itemOf(member: Pick<Member, 'kind' | 'path'>, seen: Observation): PlannedItem {
  return {
    path: member.path,
    kind: member.kind,
    type: seen.type,
    mode: seen.mode,
    identity: seen.identity,
    ...(seen.tree === undefined ? {} : { tree: seen.tree }),
  }
}

/** Says how a path differs from what was planned, or `undefined` when it is still the same. */
export function changeSince(planned: PlannedItem, seen: Observation): string | undefined {
  if (planned.type !== seen.type) return `${planned.path} is no longer a ${planned.type}`
  if (!sameInode(planned.identity, seen.identity)) return `${planned.path} was replaced since the plan was made`
  if (planned.tree === undefined || seen.tree === undefined) {
    return sameIdentity(planned.identity, seen.identity) ? undefined : `${planned.path} was written to since the plan was made`
  }
  const { entries, bytes, newestNs } = seen.tree
  const same = planned.tree.entries === entries && planned.tree.bytes === bytes && planned.tree.newestNs === newestNs
  return same ? undefined : `something in ${planned.path} changed since the plan was made`
}

/**
 * Counts the bytes that become free: an inode counts when the last of its names goes (R68). One counter for a whole plan, so
 * that a backup linked in two sessions counts when both go.
 */
export class FreedBytes {
  readonly #names = new Map<string, number>()

  /** Bytes freed by taking these names away, after all those taken before. */
  take(inodes: readonly InodeName[]): number {
    let freed = 0
    for (const { key, links, bytes } of inodes) {
      const taken = (this.#names.get(key) ?? 0) + 1
      if (links > 1) this.#names.set(key, taken)
      if (taken === links) freed += bytes
    }
    return freed
  }
}
