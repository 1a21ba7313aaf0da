import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { Member, SessionRef } from '../../model/session.js'
import type { CapChoice, CapContext } from '../format.js'
import { backupNames, temporaryFiles } from './contents.js'
import { backupFolderOf, backupStatePathOf, statePathOf } from './layout.js'
import { recordedFolder } from './recorded.js'
import { serialiseState, type Snapshot, type State } from './state.js'
import { readStateFile, stateIn, stateTrouble } from './state-file.js'

/** A file that no state names may belong to a recording that is going on, for so long; milliseconds. */
const youngLeftover = 60 * 60 * 1000

/**
 * What the plugin's own cap does to a session (formats/pi-candy-undo section 8): the oldest snapshots go until `max` are left,
 * but for the baseline, those that an undone rewind can be redone from, and those that name what is spared. What they alone name
 * goes with them. What no snapshot named before is no part of it, but for what a crash of our own recorder left.
 */
export function capSession(root: string, session: SessionRef, max: number, { now, spared }: CapContext): CapChoice {
  const path = statePathOf(session.id)
  const file = readStateFile(root, path)
  const trouble = stateTrouble(file)
  if (trouble !== undefined || file.kind !== 'read' || file.parsed.kind !== 'state') {
    return { checkpoints: 0, drop: [], rewrites: [], ...(trouble === undefined ? {} : { refusal: trouble }) }
  }
  const { state } = file.parsed
  const capped = withinCap(state, max, spared)
  const count = state.snapshots.length - capped.snapshots.length
  const isRecorded = recordedFolder(state) !== undefined
  if (count === 0 && !isRecorded) return { checkpoints: 0, drop: [], rewrites: [] }
  const before = readStateFile(root, backupStatePathOf(session.id))
  const stateBefore = stateIn(before)
  if (before.kind !== 'missing' && stateBefore === undefined) {
    return { checkpoints: count, drop: [], rewrites: [], refusal: 'the state before, beside it, cannot be used, so what it names cannot be told' }
  }
  const named = new Set([...namesIn(state), ...(stateBefore === undefined ? [] : namesIn(stateBefore))])
  const left = isRecorded ? leftovers(root, session, new Set([...named, ...spared]), now) : []
  if (count === 0) return { checkpoints: 0, drop: left, rewrites: [] }
  const needed = namesIn(capped)
  const drop = backupNames(root, session.id).filter((name) => named.has(name) && !needed.has(name) && !spared.has(name))
  return {
    checkpoints: count,
    drop: [...drop.map((name): Member => ({ kind: 'backups', path: `${backupFolderOf(session.id)}/${name}`, folder: false })), ...left],
    rewrites: [
      // What the state before names stays as long as it names it: it becomes the same one, first.
      ...(before.kind === 'read' ? [{ path: backupStatePathOf(session.id), bytes: serialiseState(capped), mode: before.mode, was: before.stamp }] : []),
      { path, bytes: serialiseState(capped), mode: file.mode, was: file.stamp },
    ],
  }
}

/** What a recorder that was killed left: temporary files, and backups that no state came to name. */
function leftovers(root: string, { id }: SessionRef, named: ReadonlySet<string>, now: number): Member[] {
  const unnamed = backupNames(root, id).flatMap((name): Member[] => (named.has(name) ? [] : [{ kind: 'backups', path: `${backupFolderOf(id)}/${name}`, folder: false }]))
  return [...unnamed, ...temporaryFiles(root, id)].filter(({ path }) => {
    const status = lstatSync(join(root, path), { throwIfNoEntry: false })
    return status?.isFile() === true && now - Math.max(status.mtimeMs, status.ctimeMs) > youngLeftover
  })
}

/** The state with the oldest snapshots dropped that may go; it may keep more than `max`, as the plugin's own does. */
function withinCap(state: State, max: number, spared: ReadonlySet<string>): State {
  const redoable = new Set(state.redo.map(({ restoreKey }) => restoreKey))
  let over = state.snapshots.length - max
  const isSpared = ({ files }: Snapshot): boolean => spared.size > 0 && [...files.values()].some(({ backupFileName }) => backupFileName !== null && spared.has(backupFileName))
  const snapshots = state.snapshots.filter((snapshot) => {
    const { kind, key } = snapshot
    if (over <= 0 || kind === 'baseline' || redoable.has(key) || isSpared(snapshot)) return true
    over -= 1
    return false
  })
  return { ...state, snapshots }
}

/** Names of the backups that a state names. */
export function namesIn({ originals, snapshots }: State): Set<string> {
  const records = [originals, ...snapshots.map(({ files }) => files)].flatMap((files) => [...files.values()])
  return new Set(records.flatMap(({ backupFileName }) => (backupFileName === null ? [] : [backupFileName])))
}
