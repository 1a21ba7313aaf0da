import { execFileSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import type { Machine, Store } from '../../src/formats/format.js'
import { openClaudeCode } from '../../src/formats/claude-code/index.js'
import type { ExpireOptions } from '../../src/operations/expire.js'
import { carryOut } from '../../src/operations/removal/carry-out.js'
import type { Removal } from '../../src/operations/removal/removal.js'
import type { ApplyResult } from '../../src/plan/apply.js'
import { touchTime } from '../../src/plan/folder-times.js'
import { restoreFromTrash } from '../../src/plan/restore.js'
import { newRunId } from '../../src/plan/run-id.js'
import { parseConfig, type Config } from '../../src/settings/config.js'
import { userLine, writeTranscript, type MessageFields } from './store.js'
import { snapshotTree, type Tree } from './tree.js'

export const dayMs = 24 * 60 * 60 * 1000
/** The clock of removal tests. */
export const now = Date.parse('2026-11-30T12:00:00.000Z')

export function daysAgo(days: number): number {
  return now - days * dayMs
}

export function iso(ms: number): string {
  return new Date(ms).toISOString()
}

/** A machine on which no process of the agent runs, except those named. */
export function machineWith(running: Readonly<Record<number, string>> = {}): Machine {
  return {
    processStart: (pid) => running[pid],
    processExists: (pid) => running[pid] !== undefined,
    pidDomain: 'linux:test:pid:[1]',
  }
}

export function openStore(root: string): Store {
  return openClaudeCode(root, { home: dirname(root), env: {}, platform: 'linux' })
}

export function configOf(value: unknown = {}): Config {
  return parseConfig(value, '/home/u')
}

/** The guards as a fresh installation has them. */
export function expireOptions(options: Partial<ExpireOptions> = {}): ExpireOptions {
  return { config: configOf(), floorMs: dayMs, quietPeriodMs: 3_600_000, clockCheck: false, ...options }
}

/** A transcript of one message, all its times `age` days ago unless said otherwise. */
export function session(
  root: string,
  slug: string,
  id: string,
  age: number,
  options: { readonly mtime?: number; readonly lines?: readonly string[] } & MessageFields = {},
): string {
  const { mtime, lines = [], ...fields } = options
  const line = userLine(`m-${id.slice(0, 4)}`, { session: id, time: iso(daysAgo(age)), ...fields })
  return writeTranscript(root, slug, id, [line, ...lines], { mtime: mtime ?? daysAgo(age) })
}

let runs = 0

/** Carries a removal out as a command does; every call is a run of its own. */
export function carry(store: Store, removal: Removal, options: { readonly at?: number; readonly machine?: Machine; readonly noTrash?: boolean } = {}): Promise<ApplyResult> {
  runs += 1
  const at = options.at ?? now
  return carryOut(store, removal, {
    now: at,
    runId: newRunId(at, runs.toString(16).padStart(6, '0')),
    machine: options.machine ?? machineWith(),
    ...(options.noTrash === undefined ? {} : { noTrash: options.noTrash }),
  })
}

/** Puts a run back as `trash restore` does. */
export async function restore(store: Store, runId: string): Promise<void> {
  const { errors } = await restoreFromTrash(store, runId, { exactTime: touchTime((file, args) => execFileSync(file, args)) })
  if (errors.length > 0) throw new Error(JSON.stringify(errors))
}

/**
 * The tree of a store without our own folder. That folder adds a link to the root, and its making sets the root's time back to
 * the microsecond only.
 */
export function storeTree(root: string): Tree {
  const { '.': top, ...rest } = snapshotTree(root)
  const own = Object.entries(rest).filter(([path]) => path !== '.rewind-admin' && !path.startsWith('.rewind-admin/'))
  return { ...(top === undefined ? {} : { '.': { ...top, nlink: 0, mtime: `${top.mtime.slice(0, -3)}000` } }), ...Object.fromEntries(own) }
}

/** Reasons by session. */
export function keptOf(removal: Removal): Record<string, string> {
  return Object.fromEntries(removal.plan.kept.map(({ session: id, reason }) => [id, reason]))
}

export function plannedSessions(removal: Removal): string[] {
  return removal.plan.actions.map((action) => action.session ?? '').sort()
}

export function sidecarFile(root: string, name: string): string {
  return join(root, '.rewind-admin', name)
}
