import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../formats/format.js'
import { probeFolder, type ProbedFolder } from '../fs/probe.js'
import { parseBackupName } from '../model/names.js'
import type { SessionReading, SessionRef } from '../model/session.js'
import { backupJob, isBackupOf } from './backup-files.js'

/** One session as `status` and `list` show it. Times are milliseconds since 1970, bytes are counted once per inode. */
export interface SessionRow {
  readonly id: string
  readonly project?: string
  readonly lastActivity?: number
  readonly checkpoints: number
  readonly backups: number
  readonly bytes: number
  readonly transcriptBytes: number
  /** Of the transcripts; see `SessionReading`. */
  readonly historyBytes?: number
  readonly live: boolean
  /** Tracked path to the bytes of its backups, counted once per inode. */
  readonly paths: ReadonlyMap<string, number>
  readonly versions: ReadonlyMap<number, number>
}

/** Counts each inode once, over all sessions that it is asked about (R68). */
export class InodeCount {
  readonly #seen = new Set<string>()

  /** `size` when the inode is new, else 0. */
  add(inode: string, links: number, size: number): number {
    if (links < 2) return size
    if (this.#seen.has(inode)) return 0
    this.#seen.add(inode)
    return size
  }
}

/** Metadata of the backups of a session, without opening one. */
export function probeBackups(store: Store, ref: SessionRef): ProbedFolder | undefined {
  const job = backupJob(store, ref, 'none')
  return job === undefined ? undefined : probeFolder(job)
}

/** Puts together what one session is; `inodes` is shared by all sessions of a run. */
export function sessionRow(store: Store, ref: SessionRef, reading: SessionReading, inodes: InodeCount, live: boolean): SessionRow {
  const folder = probeBackups(store, ref)
  const paths = new Map<string, number>()
  const versions = new Map<number, number>()
  let newest = Math.max(reading.lastRecorded ?? 0, reading.lastWritten ?? 0)
  let bytes = 0
  let backups = 0
  for (const entry of folder?.entries ?? []) {
    if (entry.node !== 'file' || !isBackupOf(store, reading.history.references, entry.name)) continue
    const reference = reading.history.references.get(entry.name)
    const size = inodes.add(entry.inode, entry.links, entry.size)
    backups += 1
    bytes += size
    newest = Math.max(newest, entry.mtimeMs)
    if (reference?.path !== undefined) paths.set(reference.path, (paths.get(reference.path) ?? 0) + size)
    const version = parseBackupName(entry.name)?.version ?? reference?.version ?? 1
    versions.set(version, (versions.get(version) ?? 0) + 1)
  }
  for (const member of ref.members) {
    if (member.kind !== 'companion' && member.kind !== 'agent') continue
    newest = Math.max(newest, lstatSync(join(store.root, member.path), { throwIfNoEntry: false })?.mtimeMs ?? 0)
  }
  return {
    id: ref.id,
    ...(reading.project === undefined ? {} : { project: reading.project }),
    ...(newest === 0 ? {} : { lastActivity: Math.floor(newest) }),
    checkpoints: reading.history.checkpoints.length,
    backups,
    bytes,
    transcriptBytes: reading.transcriptBytes,
    ...(reading.historyBytes === undefined ? {} : { historyBytes: reading.historyBytes }),
    live,
    paths,
    versions,
  }
}
