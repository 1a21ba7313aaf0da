import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

import { readJsonObject, type JsonFile } from '../../fs/read-small.js'
import { systemErrorCode } from '../../model/errors.js'
import { finding, type Finding } from '../../model/finding.js'
import { isUuid } from '../../model/names.js'
import { dayMs } from '../../model/period.js'
import type { LiveRegistry, LiveSession, Machine } from '../format.js'

const registryFolder = 'sessions'
const registryLimit = 1024 * 1024

/**
 * Sessions that a running process has open, from `sessions/<pid>.json` (formats/claude-code section 6, R104). In doubt
 * a session counts as live. `now` is in milliseconds since 1970. An entry is judged so:
 *
 * - no pid domain, or ours: live when the pid exists and the start time is equal or cannot be compared; else dead;
 * - another pid domain, or ours is unknown: live when the pid exists here and the start time does not differ; otherwise
 *   nobody here can tell, and it is live until 24 hours after its last update;
 * - a damaged entry: a session id that can still be found in it is judged as of an unknown domain.
 *
 * Files are read without following links and never block; names other than `<digits>.json` are not entries.
 */
export function readRegistry(root: string, machine: Machine, now: number): LiveRegistry {
  const folder = join(root, registryFolder)
  let names: string[]
  try {
    // Asked before every act: a look is cheaper than the error of a listing.
    if (lstatSync(folder, { throwIfNoEntry: false }) === undefined) return { live: [], findings: [], complete: true }
    names = readdirSync(folder).filter((name) => /^[0-9]+\.json$/.test(name)).sort()
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOENT') return { live: [], findings: [], complete: true }
    const message = `${registryFolder} cannot be listed (${code ?? 'unknown error'}), so running sessions are not known`
    return { live: [], findings: [finding('unreadable', message, { path: registryFolder })], complete: false }
  }
  const live: LiveSession[] = []
  const findings: Finding[] = []
  let complete = true
  for (const name of names) {
    const registry = `${registryFolder}/${name}`
    const file = readJsonObject(join(root, registryFolder, name), { follow: false, limit: registryLimit })
    // It went away since the folder was listed: the process has ended.
    if (file.kind === 'missing') continue
    const entry = readEntry(file, Number.parseInt(name, 10))
    if (entry.damage !== undefined) {
      findings.push(finding('registry-damaged', `${registry}: ${entry.damage}`, { path: registry }))
    }
    const pid = entry.pids.find((candidate) => isLive(entry, candidate, machine, now))
    if (pid === undefined) continue
    if (entry.session === undefined) complete = false
    else live.push({ session: entry.session, pid, registry })
  }
  return { live, findings, complete }
}

interface Entry {
  readonly session: string | undefined
  /** The pid recorded, and that of the file name where it is another one. */
  readonly pids: readonly number[]
  readonly start: string | undefined
  /** `undefined` when the entry has none; `null` when it cannot be known. */
  readonly domain: string | undefined | null
  /** Last sign of life in milliseconds since 1970. */
  readonly updated: number
  readonly damage: string | undefined
}

function readEntry(file: Exclude<JsonFile, { kind: 'missing' }>, namedPid: number): Entry {
  if (file.kind === 'unusable') {
    const session = file.bytes === undefined ? undefined : salvageSession(file.bytes)
    const updated = file.mtimeMs ?? Number.POSITIVE_INFINITY
    return { session, pids: [namedPid], start: undefined, domain: null, updated, damage: file.reason }
  }
  const { sessionId, pid, procStart, pidDomain, updatedAt, startedAt } = file.value
  const session = typeof sessionId === 'string' && isUuid(sessionId) ? sessionId : undefined
  const recordedPid = typeof pid === 'number' ? pid : namedPid
  const times = [updatedAt, startedAt].filter((time) => typeof time === 'number')
  return {
    session,
    pids: recordedPid === namedPid ? [namedPid] : [recordedPid, namedPid],
    start: typeof procStart === 'string' || typeof procStart === 'number' ? String(procStart) : undefined,
    domain: pidDomain === undefined || typeof pidDomain === 'string' ? pidDomain : null,
    updated: times.length > 0 ? Math.max(...times) : file.mtimeMs,
    damage: session === undefined ? 'it names no session' : undefined,
  }
}

function isLive(entry: Entry, pid: number, machine: Machine, now: number): boolean {
  if (machine.processExists(pid) && !startsDiffer(entry.start, machine.processStart(pid))) return true
  if (entry.domain === undefined || (entry.domain !== null && entry.domain === machine.pidDomain)) return false
  return now - entry.updated < dayMs
}

// Start times are clock ticks on Linux and a date in words elsewhere; only two of a kind say anything.
function startsDiffer(recorded: string | undefined, actual: string | undefined): boolean {
  if (recorded === undefined || actual === undefined) return false
  return /^[0-9]+$/.test(recorded) && /^[0-9]+$/.test(actual) && recorded !== actual
}

function salvageSession(bytes: Buffer): string | undefined {
  const [, id] = /"sessionId"\s*:\s*"([0-9a-f-]{36})"/.exec(bytes.toString('latin1')) ?? []
  return id !== undefined && isUuid(id) ? id : undefined
}
