import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { isFinished, journalledRuns } from './journal.js'
import { isRunId } from './run-id.js'
import type { Sidecar } from './sidecar.js'
import { goneEnding, unfinishedEnding } from './slot.js'

/** Runs that left something to complete or to roll back, the oldest first: by their journals, and by the names in the trash. */
export function unfinishedRuns(sidecar: Sidecar): string[] {
  const journalled = journalledRuns(sidecar).filter((runId) => !isFinished(sidecar, runId))
  const inTrash = names(sidecar.trash).filter((runId) => isRunId(runId) && names(join(sidecar.trash, runId)).some(isUndone))
  return [...new Set([...journalled, ...inTrash])].sort()
}

/** True for a folder in the trash that is being filled or being removed for good. */
export function isUndone(name: string): boolean {
  return name.endsWith(unfinishedEnding) || name.endsWith(goneEnding)
}

/** The names in a folder; none when it cannot be listed. */
export function names(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
