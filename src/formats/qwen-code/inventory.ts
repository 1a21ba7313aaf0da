import { join } from 'node:path'
import type { Dirent } from 'node:fs'
import { nodeWord } from '../../fs/blocks.js'
import { listFolder } from '../../fs/folder.js'
import { finding, type Finding } from '../../model/finding.js'
import { membersOf, type Member, type MemberKind, type SessionRef } from '../../model/session.js'
import type { Inventory } from '../format.js'
import {
  archiveFolder,
  backupFolderOf,
  chatsFolder,
  debugFolder,
  debugId,
  historyFolder,
  isSessionId,
  projectsFolder,
  sideFileId,
  stagingId,
  subagentsFolder,
  transcriptId,
} from './layout.js'
import type { Roots } from './roots.js'

/**
 * Lists every session of a store by names alone: its transcript, in use or archived, the files beside it, its subagents and
 * its backups. Transcripts outside of the root are no members: they are out of reach (section 1).
 * @param outside sessions with a transcript there
 */
export function takeInventory({ home, inside }: Roots, outside: ReadonlyMap<string, readonly string[]>): Inventory {
  const collector = new Collector(home, outside)
  for (const prefix of inside) collector.projects(`${prefix}${projectsFolder}`)
  collector.backups()
  collector.debug()
  return collector.finish()
}

class Collector {
  readonly #root: string
  readonly #outside: ReadonlyMap<string, readonly string[]>
  readonly #members = new Map<string, Member[]>()
  readonly #findings: Finding[] = []
  #unrecognised = 0
  /** True when a folder of transcripts could not be listed: what seems to have none may have one in there. */
  #blind = false

  constructor(root: string, outside: ReadonlyMap<string, readonly string[]>) {
    this.#root = root
    this.#outside = outside
  }

  projects(path: string): void {
    for (const slug of this.#list(path)) {
      const project = `${path}/${slug.name}`
      if (!slug.isDirectory()) {
        this.#outOfPlace(project, slug)
        continue
      }
      for (const entry of this.#list(project)) {
        const inside = `${project}/${entry.name}`
        if (entry.isDirectory() && entry.name === chatsFolder) this.#chats(inside, false)
        else if (entry.isDirectory() && entry.name === subagentsFolder) this.#subagents(inside)
        else this.#outOfPlace(inside, entry)
      }
    }
  }

  backups(): void {
    for (const entry of this.#list(historyFolder)) {
      const path = `${historyFolder}/${entry.name}`
      const staged = stagingId(entry.name)
      if (entry.isDirectory() && isSessionId(entry.name)) this.#add(entry.name, 'backups', backupFolderOf(entry.name), true)
      else if (entry.isDirectory() && staged !== undefined) {
        this.#add(staged, 'leftover', path, true)
        const remedy = 'none: the agent removes it when it is old'
        this.#findings.push(finding('stale-temp', 'a fork is being made, or was interrupted', { session: staged, path, remedy }))
      } else this.#outOfPlace(path, entry)
    }
  }

  debug(): void {
    for (const entry of this.#list(debugFolder)) {
      const id = entry.isFile() ? debugId(entry.name) : undefined
      if (id !== undefined) this.#add(id, 'leftover', `${debugFolder}/${entry.name}`, false)
    }
  }

  finish(): Inventory {
    const sessions: SessionRef[] = []
    for (const [id, members] of this.#members) {
      const session = { id, members }
      sessions.push(session)
      this.#checkSession(session)
    }
    return { sessions, findings: this.#findings, unrecognised: this.#unrecognised }
  }

  #chats(path: string, archived: boolean): void {
    for (const entry of this.#list(path)) {
      const inside = `${path}/${entry.name}`
      const [id, side] = [transcriptId(entry.name), sideFileId(entry.name)]
      // A link or a pipe in its place counts too: reading it says what it is, and the session is kept (R55).
      if (!entry.isDirectory() && id !== undefined) this.#add(id, 'transcript', inside, false)
      else if (entry.isFile() && side !== undefined) this.#add(side, 'companion', inside, false)
      else if (entry.isDirectory() && entry.name === archiveFolder && !archived) this.#chats(inside, true)
      else this.#outOfPlace(inside, entry)
    }
  }

  #subagents(path: string): void {
    for (const entry of this.#list(path)) {
      const inside = `${path}/${entry.name}`
      if (entry.isDirectory() && isSessionId(entry.name)) this.#add(entry.name, 'companion', inside, true)
      else this.#outOfPlace(inside, entry)
    }
  }

  #outOfPlace(path: string, entry: Dirent): void {
    this.#unrecognised += 1
    if (entry.isFile() || entry.isDirectory()) this.#findings.push(finding('foreign-file', 'not a name that the agent makes; left alone', { path }))
    else this.#findings.push(finding('not-regular', `${nodeWord(entry)} stands in the store; it is not followed`, { path }))
  }

  #checkSession(session: SessionRef): void {
    const transcripts = [...membersOf(session, 'transcript').map(({ path }) => path), ...(this.#outside.get(session.id) ?? [])]
    const [first, ...others] = transcripts
    const at = (path: string): { session: string; path: string } => ({ session: session.id, path })
    if (first !== undefined) {
      const message = `the session also has ${others.join(', ')}; the one in use that was written to last counts`
      if (others.length > 0) this.#findings.push(finding('duplicate-session', message, at(first)))
      return
    }
    if (this.#blind) return
    const companion = session.members.find((member) => member.kind === 'companion')
    const backups = session.members.find((member) => member.kind === 'backups')
    if (companion !== undefined) this.#findings.push(finding('transcript-missing', 'companion files without a transcript; aged on their own', at(companion.path)))
    else if (backups !== undefined) this.#findings.push(finding('orphan-backups', 'backups that belong to no session of this store', at(backups.path)))
  }

  #add(id: string, kind: MemberKind, path: string, folder: boolean): void {
    const member: Member = { kind, path, folder }
    const members = this.#members.get(id)
    if (members === undefined) this.#members.set(id, [member])
    else members.push(member)
  }

  #list(path: string): readonly Dirent[] {
    const { entries, error } = listFolder(join(this.#root, path))
    if (error === undefined) return entries
    if (path !== historyFolder && path !== debugFolder) this.#blind = true
    if (error === 'ENOTDIR') this.#findings.push(finding('foreign-file', 'a file stands where a folder should be', { path }))
    else this.#findings.push(finding('unreadable', `the folder cannot be listed (${error}); what is in it is left alone`, { path }))
    return entries
  }
}
