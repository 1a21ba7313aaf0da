import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { flush, type SyncFileSystem } from '../../fs/flush.js'
import { FenceError, NoSpaceError, systemErrorCode } from '../../model/errors.js'
import { ExitCode } from '../../model/exit-code.js'
import { isChange, type PlannedPath } from '../../model/restore-plan.js'
import { BackupSource } from './backup-source.js'
import { Execution, failureOf, type Change, type PathFailure } from './execution.js'
import { FolderCursor } from './folder-cursor.js'
import type { RestorePlan } from './plan.js'
import { planFromPoint } from './point-plan.js'
import { PointWriter } from './point-writer.js'
import { missingFolders } from './redo-point.js'
import { RedoStack } from './redo-stack.js'

export interface ApplyOptions {
  /** The store's sidecar, where redo points go. */
  readonly sidecar: string
  /** Milliseconds since 1970. */
  readonly now: number
  /** Does what can be done although some paths cannot (`--partial`). */
  readonly partial?: boolean
  /** Makes writing thousands of files durable in one go; without it each is synced. */
  readonly syncFileSystem?: SyncFileSystem
}

/** A path that was left alone, and why. */
export interface LeftPath {
  readonly path: string
  readonly reason: string
}

/** What became of a restore plan. */
export interface RestoreResult {
  /** Paths that were restored or deleted; empty when it was rolled back. */
  readonly changed: readonly PlannedPath[]
  readonly skipped: readonly LeftPath[]
  readonly failed: readonly PathFailure[]
  /** Number of the redo point, when something was changed. */
  readonly point?: number
  /** True when a write failed midway and what had been done was undone. */
  readonly rolledBack: boolean
  /** Paths that could not be put back; the redo point was kept for them. */
  readonly notRolledBack: readonly PathFailure[]
  /** `done`, `partial` (some paths failed, or nothing was written because some would) or `noSpace`. */
  readonly exitCode: ExitCode
}

/**
 * Does what a restore plan says. Nothing is written when a needed backup is missing or damaged, unless `partial`. A redo
 * point with the state of every path of the plan is on the disk before the first file changes; when a path fails after
 * that, those done so far are put back from it (never half a rewind), unless `partial`. The caller holds the store's lock.
 * @throws FenceError when the sidecar or the backups lie behind a link; NoSpaceError when there is no room for the redo point
 */
export function applyRestore(plan: RestorePlan, options: ApplyOptions): RestoreResult {
  const stack = new RedoStack(options.sidecar, plan.session)
  return carryOut(plan, stack, options, (prepared) => stack.push(prepared))
}

/**
 * Called with the folder of a point when all is ready and nothing has been changed yet. Returns the point's number when
 * it went on the stack.
 */
export type KeepPoint = (prepared: string) => number | undefined

/** Carries a plan out with a point to go back to. */
export function carryOut(plan: RestorePlan, stack: RedoStack, options: ApplyOptions, keep: KeepPoint): RestoreResult {
  const partial = options.partial ?? false
  const blocked = blockedPaths(plan)
  // Also when there is nothing to do: a redo drops the point, and with it the name of what a killed run left.
  stack.sweep()
  const changes = plan.items.filter((item): item is Change => isChange(item.decision) && item.place !== undefined)
  if (changes.length === 0 || (blocked.length > 0 && !partial)) return resultOf(plan, { failed: blocked })

  const restored = changes.filter((change) => change.decision.action === 'restore')
  let source: BackupSource | undefined
  try {
    if (restored.length > 0) source = BackupSource.open(plan.source, plan.inline)
  } catch (error) {
    if (error instanceof FenceError) throw error
    return resultOf(plan, { failed: [...blocked, ...restored.map((change) => failureOf(change.path, error))] })
  }
  try {
    const token = randomBytes(8).toString('hex')
    const run = new Execution({ source, token, partial })
    return carryOutWith(run, { plan, changes, blocked, token, prepared: prepareIn(stack, token) }, stack, options, keep)
  } finally {
    source?.close()
  }
}

interface Work {
  readonly plan: RestorePlan
  readonly changes: readonly Change[]
  readonly blocked: readonly PathFailure[]
  readonly token: string
  readonly prepared: string
}

function carryOutWith(run: Execution, work: Work, stack: RedoStack, options: ApplyOptions, keep: KeepPoint): RestoreResult {
  const { plan, changes, blocked, token, prepared } = work
  const partial = options.partial ?? false
  let kept = false
  try {
    const saved = savePoint(plan, prepared, token, options.now, partial)
    const failedToSave = new Set(saved.failures.map((failure) => failure.path))
    const ready = changes.filter((change) => !failedToSave.has(change.path))
    if ((saved.failures.length > 0 && !partial) || !run.stage(ready)) {
      run.discard()
      rmSync(prepared, { recursive: true, force: true })
      return resultOf(plan, { failed: [...blocked, ...saved.failures, ...run.failures] })
    }
    flush([...saved.written, ...run.written], options.syncFileSystem)
    const point = keep(prepared)
    kept = true
    const where = point === undefined ? prepared : stack.pathOf(point)
    if (run.commit(ready, plan.emptied)) {
      run.discard()
      if (point !== undefined) stack.finish(point)
      return resultOf(plan, { changed: run.touched, failed: [...blocked, ...saved.failures, ...run.failures], point })
    }
    const notRolledBack = rollBack(plan.session, where, run.touched, options)
    run.discard()
    if (notRolledBack.length === 0) rmSync(where, { recursive: true, force: true })
    return resultOf(plan, { failed: run.failures, rolledBack: true, notRolledBack, ...(notRolledBack.length === 0 ? {} : { point }) })
  } catch (error) {
    // Once changes were made the point is what leads back, and the next run clears up.
    if (kept) throw error
    run.discard()
    rmSync(prepared, { recursive: true, force: true })
    throw noRoomFor(stack, error)
  }
}

