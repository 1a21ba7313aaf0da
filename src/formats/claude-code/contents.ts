import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { listFolder } from '../../fs/folder.js'
import { parentOf } from '../../fs/safe-path.js'
import { systemErrorCode } from '../../model/errors.js'
import { isBackupName } from '../../model/names.js'
import type { Member, MemberKind, SessionRef } from '../../model/session.js'
import type { SessionContents } from '../format.js'
import { projectKeepers, projectsFolder } from './layout.js'

/** How the names in a folder are judged: `own` goes, `folder` is looked into by a rule of its own, `foreign` stays. */
type Rule = (name: string, isFolder: boolean) => 'own' | 'foreign' | Rule

const agentFile = /^agent-[0-9A-Za-z_-]+\.(?:jsonl|meta\.json)$/

/** Below a folder that is the agent's alone; a name that is not valid UTF-8 cannot be named again. */
const everything: Rule = (name, isFolder) => (name.includes('\uFFFD') ? 'foreign' : isFolder ? everything : 'own')
const subagents: Rule = (name, isFolder) => (isFolder ? subagents : agentFile.test(name) ? 'own' : 'foreign')
const companion: Rule = (name, isFolder) => {
  if (name === 'tool-results') return isFolder ? everything : 'own'
  if (name === 'subagents') return isFolder ? subagents : 'own'
  return 'foreign'
}
const backups: Rule = (name, isFolder) => (isBackupName(name) && !isFolder ? 'own' : 'foreign')

const rules: Partial<Record<MemberKind, Rule>> = { companion, backups, leftover: everything }

/**
 * What removing a session takes: its members whole where nothing foreign lies in them, else name by name (R11, R14). Only
 * names of known shape go (formats/claude-code section 1). Looks at every file once, follows and opens nothing.
 */
export function readContents(root: string, session: SessionRef): SessionContents {
  const walk = new ContentsWalk(root)
  for (const member of session.members) walk.member(member)
  const hasTranscript = session.members.some((member) => member.kind === 'transcript')
  return walk.finish(hasTranscript ? undefined : projectsDoubt(root))
}

/** Files of a project folder that belong to no session: the memory is user data, the index a cache of ours to drop with its sessions. */
export function readProjectFiles(root: string, folder: string): { memory: Member[]; caches: Member[] } {
  const kept: Member[] = []
  for (const { name, ...entry } of named(root, folder)) {
    if (projectKeepers.has(name)) kept.push({ kind: 'leftover', path: `${folder}/${name}`, folder: entry.folder })
  }
  return { memory: kept.filter((member) => member.folder), caches: kept.filter((member) => !member.folder) }
}

function named(root: string, folder: string): { name: string; folder: boolean }[] {
  return listFolder(join(root, folder)).entries.map((entry) => ({ name: entry.name, folder: entry.isDirectory() }))
}

/** Without the project folders nobody can tell which session has lost its transcript. */
function projectsDoubt(root: string): string | undefined {
  const path = join(root, projectsFolder)
  const there = lstatSync(path, { throwIfNoEntry: false })
  if (there?.isSymbolicLink() !== true) return undefined
  return listFolder(path).entries.length === 0 ? `${projectsFolder} is a link that leads to nothing, so transcripts may be elsewhere` : undefined
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
    const folder = parentOf(member.path)
    if (folder.startsWith(`${projectsFolder}/`)) this.#emptied.add(folder)
    const rule = rules[member.kind]
    if (!member.folder || rule === undefined) {
      this.#own.push(member)
      return
    }
    const { own, whole, files } = this.#folder(member, rule)
    if (files === 0 && !whole) this.#note(member)
    this.#own.push(...(whole ? [member] : own))
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

  /** `own` names what may go when not the whole folder does. */
  #folder(folder: Member, rule: Rule): { own: Member[]; whole: boolean; files: number } {
    const own: Member[] = []
    let whole = true
    let files = 0
    const { entries, error } = listFolder(join(this.#root, folder.path))
    if (error !== undefined) {
      this.#unreadable.push({ path: folder.path, code: error })
      return { own, whole: false, files }
    }
    for (const entry of entries) {
      const inside: Member = { kind: folder.kind, path: `${folder.path}/${entry.name}`, folder: entry.isDirectory() }
      const verdict = rule(entry.name, inside.folder)
      if (verdict === 'foreign') {
        whole = false
        this.#foreign.push(inside.path)
      } else if (verdict === 'own') {
        files += 1
        own.push(inside)
      } else {
        const below = this.#folder(inside, verdict)
        files += below.files
        whole &&= below.whole
        own.push(...(below.whole ? [inside] : below.own))
      }
    }
    return { own, whole, files }
  }

  /** A folder that stays because only foreign names are in it: its own time tells when something of the session last went. */
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
