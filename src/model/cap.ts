import type { History, Reference } from './history.js'

/** Checkpoints that Claude Code keeps (formats/claude-code section 5). */
export const defaultCap = 100

/** True when a checkpoint within the newest `cap`, or a line of no known checkpoint, names the backup. */
export function isWithinCap(history: History, reference: Reference, cap: number): boolean {
  return reference.pinned || reference.newest >= history.checkpoints.length - cap
}
