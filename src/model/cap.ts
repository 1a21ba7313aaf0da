import type { History, Reference } from './history.js'

/** Checkpoints that Claude Code keeps (formats/claude-code section 5). */
export const defaultCap = 100

/** True when the agent removed the backup by right: it dropped every checkpoint that names it. Version 1 is exempt from its cap. */
export function isPruned(history: History, reference: Reference, cap: number): boolean {
  return reference.dropped === true || (reference.version !== 1 && !isWithinCap(history, reference, cap))
}

/** True when a checkpoint within the newest `cap`, or a line of no known checkpoint, names the backup. */
export function isWithinCap(history: History, reference: Reference, cap: number): boolean {
  return reference.pinned || reference.newest >= history.checkpoints.length - cap
}