function prepareIn(stack: RedoStack, token: string): string {
  try {
    return stack.prepare(token)
  } catch (error) {
    throw noRoomFor(stack, error)
  }
}

/** A full disk in words of its own; every other error as it is. */
function noRoomFor({ folder }: RedoStack, error: unknown): unknown {
  const code = systemErrorCode(error)
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return error
  const hint = 'free some space and run the same command again'
  return new NoSpaceError(`no space left for the redo point in ${folder}; nothing was changed`, { hint, cause: error })
}

/** Paths without which a restore would be half a restore: a backup is missing or damaged, or nobody knows the state. */
export function blockedPaths(plan: RestorePlan): PathFailure[] {
  return plan.items.flatMap(({ path, decision }) =>
    decision.action === 'fail' || decision.action === 'unknown' ? [{ path, code: 'BACKUP', reason: decision.reason }] : [],
  )
}

/** Paths that the plan leaves alone, with the reason for each. */
export function skippedPaths(plan: RestorePlan): LeftPath[] {
  return plan.items.flatMap(({ path, decision }) => (decision.action === 'skip' ? [{ path, reason: decision.reason }] : []))
}

function savePoint(plan: RestorePlan, prepared: string, token: string, now: number, partial: boolean): SavedPoint {
  const writer = new PointWriter(prepared)
  const cursor = new FolderCursor()
  const failures: PathFailure[] = []
  try {
    for (const item of plan.items) {
      try {
        const isFile = item.node.kind === 'file' && item.decision.action !== 'skip' && item.decision.action !== 'unknown'
        writer.save(item, isFile && item.place !== undefined ? cursor.to(item.place.folder) : undefined)
      } catch (error) {
        failures.push(failureOf(item.path, error))
        if (!partial) return { failures, written: [] }
      }
    }
    const folders = plan.items.flatMap((item) =>
      item.decision.action === 'restore' && item.place !== undefined ? missingFolders(item.place) : [],
    )
    const { session, checkpoint } = plan
    const createdAt = new Date(now).toISOString()
    const written = writer.finish({ session, checkpoint, createdAt, token, folders: [...new Set(folders)].sort() })
    return { failures, written }
  } finally {
    cursor.close()
    writer.close()
  }
}

interface SavedPoint {
  readonly failures: readonly PathFailure[]
  readonly written: ReturnType<PointWriter['finish']>
}

/**
 * Takes back what `applyRestore` just did, from its redo point, which goes when all of it is back. Needs no room that the
 * restore did not need. Returns the paths that could not be put back; then the point stays. The caller still holds the lock.
 */
export function takeBack(plan: RestorePlan, { changed, point }: RestoreResult, options: ApplyOptions): readonly PathFailure[] {
  if (point === undefined) return []
  const stack = new RedoStack(options.sidecar, plan.session)
  const failures = rollBack(plan.session, stack.pathOf(point), changed, options)
  if (failures.length === 0) stack.drop(point)
  return failures
}

/** Puts the touched paths back as the point has them; returns those that could not be. */
function rollBack(session: string, where: string, touched: readonly PlannedPath[], options: ApplyOptions): readonly PathFailure[] {
  const only = new Set(touched.map((change) => change.path))
  const plan = planFromPoint(session, where, only)
  const source = BackupSource.open(where)
  try {
    const run = new Execution({ source, token: randomBytes(8).toString('hex'), partial: true })
    const changes = plan.items.filter((item): item is Change => isChange(item.decision) && item.place !== undefined)
    run.stage(changes)
    flush(run.written, options.syncFileSystem)
    run.commit(changes, plan.emptied)
    run.discard()
    return [...blockedPaths(plan), ...run.failures]
  } finally {
    source.close()
  }
}

interface Done {
  readonly changed?: readonly PlannedPath[]
  readonly failed: readonly PathFailure[]
  readonly point?: number | undefined
  readonly rolledBack?: boolean
  readonly notRolledBack?: readonly PathFailure[]
}

function resultOf(plan: RestorePlan, done: Done): RestoreResult {
  const { failed } = done
  const isFull = failed.some(({ code }) => code === 'ENOSPC' || code === 'EDQUOT')
  return {
    changed: done.changed ?? [],
    skipped: skippedPaths(plan),
    failed,
    rolledBack: done.rolledBack ?? false,
    notRolledBack: done.notRolledBack ?? [],
    exitCode: isFull ? ExitCode.noSpace : failed.length > 0 ? ExitCode.partial : ExitCode.done,
    ...(done.point === undefined ? {} : { point: done.point }),
  }
}
