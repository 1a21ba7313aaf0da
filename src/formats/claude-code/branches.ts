import type { CheckpointTree } from '../../model/branches.js'
import type { SessionRef } from '../../model/session.js'
import { readChain } from './chain.js'

/**
 * The checkpoints of a session that belong to a message, each with the one before it on its branch, by following the
 * `parentUuid` of the messages between them. Side ends without a checkpoint (parallel tool results, notices) are no
 * branches. A chain that is broken by a damaged line ends there: what was before becomes a branch of its own, so more
 * is kept. Throws the system error when a transcript cannot be read.
 */
export function readBranches(root: string, session: SessionRef, checkpoints: ReadonlySet<string>): CheckpointTree {
  const parents = new Map<string, string | undefined>()
  readChain(root, session, ({ id, parent }) => {
    parents.set(id, parent)
  })
  const tree = new Map<string, string | undefined>()
  for (const id of checkpoints) {
    if (parents.has(id)) tree.set(id, checkpointAbove(id, parents, checkpoints))
  }
  return tree
}

function checkpointAbove(id: string, parents: ReadonlyMap<string, string | undefined>, checkpoints: ReadonlySet<string>): string | undefined {
  const seen = new Set([id])
  for (let at = parents.get(id); at !== undefined && !seen.has(at); at = parents.get(at)) {
    if (checkpoints.has(at)) return at
    seen.add(at)
  }
  return undefined
}
