import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { InodeName } from '../fs/identity.js'
import { observe } from '../fs/identity.js'
import { systemErrorCode } from '../model/errors.js'
import type { ErrorItem } from '../model/report.js'
import type { Action, PlannedItem } from './action.js'
import type { ActsOptions } from './file-acts.js'
import { Acts } from './file-acts.js'
import { isFinished, journalPath, journalledRuns, readJournal } from './journal.js'
import type { JournalReading } from './journal.js'
import { errorItem } from './outcome.js'
import { FreedBytes } from './planned-item.js'
import type { Receipt } from './receipt.js'
import { readReceipt } from './receipt.js'
import { removeTree } from './remove-tree.js'
import { isRunId, runTime } from './run-id.js'
import type { StorePlace } from './sidecar.js'
import { Sidecar } from './sidecar.js'
import { Slot, goneEnding, sessionOfSlot, unfinishedEnding } from './slot.js'

/** What one action of one run put into the trash. */
export interface TrashEntry {
  readonly runId: string
  /** Session id, or the path of a shared file that belongs to none. */
  readonly session: string
  readonly kind: Action['kind']
  readonly command: string
  readonly reason: string
  readonly project?: string
  /** Milliseconds since 1970. */
  readonly lastActivity?: number
  /** When it was put there, milliseconds since 1970; `undefined` when nothing says so. */
  readonly trashedAt?: number
  /** Bytes that become free when it is removed for good, as counted when it was put there. */
  readonly bytes: number
  /** Where everything was, relative to the root. */
  readonly paths: readonly string[]
  /** The receipt was lost and is made up from the journal or from the names in the trash. */
  readonly receiptLost: boolean
  /** Absolute path of its folder in the trash. */
  readonly folder: string
}

/** An entry with what is needed to put it back. */
export interface OpenedEntry {
  readonly entry: TrashEntry
  readonly slot: Slot
  readonly receipt: Receipt | undefined
  /** From the receipt, or else from the journal; `undefined` when both are lost. */
  readonly items: readonly PlannedItem[] | undefined
}

/**
 * Everything in the trash of a store, the oldest run first. What a run has not finished is left out: `recoverRuns` decides on it.
 * @throws NewerFormatError when a newer version of ours put something there
 */
export function listTrash(place: StorePlace): TrashEntry[] {
  return openTrash(new Sidecar(place)).map(({ entry }) => entry)
}

/** As `listTrash`, of one run or all. */
export function openTrash(sidecar: Sidecar, run?: string): OpenedEntry[] {
  return names(sidecar.trash)
    .filter((runId) => isRunId(runId) && (run === undefined || run === runId))
    .flatMap((runId) => {
      const journal = lazily(() => readJournal(sidecar, runId))
      return names(join(sidecar.trash, runId))
        .filter((name) => !name.endsWith(unfinishedEnding) && !name.endsWith(goneEnding))
        .map((name) => openEntry(sidecar, runId, name, journal))
    })
}

function openEntry(sidecar: Sidecar, runId: string, name: string, journal: () => JournalReading): OpenedEntry {
  const folder = join(sidecar.trash, runId, name)
  const slot = new Slot(sidecar, runId, name, folder)
  const receipt = readReceipt(slot.receipt)
  if (receipt !== undefined) {
    const { session, kind, command, reason, project, lastActivity, bytes, items, published } = receipt
    const entry: TrashEntry = {
      runId,
      session: session ?? published?.path ?? sessionOfSlot(name),
      kind,
      command,
      reason,
      ...(project === undefined ? {} : { project }),
      ...(lastActivity === undefined ? {} : { lastActivity }),
      trashedAt: Date.parse(receipt.trashedAt),
      bytes,
      paths: items.map((item) => item.path),
      receiptLost: false,
      folder,
    }
    return { entry, slot, receipt, items }
  }
  const { header, action: actionOf } = journal()
  const action = actionOf(name)
  const items = action === undefined || action.kind === 'replace' ? undefined : action.items
  const startedAt = Date.parse(header?.startedAt ?? '')
  const trashedAt = Number.isNaN(startedAt) ? runTime(runId) : startedAt
  const entry: TrashEntry = {
    runId,
    session: action?.session ?? sessionOfSlot(name),
    kind: action?.kind ?? 'trash-session',
    command: header?.command ?? 'unknown',
    reason: action?.reason ?? 'the receipt is lost',
    ...(trashedAt === undefined ? {} : { trashedAt }),
    bytes: action?.bytes ?? 0,
    paths: items?.map((item) => item.path) ?? [],
    receiptLost: true,
    folder,
  }
  return { entry, slot, receipt, items }
}

