import type { Store } from '../../formats/format.js'
import { FenceError, NoMatchError } from '../../model/errors.js'
import type { BackupRecord } from '../../model/backup.js'
import type { SessionReading } from '../../model/session.js'
import { carryOut, type ApplyOptions, type RestoreResult } from './apply.js'
import type { RestorePlan } from './plan.js'
import { planFromPoint } from './point-plan.js'
import { RedoStack } from './redo-stack.js'

export interface RedoOptions {
  /** Goes on although the session recorded edits after the rewind. */
  readonly force?: boolean
}

/** What a redo would do; `point` is the number of the redo point, `createdAt` when it was made (ISO 8601). */
export interface RedoPlan extends RestorePlan {
  readonly point: number
  readonly createdAt: string
}

/**
 * What it takes to undo the newest rewind of a session: every path as it was just before it.
 * @throws NoMatchError when the session has no redo point
 * @throws FenceError when the session recorded a newer state of a tracked file after the rewind and `force` is not set,
 * or when the point cannot be read
 * @throws NewerFormatError when a newer version of ours wrote the point
 */
export function planRedo(store: Store, reading: SessionReading, options: RedoOptions = {}): RedoPlan {
  const stack = new RedoStack(store.sidecar, reading.id)
  const point = stack.numbers().at(-1)
  if (point === undefined) {
    throw new NoMatchError(`session ${reading.id} has no rewind to undo`, { hint: `rewind-admin show ${reading.id}` })
  }
  const { createdAt } = stack.read(point)
  const newer = editsSince(reading, Date.parse(createdAt))
  if (newer.length > 0 && options.force !== true) {
    throw new FenceError(`session ${reading.id} recorded newer states after the rewind (${newer.join(', ')}); nothing was changed`, {
      hint: 'rewind-admin redo --force writes over them; the states written over are kept until the next redo',
    })
  }
  return { ...planFromPoint(reading.id, stack.pathOf(point)), point, createdAt }
}

/**
 * Undoes a rewind and takes its point off the stack. What was there is kept in the session's redo folder, under
 * `replaced`, until the next redo. The caller holds the store's lock.
 */
export function applyRedo(plan: RedoPlan, options: ApplyOptions): RestoreResult {
  const stack = new RedoStack(options.sidecar, plan.session)
  let prepared: string | undefined
  const result = carryOut(plan, stack, options, (path) => {
    prepared = path
    return undefined
  })
  if (result.rolledBack) return result
  if (prepared !== undefined) stack.keepReplaced(prepared)
  if (result.failed.length === 0) stack.drop(plan.point)
  return result
}

/** Tracked paths with a record that was made after a time (milliseconds since 1970), sorted. */
export function editsSince({ history }: SessionReading, since: number): string[] {
  const isNewer = (record: BackupRecord): boolean => record.time !== undefined && Date.parse(record.time) > since
  const newer = new Set<string>()
  for (const files of [history.originals, ...history.checkpoints.map((checkpoint) => checkpoint.files)]) {
    for (const [path, record] of files) if (isNewer(record)) newer.add(path)
  }
  return [...newer].sort()
}
