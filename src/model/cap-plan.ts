import { newestOnBranches, type CheckpointTree } from './branches.js'
import type { History, Reference } from './history.js'
import { parseBackupName } from './names.js'

/**
 * Which checkpoints a cap keeps, by their order: the newest `cap` of the session, as the agent counts them
 * (formats/claude-code section 5), and the newest `cap` of every branch that can still be reached.
 */
export function keptCheckpoints(history: History, tree: CheckpointTree, cap: number): boolean[] {
  const onBranches = newestOnBranches(tree, cap)
  const { checkpoints } = history
  return checkpoints.map(({ id, order }) => order >= checkpoints.length - cap || onBranches.has(id))
}

/**
 * Backups that no kept checkpoint needs. A backup stays when any line that names it, folded away or not, may belong to
 * a kept checkpoint: between its oldest and its newest mention no checkpoint is kept. Version 1 stays always (R36), and
 * so does what a path falls back to, and what a line of no known checkpoint names (R33, R38, R74).
 */
export function removableBackups(history: History, kept: readonly boolean[]): Reference[] {
  const keptBefore = [0]
  for (const [order, keep] of kept.entries()) keptBefore.push((keptBefore[order] ?? 0) + (keep ? 1 : 0))
  const originals = new Set([...history.originals.values()].map((record) => record.name))
  return [...history.references.values()].filter((reference) => {
    const { name, version, pinned, dropped, oldest, newest } = reference
    if (pinned || dropped === true || version === 1 || parseBackupName(name)?.version === 1 || originals.has(name)) return false
    return keptBefore[oldest] === keptBefore[newest + 1]
  })
}