/**
 * Entries whose grace period is over: put there longer ago than `olderThan`, strictly, whatever the age of the files (R20). An entry of
 * unknown time stays.
 * @param olderThan milliseconds
 * @param now milliseconds since 1970
 */
export function dueEntries(entries: readonly TrashEntry[], olderThan: number, now: number): TrashEntry[] {
  return entries.filter((entry) => entry.trashedAt !== undefined && now - entry.trashedAt > olderThan)
}

/**
 * What emptying takes: entries whose grace period is over; with a budget only the oldest of them, until no more than `maxBytes` of
 * all are left.
 */
export function entriesToEmpty(entries: readonly TrashEntry[], { olderThan, now, maxBytes }: Pick<EmptyOptions, 'olderThan' | 'now' | 'maxBytes'>): TrashEntry[] {
  const due = dueEntries(entries, olderThan, now)
  if (maxBytes === undefined) return due
  let left = entries.reduce((sum, { bytes }) => sum + bytes, 0)
  return due
    .toSorted((one, other) => (one.trashedAt ?? 0) - (other.trashedAt ?? 0))
    .filter(({ bytes }) => {
      const takes = left > maxBytes
      if (takes) left -= bytes
      return takes
    })
}

export interface EmptyOptions extends ActsOptions {
  /** Milliseconds. */
  readonly olderThan: number
  /** Milliseconds since 1970. */
  readonly now: number
  /** Bytes that may stay in the trash, as its entries counted them; see `entriesToEmpty`. */
  readonly maxBytes?: number
}

export interface EmptyResult {
  readonly removed: readonly TrashEntry[]
  /** Bytes that became free, counted by inode. */
  readonly bytes: number
  readonly errors: readonly ErrorItem[]
}

/**
 * Removes for good what has waited longer than `olderThan`. Hold the store's lock. Needs no space. Links are removed, not followed.
 * @throws NewerFormatError when a newer version of ours put something there
 */
export async function emptyTrash(place: StorePlace, options: EmptyOptions): Promise<EmptyResult> {
  const acts = new Acts(options)
  const sidecar = new Sidecar(place, acts.direct)
  const opened = openTrash(sidecar)
  const due = new Set(entriesToEmpty(opened.map(({ entry }) => entry), options))
  const removed: TrashEntry[] = []
  const errors: ErrorItem[] = []
  let bytes = 0
  for (const { entry, slot } of opened) {
    if (!due.has(entry)) continue
    try {
      const inodes = inodesIn(slot)
      // Under another name first: half an entry must never look like one that can be restored.
      await acts.try(() => { slot.condemn() })
      await removeTree(acts, slot.folder)
      // The link count of the next name of an inode is lower by now: each entry is counted for itself.
      bytes += new FreedBytes().take(inodes)
      removed.push(entry)
    } catch (error) {
      const message = `the trash entry of ${entry.session} could not be removed whole: ${String(error)}`
      errors.push({ ...errorItem(error, entry.folder), message })
    }
  }
  dropEmptyRuns(sidecar)
  return { removed, bytes, errors }
}

/** Removes folders of runs that hold nothing any more, and the journals of finished runs without a folder. */
export function dropEmptyRuns(sidecar: Sidecar): void {
  for (const runId of names(sidecar.trash)) {
    try {
      if (isRunId(runId)) sidecar.acts.rmdir(join(sidecar.trash, runId))
    } catch {
      // It holds something.
    }
  }
  for (const runId of journalledRuns(sidecar)) {
    if (existsSync(join(sidecar.trash, runId)) || !isFinished(sidecar, runId)) continue
    try {
      sidecar.acts.unlink(journalPath(sidecar, runId))
    } catch {
      // It is only a record: the next time will do.
    }
  }
}

/** A folder that cannot be listed can be removed all the same: then nobody knows what became free. */
function inodesIn(slot: Slot): readonly InodeName[] {
  try {
    return slot.contents().flatMap(({ place }) => observe(place)?.inodes ?? [])
  } catch {
    return []
  }
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder).sort()
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return []
    throw error
  }
}

function lazily<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => (made ??= { value: make() }).value
}
