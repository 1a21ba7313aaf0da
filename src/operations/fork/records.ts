import type { BackupRecord } from '../../model/backup.js'
import type { Checkpoint, History } from '../../model/history.js'
import { recordAt } from '../../model/resolve.js'

/** A checkpoint whose paths resolve otherwise in the fork than in the source. */
export interface Departure {
  readonly checkpoint: string
  readonly path: string
}

/**
 * Compares what every checkpoint of a fork resolves to with what the source makes of it (R62). A checkpoint that the source
 * does not have is the fork's own. With `whole` a path that only the source knows is a departure as well.
 */
export function findDeparture(source: History, target: History, whole: boolean): Departure | undefined {
  const bySource = new Map(source.checkpoints.map((checkpoint) => [checkpoint.id, checkpoint]))
  for (const checkpoint of target.checkpoints) {
    const known = bySource.get(checkpoint.id)
    if (known === undefined) {
      if (whole) return { checkpoint: checkpoint.id, path: '' }
      continue
    }
    let shared = 0
    for (const path of source.tracked) {
      const wanted = recordAt(source, known, path)
      if (wanted === undefined) continue
      const found = recordAt(target, checkpoint, path)
      // Of what nobody knows in the source nothing is lost.
      if (found === undefined ? whole && wanted.unusable === undefined : !isSame(wanted, found)) return { checkpoint: checkpoint.id, path }
      if (found !== undefined) shared += 1
    }
    const own = whole ? ownPath(source, known, target, checkpoint, shared) : undefined
    if (own !== undefined) return { checkpoint: checkpoint.id, path: own }
  }
  return undefined
}

/** A path that only the fork resolves, when there is more than what both do. */
function ownPath(source: History, known: Checkpoint, target: History, checkpoint: Checkpoint, shared: number): string | undefined {
  const found = [...target.tracked].filter((path) => recordAt(target, checkpoint, path) !== undefined)
  return found.length === shared ? undefined : found.find((path) => recordAt(source, known, path) === undefined)
}

/** True when both say that the path was absent, that nobody knows, or that the same backup holds it. */
function isSame(a: BackupRecord, b: BackupRecord): boolean {
  if (a.unusable !== undefined || b.unusable !== undefined) return (a.unusable === undefined) === (b.unusable === undefined)
  return a.name === b.name
}
