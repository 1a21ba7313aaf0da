import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isNoSpace } from '../fs/atomic-write.js'
import { identityOf, sameInode, statusOf } from '../fs/identity.js'
import { insideRoot } from '../fs/safe-path.js'
import type { ErrorItem } from '../model/report.js'
import type { Action, PlannedItem, RemoveAction } from './action.js'
import { inOrderOfRemoval } from './action.js'
import type { ActsOptions } from './file-acts.js'
import { Acts } from './file-acts.js'
import { FolderTimes, setFolderTime } from './folder-times.js'
import type { JournalReading } from './journal.js'
import { closeJournal, isFinished, journalPath, readJournal } from './journal.js'
import type { Bench } from './move.js'
import { moveToTrash } from './move.js'
import { errorItem } from './outcome.js'
import type { Receipt } from './receipt.js'
import { readReceipt, receiptFor } from './receipt.js'
import { lookAgain, removeEmptied, rollBack } from './remove-session.js'
import type { StillAllowed } from './remove-session.js'
import { removeTree } from './remove-tree.js'
import { makeFolders, putFilesBack } from './put-back.js'
import { runTime } from './run-id.js'
import type { StorePlace } from './sidecar.js'
import { Sidecar } from './sidecar.js'
import { Slot, goneEnding, sessionOfSlot, unfinishedEnding } from './slot.js'
import { isUndone, names, unfinishedRuns } from './unfinished.js'

export interface RecoverOptions extends ActsOptions {
  /** Milliseconds since 1970. */
  readonly now: number
  /** A half-moved session for which this says no is put back. */
  readonly stillAllowed?: StillAllowed
}

export interface RecoveredRun {
  readonly runId: string
  /** Sessions that are now wholly in the trash, or removed for good. */
  readonly completed: readonly string[]
  /** Sessions that are wholly in place again. */
  readonly rolledBack: readonly string[]
  readonly errors: readonly ErrorItem[]
}

/**
 * Completes or rolls back what earlier runs left half done (promise 6). Every decision is made by looking at both places; the
 * journal and the receipts only say what was meant. A half-moved session goes on into the trash when nothing of it was touched
 * since and it is still allowed; otherwise it is put back. Files that were made and not published are taken away. Hold the store's lock.
 * @throws NewerFormatError when a newer version of ours left something undone
 */
export async function recoverRuns(place: StorePlace, options: RecoverOptions): Promise<RecoveredRun[]> {
  const acts = new Acts(options)
  const sidecar = new Sidecar(place, acts.direct)
  if (!sidecar.exists()) return []
  const recovered: RecoveredRun[] = []
  for (const runId of unfinishedRuns(sidecar)) {
    const bench: Bench = { root: place.root, sidecar, acts, times: new FolderTimes() }
    const run = new RunRecovery(bench, runId, options)
    recovered.push(await run.recover())
  }
  sweepStaging(sidecar, acts)
  return recovered
}

/** With the lock held nothing waits to be published: what is there is of runs that were cut off, and may be a second name of a file that was. */
function sweepStaging(sidecar: Sidecar, acts: Acts): void {
  for (const name of names(sidecar.staging)) {
    try {
      acts.direct.unlink(join(sidecar.staging, name))
    } catch {
      // It is in nobody's way.
    }
  }
}

class RunRecovery {
  readonly #bench: Bench
  readonly #runId: string
  readonly #options: RecoverOptions
  readonly #journal: JournalReading
  readonly #completed: string[] = []
  readonly #rolledBack: string[] = []
  readonly #errors: ErrorItem[] = []

  constructor(bench: Bench, runId: string, options: RecoverOptions) {
    this.#bench = bench
    this.#runId = runId
    this.#options = options
    this.#journal = readJournal(bench.sidecar, runId)
  }

