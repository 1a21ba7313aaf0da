import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { listFolder } from '../../fs/folder.js'
import { parentOf } from '../../fs/safe-path.js'
import { systemErrorCode } from '../../model/errors.js'
import { isBackupName } from '../../model/names.js'
import type { Member, SessionRef } from '../../model/session.js'
import type { SessionContents } from '../format.js'
import { archiveFolder, chatsFolder, projectsFolder, subagentsFolder } from './layout.js'

/** Whether the agent makes a file of this name in the folder of a member. */
type Rule = (name: string, isFolder: boolean) => boolean

const subagentFile = /^(?:agent-)?[0-9A-Za-z_-]+(?:\.jsonl|\.meta\.json)$/
const isBackup: Rule = (name, isFolder) => !isFolder && isBackupName(name)
const isSubagent: Rule = (name, isFolder) => !isFolder && subagentFile.test(name)

/**
 * What removing a session takes: its members whole where nothing foreign lies in them, else name by name (R11, R14).
 * @param outside its transcripts beyond the root, which nothing of ours can remove
 */
export function readContents(root: string, session: SessionRef, outside: readonly string[]): SessionContents {
  const walk = new ContentsWalk(root)
  for (const member of session.members) walk.member(member)
  const [first] = outside
  return walk.finish(first === undefined ? undefined : `its transcript ${first} lies outside of the store, where nothing is removed; delete the session with the agent itself`)
}

class ContentsWalk {
  readonly #root: string
  readonly #own: Member[] = []
  readonly #foreign: string[] = []
  readonly #unreadable: { path: string; code: string }[] = []
  readonly #emptied = new Set<string>()
  readonly #newest: { companion?: number; backup?: number } = {}

  constructor(root: string) {
    this.#root = root
  }

  member(member: Member): void {
    for (const folder of projectFoldersOf(member.path)) this.#emptied.add(folder)
    const rule = member.kind === 'backups' || member.kind === 'leftover' ? isBackup : isSubagent
    if (!member.folder) {
      if (member.kind !== 'transcript') this.#note(member)
      this.#own.push(member)
      return
    }
    const { entries, error } = listFolder(join(this.#root, member.path))
    if (error !== undefined) {
      this.#unreadable.push({ path: member.path, code: error })
      return
    }
    const inside = entries.map((entry): Member => ({ kind: member.kind, path: `${member.path}/${entry.name}`, folder: entry.isDirectory() }))
    const own = inside.filter((each, index) => rule(entries[index]?.name ?? '', each.folder))
    for (const each of own) this.#note(each)
    if (own.length === 0) this.#note(member)
    if (own.length === inside.length) this.#own.push(member)
    else {
      this.#own.push(...own)
      this.#foreign.push(...inside.filter((each) => !own.includes(each)).map(({ path }) => path))
    }
  }

  finish(doubt: string | undefined): SessionContents {
    return {
      own: this.#own,
      foreign: this.#foreign,
      unreadable: this.#unreadable,
      emptied: [...this.#emptied],
      ...this.#newest,
      ...(doubt === undefined ? {} : { doubt }),
    }
  }

  #note(member: Member): void {
    const key = member.kind === 'backups' ? 'backup' : 'companion'
    try {
      const status = lstatSync(join(this.#root, member.path), { throwIfNoEntry: false })
      if (status !== undefined) this.#newest[key] = Math.max(this.#newest[key] ?? 0, Math.round(status.mtimeMs))
    } catch (error) {
      this.#unreadable.push({ path: member.path, code: systemErrorCode(error) ?? 'UNKNOWN' })
    }
  }
}

/** The folders of a project above a member, which go when nothing is left in them. */
export function projectFoldersOf(path: string): string[] {
  const names = path.split('/')
  const project = names.lastIndexOf(projectsFolder) + 2
  const folder = names[project]
  if (names[0] === undefined || project < 2 || (folder !== chatsFolder && folder !== subagentsFolder)) return []
  const above = [names.slice(0, project).join('/'), names.slice(0, project + 1).join('/')]
  return names[project + 1] === archiveFolder ? [...above, parentOf(path)] : above
}
