import { linkSync, lstatSync, mkdirSync, readdirSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import type { Plan, PlannedItem, RemoveAction } from '../../src/plan/action.js'
import { FreedBytes, planItem } from '../../src/plan/planned-item.js'
import type { StorePlace } from '../../src/plan/sidecar.js'
import type { MemberKind } from '../../src/model/session.js'
import { emptyRoot, writeBackup, writeStoreFile, writeTranscript } from '../helpers/store.js'
import type { Tree } from '../helpers/tree.js'
import { snapshotTree } from '../helpers/tree.js'

export const day = 24 * 60 * 60 * 1000
/** The clock of these tests. */
export const now = Date.parse('2026-11-30T03:17:00.000Z')
export const run1 = '20261130T031700000Z-aaaa'
export const run2 = '20261130T031700000Z-bbbb'

export function sessionId(n: number): string {
  return `00000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`
}

/** Sets every folder to a whole second of long ago, so that each later change of its time shows. */
export function settleFolders(folder: string, time = 1_700_000_000): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) settleFolders(join(folder, entry.name), time)
  }
  utimesSync(folder, time, time)
}

/**
 * A store of `count` sessions in three projects: each with a transcript, every second with a companion folder, every third
 * with a leftover, all with backups of which the first is linked into the session before. Known modes, known times.
 */
export async function sampleStore(count: number, register?: Parameters<typeof emptyRoot>[0]): Promise<StorePlace & { sessions: string[] }> {
  const root = await emptyRoot(register)
  const sessions: string[] = []
  for (let n = 0; n < count; n += 1) sessions.push(writeSession(root, n))
  for (let n = 0; n + 1 < count; n += 2) linkSync(backup(root, n, 1), join(root, 'file-history', sessionId(n + 1), `${hash(n)}@v1`))
  settleFolders(root)
  return { root, sidecar: join(root, '.rewind-admin'), sessions }
}

export function slugOf(n: number): string {
  return `-home-u-p${String(n % 3)}`
}

export function hash(n: number): string {
  return n.toString(16).padStart(16, 'a')
}

export function backup(root: string, n: number, version: number): string {
  return join(root, 'file-history', sessionId(n), `${hash(n)}@v${String(version)}`)
}

function writeSession(root: string, n: number): string {
  const id = sessionId(n)
  const mtime = now - (40 + n) * day
  writeTranscript(root, slugOf(n), id, [`{"type":"user","n":${String(n)}}`], { mtime })
  for (let version = 1; version <= 3; version += 1) {
    const mode = [0o600, 0o755, 0o444][version - 1] ?? 0o600
    writeBackup(root, id, `${hash(n)}@v${String(version)}`, `${id} ${String(version)}`, { mode, mtime })
  }
  if (n % 2 === 0) writeStoreFile(root, `projects/${slugOf(n)}/${id}/subagents/agent-1.jsonl`, '{}\n', { mtime })
  if (n % 3 === 0) writeStoreFile(root, `todos/${id}-agent-${id}.json`, '[]', { mtime })
  return id
}

const places = (n: number): [MemberKind, string][] => [
  ['transcript', `projects/${slugOf(n)}/${sessionId(n)}.jsonl`],
  ['companion', `projects/${slugOf(n)}/${sessionId(n)}`],
  ['backups', `file-history/${sessionId(n)}`],
  ['leftover', `todos/${sessionId(n)}-agent-${sessionId(n)}.json`],
]

/** The action that takes a whole session of the sample away, as it stands now; `undefined` when nothing of it is there. */
export function removalOf(root: string, n: number, freed = new FreedBytes()): RemoveAction | undefined {
  const items: PlannedItem[] = []
  let bytes = 0
  for (const [kind, path] of places(n)) {
    const planned = planItem(root, { kind, path })
    if (planned === undefined) continue
    items.push(planned.item)
    bytes += freed.take(planned.inodes)
  }
  if (items.length === 0) return undefined
  return { kind: 'trash-session', session: sessionId(n), reason: 'older than 30 days', bytes, items, emptied: [`projects/${slugOf(n)}`] }
}

/** Takes version 2 of a session's backups away, if it is there. */
export function capOf(root: string, n: number): RemoveAction | undefined {
  const planned = planItem(root, { kind: 'backups', path: `file-history/${sessionId(n)}/${hash(n)}@v2` })
  const transcript = planItem(root, { kind: 'transcript', path: `projects/${slugOf(n)}/${sessionId(n)}.jsonl` })
  if (planned === undefined || transcript === undefined) return undefined
  const bytes = planned.item.identity.size
  return { kind: 'trash-backups', session: sessionId(n), reason: 'no kept checkpoint names it', bytes, items: [planned.item], witnesses: [transcript.item] }
}

export function planOf(place: StorePlace, actions: readonly (Plan['actions'][number] | undefined)[], storeSessions = 100): Plan {
  return {
    schemaVersion: 1,
    format: 'claude-code',
    root: place.root,
    sidecar: place.sidecar,
    createdAt: now,
    command: 'expire',
    storeSessions,
    actions: actions.filter((action) => action !== undefined),
    kept: [],
  }
}

/** Takes every one of the first `count` sessions of the sample away. */
export function expireAll(place: StorePlace, count: number): Plan {
  const freed = new FreedBytes()
  return planOf(place, Array.from({ length: count }, (_, n) => removalOf(place.root, n, freed)), count)
}

/** The store without our own folder, and without the link count of the root, which our folder is part of. */
export function storeTree(root: string): Tree {
  const entries = Object.entries(snapshotTree(root)).filter(([path]) => path !== '.rewind-admin' && !path.startsWith('.rewind-admin/'))
  return Object.fromEntries(entries.map(([path, node]) => [path, path === '.' ? { ...node, nlink: 0 } : node]))
}

/** Files of a tree, by their bytes, modes and times: what a user would call lost if it were missing. */
export function filesOf(folder: string): string[] {
  return Object.values(snapshotTree(folder))
    .filter((node) => node.type === 'file')
    .map((node) => `${node.mode} ${node.mtime} ${node.sha256 ?? ''}`)
    .sort()
}

/** A folder beside the store that nothing may touch. */
export function makeOutside(root: string): string {
  const outside = join(root, '..', 'outside')
  mkdirSync(outside)
  writeStoreFile(outside, 'secret', 'secret', { mode: 0o640, mtime: now - 100 * day })
  settleFolders(outside)
  return outside
}

export function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}
