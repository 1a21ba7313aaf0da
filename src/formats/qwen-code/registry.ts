import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { listFolder } from '../../fs/folder.js'
import { stampOf } from '../../fs/probe.js'
import { readJsonObject, type JsonFile } from '../../fs/read-small.js'
import { finding, type Finding } from '../../model/finding.js'
import type { LiveRegistry, LiveSession, Machine } from '../format.js'
import { archiveFolder, chatsFolder, isSessionId, locksFolder, projectsFolder, registryFolder } from './layout.js'

const entryLimit = 1024 * 1024
/** A process that began so much later than its entry says, in milliseconds, is another one with the same pid. */
const startTolerance = 60_000

/** One file that says which process has a session open. */
interface Entry {
  readonly path: string
  /** As a report shows it. */
  readonly shown: string
  /** The pid or the session that its name says. */
  readonly pid?: number
  readonly session?: string
}

/**
 * Sessions that a running process of this host has open (formats/qwen-code section 9): the registry of terminal UIs
 * (`sessions/<pid>.json`), the file beside each transcript (`<id>.runtime.json`) and the writer locks. A pid counts only on
 * its own host, and only for a process that is not younger than the entry; in doubt a session is live. Tokens are not read.
 * Sessions of other front ends register nowhere, so the answer is never complete.
 * @param bases absolute paths of the folders in which transcripts are kept
 * @param known what was read before: a session leaves its file behind, and this is asked before each act
 */
export function readRegistry(root: string, bases: readonly string[], machine: Machine, known: KnownEntries): LiveRegistry {
  const live: LiveSession[] = []
  const findings: Finding[] = []
  for (const entry of entriesOf(root, bases, findings)) {
    const said = lookUp(entry, known)
    // It went away since the folder was listed: the process has ended.
    if (said === undefined) continue
    if (said.damage !== undefined) findings.push(finding('registry-damaged', `${entry.shown}: ${said.damage}`, { path: entry.shown }))
    if (said.session !== undefined && said.pid !== undefined && isLive(said, said.pid, machine)) live.push({ session: said.session, pid: said.pid, registry: entry.shown })
  }
  return { live, findings, complete: false }
}

function entriesOf(root: string, bases: readonly string[], findings: Finding[]): Entry[] {
  const entries: Entry[] = []
  for (const base of new Set([root, ...bases])) {
    const list = (folder: string): string[] => {
      const { entries: found, error } = listFolder(join(base, folder))
      if (error !== undefined && error !== 'ENOTDIR') findings.push(finding('unreadable', `${folder} cannot be listed (${error}), so running sessions are not known`, { path: shownAs(root, join(base, folder)) }))
      return found.filter((entry) => !entry.isDirectory()).map(({ name }) => name)
    }
    const add = (path: string, about: Pick<Entry, 'pid' | 'session'>): void => { entries.push({ path, shown: shownAs(root, path), ...about }) }
    for (const name of list(registryFolder)) {
      const pid = /^([0-9]+)\.json$/.exec(name)?.[1]
      if (pid !== undefined) add(join(base, registryFolder, name), { pid: Number(pid) })
    }
    for (const name of list(locksFolder)) {
      const session = /^(.+)\.lock$/.exec(name)?.[1]
      if (session !== undefined && isSessionId(session)) add(join(base, locksFolder, name), { session })
    }
    for (const slug of listFolder(join(base, projectsFolder)).entries.filter((entry) => entry.isDirectory())) {
      for (const folder of [chatsFolder, `${chatsFolder}/${archiveFolder}`]) {
        const path = `${projectsFolder}/${slug.name}/${folder}`
        for (const name of list(path)) {
          const session = /^(.+)\.runtime\.json$/.exec(name)?.[1]
          if (session !== undefined && isSessionId(session)) add(join(base, path, name), { session })
        }
      }
    }
  }
  return entries
}

/** Path of an entry to what it said, and the stamp that it had then. */
export type KnownEntries = Map<string, { readonly stamp: string; readonly said: Said }>

function lookUp(entry: Entry, known: KnownEntries): Said | undefined {
  const stamp = stampAt(entry.path)
  const before = known.get(entry.path)
  if (before !== undefined && before.stamp === stamp) return before.said
  const found = readJsonObject(entry.path, { follow: false, limit: entryLimit })
  if (found.kind === 'missing') return undefined
  const said = readEntry(entry, found)
  if (stamp !== undefined) known.set(entry.path, { stamp, said })
  return said
}

function stampAt(path: string): string | undefined {
  try {
    return stampOf(lstatSync(path))
  } catch {
    return undefined
  }
}

interface Said {
  readonly session: string | undefined
  readonly pid: number | undefined
  readonly host: string | undefined
  /** Clock ticks since boot as decimal text. */
  readonly startTicks: string | undefined
  /** Milliseconds since 1970. */
  readonly startedAt: number | undefined
  readonly damage: string | undefined
}

function readEntry(entry: Entry, found: Exclude<JsonFile, { kind: 'missing' }>): Said {
  const nothing = { host: undefined, startTicks: undefined, startedAt: undefined }
  if (found.kind === 'unusable') {
    const salvaged = /"sessionId"\s*:\s*"([0-9a-f-]{32,36})"/.exec(found.bytes?.toString('latin1') ?? '')?.[1]
    return { ...nothing, session: entry.session ?? salvaged, pid: entry.pid ?? pidIn(found.bytes), damage: found.reason }
  }
  const { value } = found
  const session = text(value.sessionId) ?? text(value.session_id) ?? entry.session
  const pid = typeof value.pid === 'number' ? value.pid : entry.pid
  return {
    session: session !== undefined && isSessionId(session) ? session : undefined,
    pid,
    host: text(value.hostname) ?? text(value.host),
    startTicks: ticks(value.procStart),
    startedAt: timeOf(value.started_at ?? value.startedAt),
    damage: session === undefined ? 'it names no session' : pid === undefined ? 'it names no process' : undefined,
  }
}

function isLive({ host, startTicks, startedAt }: Said, pid: number, machine: Machine): boolean {
  if (host !== undefined && machine.hostname !== undefined && host !== machine.hostname) return false
  if (!machine.processExists(pid)) return false
  const actual = machine.processStart(pid)
  if (startTicks !== undefined && actual !== undefined && startTicks !== actual) return false
  const began = machine.processStartedAt?.(pid)
  return startedAt === undefined || began === undefined || began <= startedAt + startTolerance
}

function pidIn(bytes: Buffer | undefined): number | undefined {
  const digits = /"pid"\s*:\s*([0-9]+)/.exec(bytes?.toString('latin1') ?? '')?.[1]
  return digits === undefined ? undefined : Number(digits)
}

function ticks(value: unknown): string | undefined {
  const said = typeof value === 'number' ? String(value) : text(value)
  return said !== undefined && /^[0-9]+$/.test(said) ? said : undefined
}

/** Seconds or milliseconds since 1970, or ISO 8601. */
function timeOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value < 1e11 ? value * 1000 : value
  const time = Date.parse(text(value) ?? '')
  return Number.isNaN(time) ? undefined : time
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function shownAs(root: string, path: string): string {
  return path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path
}
