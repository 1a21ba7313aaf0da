import { dirname, join, relative } from 'node:path'

import { userSettings } from '../formats/claude-code/layout.js'
import type { Machine, Store, Surroundings } from '../formats/format.js'
import { systemErrorCode } from '../model/errors.js'
import { ExitCode } from '../model/exit-code.js'
import { finding, type Finding } from '../model/finding.js'
import { noItems, type Json, type Report } from '../model/report.js'
import { clockLooksWrong } from '../model/retention.js'
import type { Config } from '../settings/config.js'
import { checkGates, gateRow } from './doctor/gates.js'
import { findLeftovers } from './doctor/leftovers.js'
import { lostHooks } from './hook/install.js'
import { checkRetention } from './doctor/retention.js'
import { checkSidecar, modeOf, octal } from './doctor/sidecar.js'

export interface DoctorInput {
  readonly stores: readonly Store[]
  readonly config: Config
  readonly around: Surroundings
  readonly machine: Machine
  /** As in `process.version`. */
  readonly nodeVersion: string
  /** Milliseconds since 1970. */
  readonly now: number
}

/**
 * What a person needs to know before trusting a nightly run: the environment, and for each store its retention with
 * every layer, gates, running sessions, our own folder, leftovers and modes. It only reads. Exit code 1 with a finding
 * of severity error, 10 without any store, else 0.
 */
export function doctor(input: DoctorInput): Report {
  const findings: Finding[] = []
  const rows = input.stores.map((store) => examine(store, input, findings))
  findings.push(...lostHooks(userSettings(input.around)))
  const hasErrors = findings.some(({ severity }) => severity === 'error')
  return {
    command: 'doctor',
    roots: input.stores.map(({ root }) => root),
    applied: false,
    summary: {
      node: input.nodeVersion,
      platform: input.around.platform,
      config: input.config.file ?? 'none (defaults)',
      stores: input.stores.length,
      findings: findings.length,
    },
    ...noItems,
    findings,
    exitCode: input.stores.length === 0 ? ExitCode.noStore : hasErrors ? ExitCode.findings : ExitCode.done,
    extra: { stores: rows },
  }
}

function examine(store: Store, input: DoctorInput, findings: Finding[]): Json {
  const sessions = readSessions(store, input.now, findings)
  const retention = checkRetention(store, sessions.projects, input.config)
  const gates = checkGates(store, sessions.projects)
  const registry = store.live(input.machine, input.now)
  const sidecar = checkSidecar(store, input.around.platform, input.now)
  const leftovers = findLeftovers([store.root, store.sidecar], input.now)
  const clock = clockLooksWrong(sessions.newest, input.now)
  const backups = backupMode(store)
  findings.push(...retention.findings, ...gates.findings, ...registry.findings, ...sidecar.findings, ...store.globals())
  for (const path of leftovers) findings.push(finding('stale-temp', `${path} was left by an interrupted run`, { path }))
  if (clock !== undefined) findings.push(finding('clock-looks-wrong', clock))
  if (input.around.platform !== 'win32' && backups.open) {
    const message = `${backups.folder} has mode ${octal(backups.mode)} and the store lets other users in`
    findings.push(finding('wide-mode', message, { path: relative(store.root, backups.folder) }))
  }
  return {
    root: store.root,
    format: store.format,
    sessions: sessions.count,
    newestActivity: sessions.newest === undefined ? null : new Date(sessions.newest).toISOString(),
    retention: retention.row,
    gates: gates.gates.map(gateRow),
    live: registry.live.map(({ session, pid, registry }) => ({ session, pid, registry })),
    sidecar: sidecar.row,
    leftovers,
    backupFolderMode: backups.mode === 0 ? null : octal(backups.mode),
  }
}

interface Sessions {
  readonly count: number
  readonly projects: readonly string[]
  /** Milliseconds since 1970. */
  readonly newest: number | undefined
}

function readSessions(store: Store, now: number, findings: Finding[]): Sessions {
  const { sessions } = store.inventory()
  const projects = new Set<string>()
  let newest: number | undefined
  for (const session of sessions) {
    try {
      const { project, lastRecorded, lastWritten, future } = store.read(session, { now })
      if (project !== undefined) projects.add(project)
      for (const time of [lastRecorded, lastWritten, future]) {
        if (time !== undefined && (newest === undefined || time > newest)) newest = time
      }
    } catch (error) {
      const code = systemErrorCode(error)
      if (code === undefined) throw error
      findings.push(finding('unreadable', `session ${session.id} cannot be read (${code})`, { session: session.id }))
    }
  }
  return { count: sessions.length, projects: [...projects].sort(), newest }
}

/** The folder that holds all backups, its mode (0 when there is none), and whether others can get at what is in it. */
function backupMode(store: Store): { readonly folder: string; readonly mode: number; readonly open: boolean } {
  const folder = dirname(join(store.root, store.backupFolder('session')))
  const own = modeOf(folder)
  const root = modeOf(store.root)
  if (own.kind !== 'folder') return { folder, mode: 0, open: false }
  const open = (own.mode & 0o055) !== 0 && (root.kind !== 'folder' || folder === store.root || (root.mode & 0o011) !== 0)
  return { folder, mode: own.mode, open }
}
