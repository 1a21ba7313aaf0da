import type { History } from '../../model/history.js'
import { resolve, type Resolution } from '../../model/resolve.js'

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
    const wanted = resolve(source, known)
    const found = resolve(target, checkpoint)
    for (const [path, resolution] of wanted) {
      const other = found.get(path)
      if (other === undefined ? whole : !isSame(resolution, other)) return { checkpoint: checkpoint.id, path }
    }
    if (whole && found.size !== wanted.size) return { checkpoint: checkpoint.id, path: [...found.keys()].find((path) => !wanted.has(path)) ?? '' }
  }
  return undefined
}

function isSame(a: Resolution, b: Resolution): boolean {
  return a.state === b.state && (a.state !== 'backup' || b.state !== 'backup' || a.name === b.name)
}
