import { hash } from 'node:crypto'
import { parseBackupName } from '../../model/names.js'
import type { State } from './state.js'

/** First half of the name of a backup: 16 hex digits of the SHA-256 of the stored path (formats/pi-candy-undo section 3). */
export function pathHashOf(key: string): string {
  return hash('sha256', key, 'hex').slice(0, 16)
}

/** The highest version that any record of a path has; 0 when none has it. */
export function highestVersion({ originals, snapshots }: State, key: string): number {
  return [originals, ...snapshots.map(({ files }) => files)].reduce((highest, files) => Math.max(highest, files.get(key)?.version ?? 0), 0)
}

/** The highest version of each path hash among names of backups; other names are passed over. */
export function versionsIn(names: Iterable<string>): Map<string, number> {
  const highest = new Map<string, number>()
  for (const name of names) {
    const parsed = parseBackupName(name)
    if (parsed !== undefined) highest.set(parsed.pathHash, Math.max(highest.get(parsed.pathHash) ?? 0, parsed.version))
  }
  return highest
}
