import { join } from 'node:path'
import { listFolder } from '../../fs/folder.js'
import { LockedError } from '../../model/errors.js'
import type { SessionReading, SessionRef } from '../../model/session.js'
import type { AgentRedo, NewFile, SavedPath } from '../format.js'
import { namesIn } from './cap.js'
import { backupFolderOf, isTemporaryBackup, statePathOf } from './layout.js'
import { serialiseState, type RedoItem, type State, type StateRecord } from './state.js'
import { readStateFile, stateTrouble } from './state-file.js'
import { highestVersion, pathHashOf, versionsIn } from './versions.js'

interface WholeState {
  readonly state: State
  /** Makes the file of the state as it shall be. */
  readonly write: (next: State) => NewFile
}

/**
 * The plugin's redo stack in state.json, read and written by its own rules (formats/pi-candy-undo sections 6 and 7).
 * @param depth items that the stack holds at most; a redo point of ours is always on it
 */
export function agentRedoOf(root: string, depth: number): AgentRedo {
  return {
    top: (session, reading) => topOf(wholeState(root, session).state, reading),
    push: (session, saved, context) => pushOn(root, session, wholeState(root, session), saved, { now: context.now, uuid: () => context.uuid(), depth }),
    pop: (session) => popFrom(wholeState(root, session)),
  }
}

interface PushContext {
  readonly now: number
  uuid(): string
  readonly depth: number
}

/** @throws LockedError when the state is not whole or changes while it is read */
function wholeState(root: string, session: SessionRef): WholeState {
  const file = readStateFile(root, statePathOf(session.id))
  const trouble = stateTrouble(file)
  if (trouble !== undefined || file.kind !== 'read' || file.parsed.kind !== 'state') {
    throw new LockedError(`session ${session.id}: ${trouble ?? 'its state cannot be read'}; nothing was changed`, { hint: `rewind-admin repair ${session.id}` })
  }
  if (file.changed) throw new LockedError(`the state of session ${session.id} changed while it was read; nothing was changed`, { hint: 'close pi, then run again' })
  const { stamp, mode } = file
  return { state: file.parsed.state, write: (next) => ({ path: statePathOf(session.id), bytes: serialiseState(next), mode, was: stamp }) }
}

function topOf(state: State, { history }: SessionReading): ReturnType<AgentRedo['top']> {
  const item = state.redo.at(-1)
  if (item === undefined) return { refusal: 'the session has no rewind to undo' }
  if (item.type === 'conversation') return { refusal: 'the newest rewind took back the conversation alone; undo it in pi, with /redo' }
  // A redo takes the first snapshot of the key, where a message takes the last.
  const order = state.snapshots.findIndex(({ key }) => key === item.restoreKey)
  const checkpoint = order === -1 ? undefined : history.checkpoints[order]
  if (checkpoint === undefined) return { refusal: `the snapshot ${String(item.restoreKey)} of the newest rewind is not there any more` }
  return { checkpoint }
}

function pushOn(root: string, session: SessionRef, { state, write }: WholeState, saved: readonly SavedPath[], context: PushContext): NewFile[] {
  const time = new Date(context.now).toISOString()
  const folder = backupFolderOf(session.id)
  const taken = highestVersions(root, session, state)
  const backups: NewFile[] = []
  const files = new Map<string, StateRecord>()
  for (const { key, file } of saved) {
    const prefix = pathHashOf(key)
    const version = Math.max(taken.get(prefix) ?? 0, highestVersion(state, key)) + 1
    taken.set(prefix, version)
    if (file === undefined) {
      files.set(key, { backupFileName: null, version, backupTime: time })
      continue
    }
    const name = `${prefix}@v${String(version)}`
    backups.push({ path: `${folder}/${name}`, bytes: file.bytes(), mode: file.mode & 0o777 })
    files.set(key, { backupFileName: name, version, backupTime: time })
  }
  for (const path of state.trackedFiles) {
    // What a rewind leaves alone is as the plugin last saw it; it repeats the record, as for a link.
    const previous = files.has(path) ? undefined : previousRecord(state, path)
    if (previous !== undefined) files.set(path, previous)
  }
  const key = context.uuid()
  const item: RedoItem = { type: 'code', restoreKey: key, oldLeafId: null, createdAt: time }
  const next: State = {
    ...state,
    snapshots: [...state.snapshots, { id: context.uuid(), key, kind: 'redo-point', createdAt: time, files }],
    redo: [...state.redo, item].slice(-Math.max(1, context.depth)),
  }
  return [...backups, write(next)]
}

/** A rewind of both that was undone for the files alone leaves the other half on the stack, for pi's own redo. */
function popFrom({ state, write }: WholeState): NewFile[] {
  const top = state.redo.at(-1)
  if (top === undefined) return []
  const half: RedoItem[] = top.type === 'both' && top.oldLeafId !== null ? [{ ...top, type: 'conversation', restoreKey: null }] : []
  return [write({ ...state, redo: [...state.redo.slice(0, -1), ...half] })]
}

/** The record in the newest snapshot that has the path, else the original (section 4). */
function previousRecord(state: State, path: string): StateRecord | undefined {
  return state.snapshots.findLast(({ files }) => files.has(path))?.files.get(path) ?? state.originals.get(path)
}

/** The highest version present of each path hash, in records and on the disk, temporary files included (section 15, 7). */
function highestVersions(root: string, session: SessionRef, state: State): Map<string, number> {
  const onDisk = listFolder(join(root, backupFolderOf(session.id))).entries.map(({ name }) => (isTemporaryBackup(name) ? name.slice(0, name.indexOf('.')) : name))
  return versionsIn([...namesIn(state), ...onDisk])
}
