import { dirname } from 'node:path'
import { isNoSpace } from '../fs/atomic-write.js'
import type { Identity, InodeName } from '../fs/identity.js'
import { identityOf, observe, sameIdentity, statusOf } from '../fs/identity.js'
import { insideRoot, joinSafe, parentOf } from '../fs/safe-path.js'
import type { ErrorItem } from '../model/report.js'
import type { PlannedItem, RemoveAction } from './action.js'
import { inOrderOfRemoval, pathOf } from './action.js'
import type { Method } from './journal.js'
import type { Bench } from './move.js'
import { Changed, moveToTrash, putBack, recheck } from './move.js'
import type { Outcome } from './outcome.js'
import { errorItem, occupied } from './outcome.js'
import { changeSince } from './planned-item.js'
import type { RunFacts } from './receipt.js'
import { receiptFor } from './receipt.js'
import { removeTree } from './remove-tree.js'
import type { Slot } from './slot.js'

/** Says whether a session may go right now: `true`, or the reason why not (it became live, it was pinned). */
export type StillAllowed = (session: string) => true | string

export interface RunContext extends Bench {
  readonly facts: RunFacts
  readonly method: Method
  /** Bytes that become free when the last name of each of these inodes goes. */
  readonly freed: (inodes: readonly InodeName[]) => number
  readonly stillAllowed: StillAllowed
  /** What replacements of this run put in place, by path. */
  readonly published: Map<string, Identity>
}

/** Takes a session, or some of its backups, away: everything or nothing, the transcript last. Never throws for what the disk does. */
export async function removeSession(run: RunContext, action: RemoveAction, slot: Slot): Promise<Outcome> {
  let found: Found
  try {
    const seen = lookAgain(run, action)
    if (typeof seen === 'string') return { state: 'kept', reason: seen }
    if (seen.items.length === 0) return { state: 'done', bytes: 0, already: true, notes: [] }
    found = seen
  } catch (error) {
    return failure(error, action)
  }
  if (run.method === 'remove-in-place') return removeInPlace(run, action, found)
  const { items } = found
  let receipt: boolean
  try {
    slot.open()
    receipt = writeReceipt(run, action, items, slot)
    for (const item of items) {
      if (item.kind === 'transcript') assertAllowed(run, action)
      await moveToTrash(run, slot, item)
    }
  } catch (error) {
    const left = await rollBack(run, items, slot)
    if (error instanceof Changed && left.length === 0) return { state: 'kept', reason: error.message }
    if (run.method === 'remove' && isNoSpace(error) && left.length === 0) return removeInPlace(run, action, found)
    return { state: 'failed', errors: [...failure(error, action).errors, ...left] }
  }
  // Without a receipt nobody would know the mode of a folder that is made again.
  if (receipt || run.method === 'remove') await removeEmptied(run, action)
  const note = `there was no room for the receipt of ${action.session}; its place in the trash says where it was`
  return finish(run, action, slot, { state: 'done', bytes: run.freed(found.inodes), already: false, notes: receipt ? [] : [note] })
}

interface Found {
  readonly items: PlannedItem[]
  /** Every file of them. */
  readonly inodes: InodeName[]
}

/** Compares everything with the plan. @returns the items that are still there, or why the session is kept */
export function lookAgain(run: Pick<RunContext, 'root' | 'stillAllowed' | 'published'>, action: RemoveAction): string | Found {
  const allowed = run.stillAllowed(action.session)
  if (allowed !== true) return allowed
  for (const needed of action.needs ?? []) {
    const [put, path] = [run.published.get(needed), insideRoot(run.root, needed)]
    const there = path === undefined ? undefined : statusOf(path)
    if (put === undefined || there === undefined || !sameIdentity(identityOf(there), put)) return `${needed} is not the file that this run was to put there`
  }
  for (const witness of action.witnesses ?? []) {
    const path = insideRoot(run.root, witness.path)
    const seen = path === undefined ? undefined : observe(path)
    if (seen === undefined) return `${witness.path} is gone`
    const change = changeSince(witness, seen)
    if (change !== undefined) return change
  }
  const items: PlannedItem[] = []
  const inodes: InodeName[] = []
  const parents = new Map<string, boolean>()
  for (const item of inOrderOfRemoval(action.items)) {
    const parent = parentOf(item.path)
    // Only a first look: each parent is checked again just before each act.
    if (!parents.has(parent)) parents.set(parent, insideRoot(run.root, item.path) !== undefined)
    const seen = parents.get(parent) === true ? observe(joinSafe(run.root, item.path)) : undefined
    if (seen === undefined) continue
    const change = changeSince(item, seen)
    if (change !== undefined) return change
    items.push(item)
    inodes.push(...seen.inodes)
  }
  return { items, inodes }
}

