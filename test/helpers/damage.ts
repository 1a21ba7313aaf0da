import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  linkSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { setTime, writeBackup, writeStoreFile } from './store.js'
import { keepingTimes, transcriptOf } from './transcript-damage.js'

export * from './transcript-damage.js'

/*
 * Damage to backups and names of a good store, one function each; damage to transcripts stands in its own file.
 */

export function backupOf(root: string, session: string, name: string): string {
  return join(root, 'file-history', session, name)
}

// Backups

export function removeBackup(root: string, session: string, name: string): void {
  rmSync(backupOf(root, session, name))
}

export function removeBackupFolder(root: string, session: string): void {
  rmSync(join(root, 'file-history', session), { recursive: true })
}

/** Turns one bit over; size, mode, mtime and inode stay (R47). */
export function flipBit(root: string, session: string, name: string, offset = 0): void {
  const path = backupOf(root, session, name)
  const bytes = readFileSync(path)
  if (offset >= bytes.length) throw new Error(`${path} has no byte ${String(offset)}`)
  bytes.writeUInt8(bytes.readUInt8(offset) ^ 1, offset)
  keepingTimes(path, () => {
    writeFileSync(path, bytes)
  })
}

/** Cuts a backup to no bytes; the mtime stays. */
export function cutToZero(root: string, session: string, name: string): void {
  const path = backupOf(root, session, name)
  keepingTimes(path, () => {
    writeFileSync(path, '')
  })
}

export function replaceBySymlink(root: string, session: string, name: string, target: string): void {
  removeBackup(root, session, name)
  symlinkSync(target, backupOf(root, session, name))
}

export function replaceByFifo(root: string, session: string, name: string): void {
  removeBackup(root, session, name)
  execFileSync('mkfifo', [backupOf(root, session, name)])
}

export function replaceByFolder(root: string, session: string, name: string): void {
  removeBackup(root, session, name)
  mkdirSync(backupOf(root, session, name))
}

/** Makes the backup folder of a session a link to a folder elsewhere, which gets its content (R55). */
export function replaceBackupFolderBySymlink(root: string, session: string, target: string): void {
  const folder = join(root, 'file-history', session)
  renameSync(folder, target)
  symlinkSync(target, folder)
}

/** A second name of a backup in another session, same inode (R67). */
export function linkIntoSession(root: string, session: string, name: string, other: string): void {
  const target = backupOf(root, other, name)
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 })
  linkSync(backupOf(root, session, name), target)
}

/** Lets other users of the machine read the backups. */
export function widenModes(root: string, session: string): void {
  for (const folder of [join(root, 'file-history'), join(root, 'file-history', session)]) chmodSync(folder, 0o755)
}

// Names

/** A backup folder that no session owns. */
export function makeOrphanFolder(root: string, session: string, name: string, options: { readonly mtime?: number } = {}): void {
  const path = writeBackup(root, session, name, 'nobody wants this\n', options)
  if (options.mtime !== undefined) setTime(dirname(path), options.mtime)
}

/** Five files that no agent makes (R14); returns their paths relative to the root. */
export function addForeignFiles(root: string, session: string): string[] {
  const slug = transcriptOf(root, session).split('/').at(-2) ?? ''
  const folder = `file-history/${session}`
  const name = readdirSync(join(root, folder))[0] ?? 'aaaaaaaaaaaaaaaa@v1'
  const paths = [`projects/${slug}/notes.md`, `projects/${slug}/${session}/mine.txt`, 'file-history/README', `${folder}/keep.me`, `${folder}/${name}.bak`]
  for (const path of paths) writeStoreFile(root, path, 'mine\n')
  return paths
}

export function removeTranscript(root: string, session: string): void {
  rmSync(transcriptOf(root, session))
}

/** The same session id in a second project folder (R76). */
export function copyTranscriptTo(root: string, session: string, slug: string): string {
  const path = transcriptOf(root, session)
  const { mode, mtimeMs } = statSync(path)
  return writeStoreFile(root, `projects/${slug}/${session}.jsonl`, readFileSync(path), { mode: mode & 0o7777, mtime: mtimeMs })
}

/** Another file under the same name: a rewrite by rename while somebody reads (R84). Bytes and mtime are equal. */
export function replaceTranscriptByRename(root: string, session: string): void {
  const path = transcriptOf(root, session)
  const { mode, atime, mtime } = statSync(path)
  const temporary = `${path}.new`
  writeFileSync(temporary, readFileSync(path), { mode })
  utimesSync(temporary, atime, mtime)
  renameSync(temporary, path)
}
