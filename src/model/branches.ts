/**
 * The checkpoints of a session as a tree: each checkpoint id with a message, to the checkpoint before it on its branch;
 * `undefined` for the first. A conversation rewind starts a new branch (formats/claude-code section 8).
 */
export type CheckpointTree = ReadonlyMap<string, string | undefined>

/** Checkpoints that no other one follows: where a conversation stands, or stood before it was rewound. */
export function tipsOf(tree: CheckpointTree): string[] {
  const followed = new Set(tree.values())
  return [...tree.keys()].filter((id) => !followed.has(id))
}

/** The newest `count` checkpoints of every branch; all of those that no tip leads to, because their parents go in a circle. */
export function newestOnBranches(tree: CheckpointTree, count: number): Set<string> {
  const kept = new Set<string>()
  const reached = new Set<string>()
  for (const tip of tipsOf(tree)) {
    let left = count
    for (let at: string | undefined = tip; at !== undefined && (left > 0 || !reached.has(at)); at = tree.get(at)) {
      if (left > 0) kept.add(at)
      reached.add(at)
      left -= 1
    }
  }
  for (const id of tree.keys()) if (!reached.has(id)) kept.add(id)
  return kept
}