function assertAllowed(run: RunContext, action: RemoveAction): void {
  const allowed = run.stillAllowed(action.session)
  if (allowed !== true) throw new Changed(allowed)
}

/** Written before the first move. Without room for it the trash still says where everything was. */
function writeReceipt(run: RunContext, action: RemoveAction, items: readonly PlannedItem[], slot: Slot): boolean {
  const text = JSON.stringify(receiptFor(action, items, run.root, run.facts, run.times))
  try {
    run.sidecar.withRoom(() => { run.sidecar.writeFile(slot.receipt, text) })
    return true
  } catch (error) {
    if (!isNoSpace(error)) throw error
    return false
  }
}

/** Puts back what was moved. @returns what could not be; it stays in the trash, where `trash restore` finds it */
export async function rollBack(bench: Bench, items: readonly PlannedItem[], slot: Slot): Promise<ErrorItem[]> {
  const left: ErrorItem[] = []
  for (const item of [...items].reverse()) {
    try {
      for (const path of await putBack(bench, slot.at(item.path), item.path, true)) {
        left.push(occupied(path))
      }
    } catch (error) {
      left.push(errorItem(error, item.path))
    }
  }
  if (left.length > 0) await bench.acts.try(() => { slot.commit() })
  else slot.discard()
  return left
}

/** Removes the folders that the plan says may go when nothing is left in them. The system refuses when something is. */
export async function removeEmptied(bench: Bench, action: RemoveAction): Promise<void> {
  const deepestFirst = [...(action.emptied ?? [])].sort((a, b) => b.split('/').length - a.split('/').length)
  for (const folder of deepestFirst) {
    try {
      const path = insideRoot(bench.root, folder)
      if (path === undefined) continue
      bench.times.before(dirname(path))
      await bench.acts.try((acts) => { acts.rmdir(path) })
      bench.times.after(dirname(path))
    } catch {
      // Not empty, a link, or gone: it stays as it is.
    }
  }
}

async function finish(run: RunContext, action: RemoveAction, slot: Slot, done: Outcome): Promise<Outcome> {
  try {
    await run.acts.try(() => { slot.commit() })
    if (run.method === 'remove') {
      await run.acts.try(() => { slot.condemn() })
      await removeTree(run.acts, slot.folder)
    }
    return done
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    const message = `${action.session} is out of the store, but our trash still holds some of it: ${why}; the next run goes on with it`
    return { state: 'failed', errors: [{ ...errorItem(error, pathOf(action)), message }] }
  }
}

/** For a sidecar on another file system, or without room for a name in it: each path is re-checked and removed where it stands. */
async function removeInPlace(run: RunContext, action: RemoveAction, { items, inodes }: Found): Promise<Outcome> {
  try {
    for (const item of items) {
      if (item.kind === 'transcript') assertAllowed(run, action)
      const path = recheck(run.root, item)
      if (path === undefined) continue
      run.times.before(dirname(path))
      await removeTree(run.acts, path)
      run.times.after(dirname(path))
    }
    await removeEmptied(run, action)
    return { state: 'done', bytes: run.freed(inodes), already: false, notes: [] }
  } catch (error) {
    return error instanceof Changed ? { state: 'kept', reason: error.message } : failure(error, action)
  }
}

function failure(error: unknown, action: RemoveAction): { state: 'failed'; errors: ErrorItem[] } {
  return { state: 'failed', errors: [errorItem(error, pathOf(action))] }
}
