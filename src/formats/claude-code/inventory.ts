import { closeSync, readSync, type Dirent } from 'node:fs'
import { join } from 'node:path'
import { nodeWord, openPlain } from '../../fs/blocks.js'
import { listFolder } from '../../fs/folder.js'
import { finding, type Finding } from '../../model/finding.js'
import { isUuid } from '../../model/names.js'
import { membersOf, type Member, type MemberKind, type SessionRef } from '../../model/session.js'
import type { Inventory } from '../format.js'
import {
  backupFolderOf,
  companionNames,
  historyFolder,
  isFlatAgent,
  leftoverFiles,
  leftoverFolders,
  leftoverId,
  projectKeepers,
  projectsFolder,
  transcriptId,
} from './layout.js'

/** Bytes read of a flat subagent transcript to learn whose it is. */
const agentHead = 16 * 1024

/**
 * Lists every session of a store by names alone: a session is its transcript, companion folder, old flat subagent
 * files, backups and leftovers (R11, R30). Names of no known shape are foreign and left alone (R14).
 */
export function takeInventory(root: string): Inventory {
  const collector = new Collector(root)
  collector.projects()
  collector.backups()
  collector.leftovers()
  return collector.finish()
}

class Collector {
  readonly #root: string
  readonly #members = new Map<string, Member[]>()
  readonly #findings: Finding[] = []
  #unrecognised = 0
  /** True when a folder of transcripts could not be listed: what seems to have none may have one in there (R108). */
  #blind = false

  constructor(root: string) {
    this.#root = root
  }

  projects(): void {
    for (const slug of this.#list(projectsFolder)) {
      const path = `${projectsFolder}/${slug.name}`
      if (slug.isDirectory()) this.#project(path, false)
      else this.#outOfPlace(path, slug)
    }
  }

  backups(): void {
    for (const entry of this.#list(historyFolder)) {
      if (entry.isDirectory() && isUuid(entry.name)) this.#add(entry.name, 'backups', backupFolderOf(entry.name), true)
      else this.#outOfPlace(`${historyFolder}/${entry.name}`, entry)
    }
  }

  leftovers(): void {
    for (const folder of leftoverFolders) {
      for (const entry of this.#list(folder)) {
        if (entry.isDirectory() && isUuid(entry.name)) this.#add(entry.name, 'leftover', `${folder}/${entry.name}`, true)
      }
    }
    for (const folder of leftoverFiles) {
      for (const entry of this.#list(folder)) {
        const id = entry.isFile() ? leftoverId(folder, entry.name) : undefined
        if (id !== undefined) this.#add(id, 'leftover', `${folder}/${entry.name}`, false)
      }
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

  #project(path: string, nested: boolean): void {
    for (const entry of this.#list(path)) {
      const inside = `${path}/${entry.name}`
      const id = transcriptId(entry.name)
      // A link or a pipe in its place counts too: reading it says what it is, and the session is kept (R55).
      if (!entry.isDirectory() && id !== undefined) this.#add(id, 'transcript', inside, false)
      else if (entry.isDirectory() && isUuid(entry.name)) this.#companion(entry.name, inside)
      else if (entry.isFile() && isFlatAgent(entry.name)) this.#agent(inside, entry)
      else if (projectKeepers.has(entry.name)) continue
      else if (entry.isDirectory() && !nested && entry.name.startsWith('-')) {
        this.#findings.push(finding('nested-slug', 'a project folder lies in another one; its sessions count as in use', { path: inside }))
        this.#project(inside, true)
      } else this.#outOfPlace(inside, entry)
    }
  }

  #companion(session: string, path: string): void {
    this.#add(session, 'companion', path, true)
    for (const { name } of this.#list(path)) {
      if (companionNames.has(name)) continue
      this.#findings.push(finding('foreign-file', 'not a name that the agent makes; left alone', { session, path: `${path}/${name}` }))
    }
  }

  #agent(path: string, entry: Dirent): void {
    const parent = parentOfAgent(join(this.#root, path))
    if (parent === undefined) this.#outOfPlace(path, entry)
    else this.#add(parent, 'agent', path, false)
  }

  #outOfPlace(path: string, entry: Dirent): void {
    this.#unrecognised += 1
    if (entry.isFile() || entry.isDirectory()) this.#findings.push(finding('foreign-file', 'not a name that the agent makes; left alone', { path }))
    else this.#findings.push(finding('not-regular', `${nodeWord(entry)} stands in the store; it is not followed`, { path }))
  }

  #checkSession(session: SessionRef): void {
    const transcripts = membersOf(session, 'transcript')
    const [first] = transcripts
    if (first === undefined && this.#blind) return
    if (first === undefined) {
      const companion = session.members.find((member) => member.kind === 'companion' || member.kind === 'agent')
      const backups = session.members.find((member) => member.kind === 'backups')
      if (companion !== undefined) {
        const message = 'companion files without a transcript; aged on their own'
        this.#findings.push(finding('transcript-missing', message, { session: session.id, path: companion.path }))
      } else if (backups !== undefined) {
        const message = 'backups that belong to no session of this store'
        this.#findings.push(finding('orphan-backups', message, { session: session.id, path: backups.path }))
      }
    } else if (transcripts.length > 1) {
      const others = transcripts.slice(1).map((member) => member.path)
      const message = `the session also has ${others.join(', ')}; all of them count as one session`
      this.#findings.push(finding('duplicate-session', message, { session: session.id, path: first.path }))
    }
  }

  #add(id: string, kind: MemberKind, path: string, folder: boolean): void {
    const members = this.#members.get(id)
    const member: Member = { kind, path, folder }
    if (members === undefined) this.#members.set(id, [member])
    else members.push(member)
  }

  #list(path: string): readonly Dirent[] {
    const { entries, error } = listFolder(join(this.#root, path))
    if (error !== undefined && path.startsWith(projectsFolder)) this.#blind = true
    if (error !== undefined && error !== 'ENOTDIR') {
      this.#findings.push(finding('unreadable', `the folder cannot be listed (${error}); what is in it is left alone`, { path }))
    } else if (error === 'ENOTDIR') this.#findings.push(finding('foreign-file', 'a file stands where a folder should be', { path }))
    return entries
  }
}

/** The session that a flat subagent transcript belongs to: the `sessionId` of its first line. */
function parentOfAgent(path: string): string | undefined {
  try {
    const fd = openPlain(path)
    try {
      const buffer = Buffer.alloc(agentHead)
      const head = buffer.toString('latin1', 0, readSync(fd, buffer, 0, buffer.length, 0))
      const id = /"sessionId":"([0-9a-f-]{36})"/.exec(head)?.[1]
      return id !== undefined && isUuid(id) ? id : undefined
    } finally {
      closeSync(fd)
    }
  } catch {
    return undefined
  }
}
