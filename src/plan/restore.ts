import { dirname } from 'node:path'
import { identityOf, sameIdentity, statusOf } from '../fs/identity.js'
import { insideRoot } from '../fs/safe-path.js'
import { FenceError, NoMatchError } from '../model/errors.js'
import { ExitCode } from '../model/exit-code.js'
import type { ErrorItem } from '../model/report.js'
import type { PlannedItem } from './action.js'
import type { ActsOptions } from './file-acts.js'
import { Acts } from './file-acts.js'
import type { ExactTime } from './folder-times.js'
import { FolderTimes } from './folder-times.js'
import type { Bench } from './move.js'
import { putBack } from './move.js'
import { errorItem, occupied } from './outcome.js'
import { makeFolders, putFilesBack } from './put-back.js'
import type { Receipt } from './receipt.js'
import type { StorePlace } from './sidecar.js'
import { Sidecar } from './sidecar.js'
import type { OpenedEntry } from './trash.js'
import { dropEmptyRuns, openTrash } from './trash.js'

export interface RestoreOptions extends ActsOptions {
  /** Only what this session has in the run; else everything. */
  readonly session?: string
  /** Sets times of folders to the nanosecond. Files need none of it: they were only renamed. */
  readonly exactTime?: ExactTime
}

export interface RestoreResult {
  /** Sessions (or shared files) that are wholly in place again. */
  readonly restored: readonly string[]
  /** Every path that was put back, relative to the root. */
  readonly paths: readonly string[]
  /** What stays in the trash, and why. */
  readonly errors: readonly ErrorItem[]
  readonly exitCode: ExitCode
}

/**
 * Puts back what a run removed: bytes, modes and times as they were, those of the folders around too; backups first and the
 * transcript last, so that a session that is listed is complete (promise 2, R60). Nothing that stands there now is overwritten: such an
 * item stays in the trash and is an error. A file that a run put in place of another is replaced by the old one only when it
 * is still as the run left it. Needs no space. Hold the store's lock.
 * @throws NoMatchError when the trash holds nothing of that run or session; NewerFormatError when a newer version of ours put it there
 */
export async function restoreFromTrash(place: StorePlace, run: string, options: RestoreOptions = {}): Promise<RestoreResult> {
  const acts = new Acts(options)
  const sidecar = new Sidecar(place, acts.direct)
  const opened = openTrash(sidecar, run).filter(({ entry }) => options.session === undefined || entry.session === options.session)
  if (opened.length === 0) {
    const what = options.session === undefined ? `run ${run}` : `session ${options.session} of run ${run}`
    throw new NoMatchError(`the trash holds nothing of ${what}`, { hint: 'see "rewind-admin trash list"' })
  }
  const bench: Bench = { root: place.root, sidecar, acts, times: new FolderTimes(options.exactTime) }
  const restored: string[] = []
  const paths: string[] = []
  const errors: ErrorItem[] = []
  const giveModes: (() => void)[] = []
  const made: string[] = []
  for (const one of opened) {
    const before = errors.length
    try {
      giveModes.push(makeFolders(bench, one.receipt?.folders ?? []))
      if (one.receipt?.published !== undefined) {
        await takeBack(bench, one, one.receipt.published)
        made.push(...(one.receipt.published.made ?? []))
      } else errors.push(...(await putItemsBack(bench, one, paths)))
    } catch (error) {
      errors.push(errorItem(error, one.entry.session))
    }
    if (errors.length > before) continue
    if (one.slot.discard()) restored.push(one.entry.session)
    else {
      const path = one.entry.folder
      errors.push({ code: 'LEFT_OVER', path, message: `something that no receipt names is left in ${path}` })
    }
  }
  removeMade(bench, made)
  for (const give of giveModes) give()
  bench.times.putBack()
  dropEmptyRuns(sidecar)
  return { restored, paths, errors, exitCode: errors.length > 0 ? ExitCode.partial : ExitCode.done }
}

async function putItemsBack(bench: Bench, one: OpenedEntry, paths: string[]): Promise<ErrorItem[]> {
  if (one.items === undefined) return putFilesBack(bench, one.slot)
  const errors: ErrorItem[] = []
  let whole = true
  for (const item of one.items) {
    // A session is listed by its transcript: it comes back only to backups that are whole.
    if (item.kind === 'transcript' && !whole) break
    const before = errors.length
    try {
      const from = one.slot.at(item.path)
      if (statusOf(from) === undefined) {
        if (!isBack(bench.root, item)) errors.push({ code: 'MISSING', path: item.path, message: `${item.path} is not in the trash` })
        continue
      }
      const inTheWay = await putBack(bench, from, item.path, item.kind === 'backups')
      errors.push(...inTheWay.map(occupied))
      if (inTheWay.length === 0) paths.push(item.path)
    } catch (error) {
      const { message, ...rest } = errorItem(error, item.path)
      errors.push({ ...rest, message: message.replace('left in place', 'left in the trash') })
    }
    whole &&= item.kind !== 'backups' || errors.length === before
  }
  return errors
}

/** An earlier restore that was cut off put it back already. */
function isBack(root: string, item: PlannedItem): boolean {
  const path = insideRoot(root, item.path)
  const status = path === undefined ? undefined : statusOf(path)
  return status !== undefined && identityOf(status).ino === item.identity.ino
}

/** Undoes a replacement: the old file comes back over the new one, or the new one goes where there was none. */
async function takeBack(bench: Bench, { slot, items }: OpenedEntry, published: NonNullable<Receipt['published']>): Promise<void> {
  const { path: relative, identity, beside } = published
  const path = insideRoot(beside === true ? dirname(bench.root) : bench.root, relative)
  const there = path === undefined ? undefined : statusOf(path)
  const old = slot.at(relative)
  const hasOld = statusOf(old) !== undefined
  // An earlier restore that was cut off did it already.
  const wasReplaced = (items ?? []).length > 0
  if (path === undefined || (!hasOld && (wasReplaced || there === undefined))) return
  if (there !== undefined && !sameIdentity(identityOf(there), identity)) {
    throw new FenceError(`${relative} was written to since and was not overwritten; what was there before stays in the trash`)
  }
  const folder = dirname(path)
  bench.times.before(folder)
  if (hasOld) await bench.acts.try((acts) => { acts.rename(old, path) })
  else await bench.acts.try((acts) => { acts.unlink(path) })
  bench.times.after(folder)
}

/** Folders that were made for what was published, the innermost first: a folder may have been made for several files. */
function removeMade(bench: Bench, made: readonly string[]): void {
  for (const folder of [...new Set(made)].sort((a, b) => b.length - a.length)) {
    try {
      const path = insideRoot(bench.root, folder)
      if (path === undefined || statusOf(path) === undefined) continue
      bench.times.before(dirname(path))
      bench.acts.direct.rmdir(path)
      bench.times.after(dirname(path))
    } catch {
      // Something else is in it by now.
    }
  }
}