  async recover(): Promise<RecoveredRun> {
    const { sidecar, times } = this.#bench
    const folder = join(sidecar.trash, this.#runId)
    const wasOpen = !isFinished(sidecar, this.#runId)
    for (const name of names(folder)) {
      if (name.endsWith(unfinishedEnding)) await this.#settle(name.slice(0, -unfinishedEnding.length), join(folder, name))
    }
    if (wasOpen) this.#putFolderTimesBack()
    times.putBack()
    // Only runs that were cut off: a later choice of the user to keep the rest of an old run's trash is not ours to change.
    const forGood = wasOpen && this.#journal.header?.method === 'remove'
    for (const name of names(folder)) {
      if (name.endsWith(goneEnding) || (forGood && !isUndone(name))) await this.#removeForGood(folder, name)
    }
    try {
      this.#bench.acts.direct.rmdir(folder)
    } catch {
      // It holds something, or there is none.
    }
    if (wasOpen) closeJournal(sidecar, this.#runId, this.#options.now)
    return { runId: this.#runId, completed: this.#completed, rolledBack: this.#rolledBack, errors: this.#errors }
  }

  async #settle(name: string, folder: string): Promise<void> {
    const slot = new Slot(this.#bench.sidecar, this.#runId, name, folder)
    const receipt = readReceipt(slot.receipt)
    const action = this.#journal.action(name)
    const session = receipt?.session ?? action?.session ?? sessionOfSlot(name)
    try {
      if ((action?.kind ?? receipt?.kind) === 'replace') await this.#settleReplace(slot, receipt, action)
      else if (action?.kind !== 'replace' && (await this.#goForward(slot, receipt, action))) this.#completed.push(session)
      else await this.#goBack(slot, receipt, action, session)
    } catch (error) {
      this.#errors.push(errorItem(error, session))
    }
  }

  /** Moves what is left of a session, if every part of it is as it was meant to be. */
  async #goForward(slot: Slot, receipt: Receipt | undefined, action: RemoveAction | undefined): Promise<boolean> {
    const meant = action ?? sessionOfReceipt(receipt)
    if (meant === undefined) return false
    const { root } = this.#bench
    const left: PlannedItem[] = []
    try {
      for (const item of inOrderOfRemoval(meant.items)) {
        if (statusOf(slot.at(item.path)) === undefined) left.push(item)
        else if (isThere(root, item.path)) return false
      }
      const allowed = this.#options.stillAllowed ?? ((): true => true)
      // What it needs to have been published is not known any more: then it goes back.
      const found = lookAgain({ root, stillAllowed: allowed, published: new Map() }, { ...meant, items: left })
      if (typeof found === 'string') return false
      if (receipt === undefined) this.#writeReceipt(slot, meant)
      for (const item of found.items) await moveToTrash(this.#bench, slot, item)
    } catch {
      return false
    }
    await removeEmptied(this.#bench, meant)
    await this.#bench.acts.try(() => { slot.commit() })
    return true
  }

  async #goBack(slot: Slot, receipt: Receipt | undefined, action: Action | undefined, session: string): Promise<void> {
    const giveModes = makeFolders(this.#bench, receipt?.folders ?? [])
    const items = receipt?.items ?? (action?.kind === 'replace' ? undefined : action?.items)
    const left = items === undefined ? await putFilesBack(this.#bench, slot) : await rollBack(this.#bench, items, slot)
    giveModes()
    if (items === undefined && left.length === 0) slot.discard()
    if (items === undefined && left.length > 0) await this.#bench.acts.try(() => { slot.commit() })
    this.#errors.push(...left)
    if (left.length === 0) this.#rolledBack.push(session)
  }

  /** The new file is published or it is not: what stands at the path says which. */
  async #settleReplace(slot: Slot, receipt: Receipt | undefined, action: Action | undefined): Promise<void> {
    const { root, acts } = this.#bench
    const published = receipt?.published
    if (published === undefined) {
      // The receipt comes before everything else, so nothing was done.
      if (!slot.discard()) await acts.try(() => { slot.commit() })
      return
    }
    const subject = receipt?.session ?? action?.session ?? published.path
    const path = insideRoot(published.beside === true ? dirname(root) : root, published.path)
    const there = path === undefined ? undefined : statusOf(path)
    if (there !== undefined && sameInode(identityOf(there), published.identity)) {
      await acts.try(() => { slot.commit() })
      this.#completed.push(subject)
      return
    }
    const kept = slot.at(published.path)
    const old = statusOf(kept)
    if (old !== undefined && path !== undefined) {
      if (there === undefined) await acts.try((direct) => { direct.rename(kept, path) })
      else if (sameInode(identityOf(there), identityOf(old))) await acts.try((direct) => { direct.unlink(kept) })
    }
    if (slot.discard()) this.#rolledBack.push(subject)
    else await acts.try(() => { slot.commit() })
  }

  #writeReceipt(slot: Slot, action: RemoveAction): void {
    const { sidecar, root, times } = this.#bench
    const facts = {
      runId: this.#runId,
      command: this.#journal.header?.command ?? 'unknown',
      now: Date.parse(this.#journal.header?.startedAt ?? '') || (runTime(this.#runId) ?? this.#options.now),
    }
    try {
      if (existsSync(slot.receipt)) sidecar.acts.unlink(slot.receipt)
      sidecar.writeFile(slot.receipt, JSON.stringify(receiptFor(action, action.items, root, facts, times)))
    } catch (error) {
      if (!isNoSpace(error)) throw error
    }
  }

  /**
   * The dead run could not set the times of folders back that it had moved things out of. A folder in which somebody wrote
   * after that run's last word keeps its new time.
   */
  #putFolderTimesBack(): void {
    const { root, sidecar, times } = this.#bench
    const lastWord = statusOf(journalPath(sidecar, this.#runId))?.mtimeNs
    // The innermost first: a folder that was set back is no later writing in the folder above.
    const folders = [...this.#journal.folders].sort(([a], [b]) => b.split('/').length - a.split('/').length)
    for (const [folder, mtimeNs] of folders) {
      try {
        const path = insideRoot(root, folder)
        const status = path === undefined ? undefined : statusOf(path)
        if (path === undefined || status?.isDirectory() !== true || status.mtimeNs === BigInt(mtimeNs)) continue
        times.before(path)
        const later = names(path).some((name) => (statusOf(join(path, name))?.mtimeNs ?? 0n) > (lastWord ?? 0n))
        if (!later) setFolderTime(path, BigInt(mtimeNs), status.ino)
      } catch {
        // A link on the way, a folder that cannot be listed: it keeps its time.
      }
    }
  }

  async #removeForGood(folder: string, name: string): Promise<void> {
    const plain = name.endsWith(goneEnding) ? name.slice(0, -goneEnding.length) : name
    const slot = new Slot(this.#bench.sidecar, this.#runId, plain, join(folder, name))
    try {
      if (!name.endsWith(goneEnding)) await this.#bench.acts.try(() => { slot.condemn() })
      await removeTree(this.#bench.acts, slot.folder)
      this.#completed.push(sessionOfSlot(plain))
    } catch (error) {
      this.#errors.push(errorItem(error, plain))
    }
  }
}

/**
 * What a receipt alone says was meant. Only of whole sessions: whether single backups may still go depends on a transcript that
 * only the journal names.
 */
function sessionOfReceipt(receipt: Receipt | undefined): RemoveAction | undefined {
  if (receipt?.kind !== 'trash-session' || receipt.session === undefined) return undefined
  return { kind: receipt.kind, session: receipt.session, reason: receipt.reason, bytes: receipt.bytes, items: receipt.items }
}

function isThere(root: string, relative: string): boolean {
  const path = insideRoot(root, relative)
  return path !== undefined && statusOf(path) !== undefined
}
