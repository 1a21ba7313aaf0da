import { dirname } from 'node:path'
import { AnchoredFolder } from '../../fs/anchored-folder.js'
import { digestStretch } from '../../fs/content.js'
import { systemErrorCode } from '../../model/errors.js'
import type { BackupRecord } from '../../model/backup.js'
import type { BackupState, Wanted } from '../../model/restore-plan.js'
import { BackupSource } from './backup-source.js'
import { PathPlanner } from './path-planner.js'
import type { RestorePlan } from './plan.js'
import type { PointEntry } from './redo-point.js'
import { readPoint } from './redo-stack.js'

type FileEntry = PointEntry & { readonly state: 'file' }

/**
 * What it takes to bring the files of a redo point back to how it has them. The digest of every saved file is checked;
 * one that differs makes its path fail.
 * @param where folder of the point
 * @param only the paths to look at; all when not given
 * @throws as `RedoStack.read`
 */
export function planFromPoint(session: string, where: string, only?: ReadonlySet<string>): RestorePlan {
  const point = readPoint(where)
  const files = new Map<BackupRecord, FileEntry>()
  const wanted = point.entries.flatMap((entry): Wanted[] => {
    if (entry.state === 'skipped' || only?.has(entry.path) === false) return []
    const record: BackupRecord = { name: entry.state === 'file' ? entry.blob : null, version: 1, parent: entry.folder }
    const about = { path: entry.path, keys: [entry.path] }
    if (entry.state === 'absent') return [{ ...about, resolution: { state: 'absent', record } }]
    files.set(record, entry)
    return [{ ...about, resolution: { state: 'backup', name: entry.blob, record } }]
  })
  const folder = AnchoredFolder.open(where)
  const source = BackupSource.open(where)
  try {
    const planner = new PathPlanner({
      start: undefined,
      home: dirname(where),
      windows: false,
      fenced: [],
      source,
      backupOf: ({ record }) => inspectSaved(folder, files.get(record)),
      yielding: new Set(point.folders),
    })
    const emptied = point.folders.toReversed()
    return { session, checkpoint: point.checkpoint, scope: 'code', source: where, inline: new Map(), items: planner.planAll(wanted), emptied }
  } finally {
    source.close()
    folder.close()
  }
}

function inspectSaved(folder: AnchoredFolder, entry: FileEntry | undefined): BackupState {
  if (entry === undefined) return { kind: 'missing' }
  const { mode, ...stretch } = entry
  try {
    const isWhole = digestStretch(folder, entry.blob, stretch) === entry.sha256
    if (!isWhole) return { kind: 'damaged', reason: 'its bytes are not those that were saved' }
    return { kind: 'file', size: entry.size, offset: entry.offset, mode }
  } catch (error) {
    const code = systemErrorCode(error)
    return code === 'ENOENT' ? { kind: 'missing' } : { kind: 'unreadable', reason: code ?? 'unknown error' }
  }
}
