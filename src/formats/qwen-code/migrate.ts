import { join } from 'node:path'
import { listFolder } from '../../fs/folder.js'
import { finding } from '../../model/finding.js'
import { isBackupName } from '../../model/names.js'
import type { SessionReading, SessionRef } from '../../model/session.js'
import type { Migration } from '../format.js'
import { backupFolderOf } from './layout.js'

/**
 * What a migration can say of a session whose backups no record names: the first weeks of the feature kept none (formats/qwen-code
 * section 1; section 10, 19). There is nothing to bring over; which file a backup was made of, and when, is written nowhere.
 * `undefined` for every other session.
 */
export function withoutMetadata(root: string, session: SessionRef, { history, damaged, busy, id }: SessionReading, hasTranscript: boolean): Migration | undefined {
  if (history.lines > 0 || damaged || busy) return undefined
  const path = backupFolderOf(id)
  const count = listFolder(join(root, path)).entries.filter((entry) => entry.isFile() && isBackupName(entry.name)).length
  if (count === 0) return undefined
  const why = hasTranscript
    ? 'no record of the transcript names any of them: the first releases that made backups kept none'
    : 'the session has no transcript in this store, which alone would name them'
  const message = `${String(count)} backups, and ${why}; nothing can be brought over, and they stay as they are`
  return { reason: 'it has no metadata', files: [], drop: [], findings: [finding('no-metadata', message, { session: session.id, path })] }
}
