import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../../formats/format.js'
import { listFolder } from '../../fs/folder.js'
import { listTrash } from '../../plan/trash.js'

/**
 * Removes redo points of sessions that are neither in the store nor in its trash any more: they hold contents of files, and
 * nothing can use them. Hold the store's lock. Returns the sessions whose points went.
 * @throws NewerFormatError when a newer version of ours put something into the trash
 */
export function sweepRedo(store: Store): string[] {
  const folder = join(store.sidecar, 'redo')
  const { entries } = listFolder(folder)
  if (entries.length === 0) return []
  const needed = new Set([...store.inventory().sessions.map(({ id }) => id), ...listTrash(store).map(({ session }) => session)])
  const swept: string[] = []
  for (const entry of entries) {
    if (!entry.isDirectory() || needed.has(entry.name)) continue
    rmSync(join(folder, entry.name), { recursive: true, force: true })
    swept.push(entry.name)
  }
  return swept
}
