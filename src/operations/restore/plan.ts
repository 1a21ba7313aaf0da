import { realpathSync } from 'node:fs'
import { dirname, resolve as resolvePath } from 'node:path'
import type { Store } from '../../formats/format.js'
import { inspectBackup } from '../../fs/content.js'
import { joinSafe } from '../../fs/safe-path.js'
import type { BackupRecord } from '../../model/backup.js'
import { FenceError, NoMatchError, systemErrorCode } from '../../model/errors.js'
import type { Checkpoint } from '../../model/history.js'
import { resolve } from '../../model/resolve.js'
import { defaultRestoreRules, isChange, wantedPaths, type BackupState, type PlannedPath, type Wanted } from '../../model/restore-plan.js'
import type { SessionReading } from '../../model/session.js'
import { BackupSource, isFileName } from './backup-source.js'
import { PathPlanner } from './path-planner.js'

export type RewindScope = 'code' | 'conversation' | 'both'

export interface RestoreOptions {
  /** The user's home folder, absolute. */
  readonly home: string
  /** What a rewind covers; `conversation` touches no file. `code` unless told otherwise. */
  readonly scope?: RewindScope
  /** Only these files: absolute, relative to the session's start folder, or as recorded. */
  readonly files?: readonly string[]
  /** sha256 in hex that a backup had when it was sealed. */
  readonly sealOf?: (backup: string) => string | undefined
  /** Whether tracked paths have the shape of Windows. */
  readonly windows?: boolean
}

/** What a restore would do, path by path, sorted by path. Nothing was written to make it. */
export interface RestorePlan {
  readonly session: string
  readonly checkpoint: string
  readonly scope: RewindScope
  /** Real path of the folder that the bytes come from. */
  readonly source: string
  /** Bytes of backups that are no files of their own, by name. */
  readonly inline: ReadonlyMap<string, Buffer>
  readonly items: readonly PlannedPath[]
  /** Folders that are removed once they are empty, the deepest first: those that the rewind made which is undone. */
  readonly emptied: readonly string[]
}

/**
 * What a restore of the tracked files to a checkpoint would do (formats/claude-code section 4). Follows no link, opens
 * plain files only, and of those only what must be compared.
 * @throws NoMatchError when a file of `options.files` is not tracked in the session
 * @throws FenceError when the backups lie behind a link
 */
export function planRestore(store: Store, reading: SessionReading, checkpoint: Checkpoint, options: RestoreOptions): RestorePlan {
  const scope = options.scope ?? 'code'
  const base = { session: reading.id, checkpoint: checkpoint.id, scope, source: sourceOf(store, reading.id), emptied: [] }
  if (scope === 'conversation') return { ...base, inline: new Map(), items: [] }
  return withPlanner(store, reading, checkpoint, options, (planner, wanted, inline) => ({ ...base, inline, items: planner.planAll(wanted) }))
}

/**
 * Whether a restore to a checkpoint would change any file; stops at the first one that it would.
 * @throws as `planRestore`
 */
export function hasAnyChanges(store: Store, reading: SessionReading, checkpoint: Checkpoint, options: RestoreOptions): boolean {
  if (options.scope === 'conversation') return false
  return withPlanner(store, reading, checkpoint, options, (planner, wanted) => wanted.some((each) => isChange(planner.plan(each).decision)))
}

type Inline = ReadonlyMap<string, Buffer>

function withPlanner<T>(
  store: Store,
  reading: SessionReading,
  checkpoint: Checkpoint,
  options: RestoreOptions,
  plan: (planner: PathPlanner, wanted: readonly Wanted[], inline: Inline) => T,
): T {
  const wanted = onlyFiles(wantedOf(reading, checkpoint, options), reading, options.files)
  const inline = inlineOf(store, reading.id, wanted)
  const source = openSource(sourceOf(store, reading.id), inline)
  try {
    const planner = new PathPlanner({
      start: reading.project,
      home: options.home,
      windows: options.windows ?? false,
      fenced: fencedFolders(store, reading.id),
      source,
      rules: store.restoreRules ?? defaultRestoreRules,
      backupOf: ({ name, record }) => lookAtBackup(source, name, record, options.sealOf?.(name)),
    })
    return plan(planner, wanted, inline)
  } finally {
    source?.close()
  }
}

