import { lstatSync, type Dirent } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { listFolder } from '../../fs/folder.js'
import { systemErrorCode } from '../../model/errors.js'
import type { Member, SessionRef } from '../../model/session.js'
import type { SessionContents } from '../format.js'
import { formatMarker, groupNumber, isClean, isRecordName, isSideFileName, isTemporary, journalId, pendingFolder, rescueFolder, storeMarker, storeVersion } from './layout.js'
import { parseRecord } from './record.js'
import { readMarker, readRecordBytes } from './records.js'

/** How the names in a folder are judged: `own` goes, `foreign` stays, a function judges what lies in the folder of that name. */
type Rule = (entry: Dirent, folder: string) => 'own' | 'foreign' | Rule

const staged: Rule = (entry) => (entry.isFile() && isSideFileName(entry.name) ? 'own' : 'foreign')
const operation: Rule = (entry) => (entry.isFile() && (/^[0-9]+\.before$/.test(entry.name) || isTemporary(entry.name)) ? 'own' : 'foreign')
const rescue: Rule = (entry) => (entry.isDirectory() && isClean(entry.name) ? operation : 'foreign')
const group: Rule = (entry, folder) => {
  if (!entry.isFile()) return 'foreign'
  if (isSideFileName(entry.name) || isTemporary(entry.name)) return 'own'
  return isRecordName(entry.name) && !isForeignRecord(folder, entry.name) ? 'own' : 'foreign'
}

/** The names of a session folder (section 1.2). */
const session: Rule = (entry) => {
  const { name } = entry
  if (entry.isDirectory()) return name === pendingFolder ? staged : name === rescueFolder ? rescue : groupNumber(name) === undefined ? 'foreign' : group
  return entry.isFile() && (name === storeMarker || name === formatMarker || journalId(name) !== undefined || isTemporary(name)) ? 'own' : 'foreign'
}

/**
 * What removing a session takes: the folder whole where nothing foreign lies in it, else name by name. The time that counts is
 * the newest of the folder and everything in it, folders too, as for the plugin's own sweep (section 4.1). Follows no link.
 */
export function readContents(root: string, ref: SessionRef): SessionContents {
  const walk = new Walk(root)
  const own = walk.folder(ref.id, session)
  const marker = readMarker(join(root, ref.id, storeMarker))
  const newer = marker.kind === 'number' && marker.value > storeVersion
  return {
    own: own.whole ? [{ kind: 'backups', path: ref.id, folder: true }] : own.members,
    foreign: walk.foreign,
    unreadable: walk.unreadable,
    emptied: [],
    ...(walk.newest === undefined ? {} : { backup: walk.newest }),
    ...(newer ? { doubt: 'its store version is newer than this version knows' } : {}),
  }
}

/** What may go of one anchor group, and whether that is the whole folder. */
export function groupContents(root: string, sessionId: string, number: number): { readonly members: readonly Member[]; readonly whole: boolean } {
  const path = `${sessionId}/${String(number)}`
  const { members, whole } = new Walk(root).folder(path, group)
  return { members: whole ? [{ kind: 'backups', path, folder: true }] : members, whole }
}

/** A record with the marks of another writer (section 6.3): never removed. */
function isForeignRecord(folder: string, name: string): boolean {
  try {
    const number = groupNumber(basename(folder))
    const bytes = number === undefined ? undefined : readRecordBytes(dirname(folder), number, name)
    return bytes === undefined || number === undefined || parseRecord(number, name, bytes).foreign
  } catch {
    return true
  }
}

class Walk {
  readonly foreign: string[] = []
  readonly unreadable: { path: string; code: string }[] = []
  newest: number | undefined
  readonly #root: string

  constructor(root: string) {
    this.#root = root
  }

  folder(path: string, rule: Rule): { members: Member[]; whole: boolean } {
    const members: Member[] = []
    let whole = true
    this.#note(path)
    const { entries, error } = listFolder(join(this.#root, path))
    if (error !== undefined) {
      this.unreadable.push({ path, code: error })
      return { members, whole: false }
    }
    for (const entry of entries) {
      const inside = `${path}/${entry.name}`
      const verdict = rule(entry, join(this.#root, path))
      if (verdict === 'foreign') {
        whole = false
        this.foreign.push(inside)
        this.#note(inside)
      } else if (verdict === 'own') {
        members.push({ kind: 'backups', path: inside, folder: false })
        this.#note(inside)
      } else {
        const below = this.folder(inside, verdict)
        whole &&= below.whole
        members.push(...(below.whole ? [{ kind: 'backups' as const, path: inside, folder: true }] : below.members))
      }
    }
    return { members, whole }
  }

  #note(path: string): void {
    try {
      const status = lstatSync(join(this.#root, path), { throwIfNoEntry: false })
      if (status !== undefined) this.newest = Math.max(this.newest ?? 0, Math.round(status.mtimeMs))
    } catch (error) {
      this.unreadable.push({ path, code: systemErrorCode(error) ?? 'UNKNOWN' })
    }
  }
}
