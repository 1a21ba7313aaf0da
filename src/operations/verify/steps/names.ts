import type { ProbedFolder } from '../../../fs/probe.js'
import { finding, type Finding } from '../../../model/finding.js'
import { isBackupOf } from '../../backup-files.js'
import { placeOf, type SessionFacts } from '../facts.js'

/** Names and types in the backup folder: nothing but plain files of the known shape belongs there (R14, R55, R61). */
export function checkNames(facts: SessionFacts): Finding[] {
  const { folder, ref } = facts
  if (folder === undefined) return []
  const session = ref.id
  if (folder.error !== undefined) {
    const path = facts.store.backupFolder(session)
    return [finding('unreadable', `the backup folder cannot be listed (${folder.error}); the session is left alone`, { session, path })]
  }
  const findings: Finding[] = []
  for (const entry of folder.entries) {
    const good = isBackupOf(facts.store, facts.reading.history.references, entry.name)
    if (good && entry.node === 'file' && entry.error === undefined) continue
    // Where records lie among the backups the format itself says what does not belong there.
    if (!good && facts.store.backupFolders !== undefined) continue
    const path = placeOf(facts, entry.name)
    if (!good) findings.push(finding('foreign-file', 'not a backup name; left alone', { session, path }))
    else if (entry.node !== 'file') findings.push(finding('not-regular', `${entry.node} stands where a backup should be`, { session, path }))
    else findings.push(finding('unreadable', `the backup cannot be read (${String(entry.error)})`, { session, path }))
  }
  return findings
}

/** Number of backups that other users can read (R90): the folder lets them in and the file lets them read. */
export function countOpenBackups(folder: ProbedFolder | undefined, isBackup: (name: string) => boolean): number {
  if (folder === undefined || (folder.mode & 0o011) === 0) return 0
  return folder.entries.filter((entry) => entry.node === 'file' && (entry.mode & 0o044) !== 0 && isBackup(entry.name)).length
}