function inlineOf(store: Store, session: string, wanted: readonly Wanted[]): Inline {
  const inline = new Map<string, Buffer>()
  if (store.inlineBytes === undefined) return inline
  for (const { resolution } of wanted) {
    const bytes = resolution.state === 'backup' ? store.inlineBytes(session, resolution.name) : undefined
    if (bytes !== undefined && resolution.state === 'backup') inline.set(resolution.name, bytes)
  }
  return inline
}

function lookAtBackup(source: BackupSource | undefined, name: string, record: BackupRecord, seal: string | undefined): BackupState {
  // A name comes out of a record: it must be the name of a file in the folder and nothing else.
  if (!isFileName(name)) return { kind: 'unreadable', reason: 'it is not a file name' }
  const found = source === undefined ? ({ kind: 'missing' } as const) : inspectAt(source, name, seal)
  if (found.kind !== 'file') return found
  if (record.size !== undefined && record.size !== found.size) {
    return { kind: 'damaged', reason: `it has ${String(found.size)} bytes, its record says ${String(record.size)}` }
  }
  return record.mode === undefined ? found : { ...found, mode: record.mode }
}

function inspectAt(source: BackupSource, name: string, seal: string | undefined): BackupState {
  try {
    const at = source.at(name)
    if ('folder' in at) return inspectBackup(at.folder, at.name, seal)
    // What is sealed of a text in a record is the record.
    const record = seal === undefined ? undefined : source.fileAt(name)
    const found = record === undefined ? undefined : inspectBackup(record.folder, record.name, seal)
    return found === undefined || found.kind === 'file' ? { kind: 'file', size: at.bytes.length, offset: 0 } : found
  } catch (error) {
    if (error instanceof FenceError) return { kind: 'unreadable', reason: 'its folder is a link, or none' }
    const code = systemErrorCode(error)
    return code === 'ENOENT' ? { kind: 'missing' } : { kind: 'unreadable', reason: code ?? 'unknown error' }
  }
}

function wantedOf(reading: SessionReading, checkpoint: Checkpoint, { windows }: RestoreOptions): Wanted[] {
  return wantedPaths(resolve(reading.history, checkpoint), checkpoint.files, reading.project, windows)
}

function onlyFiles(wanted: readonly Wanted[], reading: SessionReading, files: readonly string[] | undefined): readonly Wanted[] {
  if (files === undefined) return wanted
  const chosen = new Set<Wanted>()
  for (const file of files) {
    const path = reading.project === undefined ? file : resolvePath(reading.project, file)
    const found = wanted.find((each) => each.path === path || each.keys.includes(file))
    if (found === undefined) {
      throw new NoMatchError(`${file} is not tracked in session ${reading.id}`, { hint: `rewind-admin show ${reading.id}` })
    }
    chosen.add(found)
  }
  return wanted.filter((each) => chosen.has(each))
}

function sourceOf(store: Store, session: string): string {
  return joinSafe(store.root, store.backupFolder(session))
}

/** Backups and our own state are never a target, whatever a transcript says. */
function fencedFolders(store: Store, session: string): string[] {
  return [dirname(sourceOf(store, session)), store.sidecar, ...(store.fenced ?? [])].flatMap((folder) => [folder, realOf(folder)])
}

function realOf(folder: string): string {
  try {
    return realpathSync.native(folder)
  } catch {
    return folder
  }
}

function openSource(folder: string, inline: Inline): BackupSource | undefined {
  try {
    return BackupSource.open(folder, inline)
  } catch (error) {
    if (error instanceof FenceError) throw error
    if (systemErrorCode(error) === 'ENOENT') return undefined
    throw error
  }
}
