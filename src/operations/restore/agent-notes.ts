import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../../formats/format.js'
import { sameText } from '../../fs/content.js'
import { systemErrorCode } from '../../model/errors.js'
import { BackupSource } from './backup-source.js'
import type { RestorePlan } from './plan.js'

/**
 * Path to a note for each file of a plan that the agent's own restore would treat otherwise. Ask before the plan is applied.
 * A file that cannot be looked at has none.
 */
export function agentNotes(store: Pick<Store, 'agentDifference'>, plan: RestorePlan): Map<string, string> {
  const notes = new Map<string, string>()
  const { agentDifference } = store
  const restored = plan.items.filter(({ decision, node }) => decision.action === 'restore' && node.kind === 'file')
  if (agentDifference === undefined || restored.length === 0) return notes
  const source = BackupSource.open(plan.source, plan.inline)
  try {
    for (const { path, decision, node, place } of restored) {
      if (decision.action !== 'restore' || node.kind !== 'file' || place === undefined) continue
      const at = source.at(decision.backup)
      if (!('folder' in at)) continue
      try {
        const { size, mode, mtimeMs } = lstatSync(at.folder.at(at.name))
        const isSameText = (): boolean => sameText(join(place.folder, place.name), at, decision)
        const note = agentDifference({ node, backup: { size, mode: mode & 0o7777, mtimeMs }, isSameText })
        if (note !== undefined) notes.set(path, note)
      } catch (error) {
        if (systemErrorCode(error) === undefined) throw error
      }
    }
    return notes
  } finally {
    source.close()
  }
}
