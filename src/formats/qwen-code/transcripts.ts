import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { membersOf, type SessionRef } from '../../model/session.js'
import { archiveFolder, chatsFolder } from './layout.js'

/** A transcript of a session. */
export interface TranscriptFile {
  /** Absolute path. */
  readonly path: string
  /** Relative to the root, or the absolute path where it lies outside. */
  readonly shown: string
}

/**
 * The transcripts of a session, the one that counts first: in use before archived, then the one written to last. `outside`
 * are those that lie beyond the root, by session.
 */
export function transcriptsOf(root: string, session: SessionRef, outside: ReadonlyMap<string, readonly string[]>): TranscriptFile[] {
  const inside = membersOf(session, 'transcript').map(({ path }): TranscriptFile => ({ path: join(root, path), shown: path }))
  const beyond = (outside.get(session.id) ?? []).map((path): TranscriptFile => ({ path, shown: path }))
  const files = [...inside, ...beyond]
  if (files.length < 2) return files
  const rank = new Map(files.map((file) => [file, { archived: isArchived(file.path), written: writtenAt(file.path) }]))
  return files.sort((a, b) => {
    const [left, right] = [rank.get(a), rank.get(b)]
    if (left?.archived !== right?.archived) return left?.archived === true ? 1 : -1
    return (right?.written ?? 0) - (left?.written ?? 0)
  })
}

function isArchived(path: string): boolean {
  return path.split('/').slice(-3, -1).join('/') === `${chatsFolder}/${archiveFolder}`
}

function writtenAt(path: string): number {
  try {
    return lstatSync(path).mtimeMs
  } catch {
    return 0
  }
}
