import { finding } from '../../model/finding.js'
import { movedPath } from '../../model/session-state.js'
import type { SessionReading, SessionRef } from '../../model/session.js'
import type { Migration, MigrationRequest } from '../format.js'
import { idsOf } from './history.js'
import { statePathOf } from './layout.js'
import { recordedFolder } from './recorded.js'
import { serialiseState, type State, type StateRecord } from './state.js'
import { readStateFile, stateTrouble, type StateFile } from './state-file.js'

type Move = NonNullable<MigrationRequest['move']>
type ReadState = StateFile & { readonly kind: 'read' }

/**
 * What brings a session up to date: a state from before the current shape is written in it, or, for a project that moved, its
 * absolute paths below the old folder become those of the new one. Backups keep names and bytes. `undefined` when there is
 * nothing to do.
 * @param conversation path of the session's conversation, when there is one
 */
export function planMigration(
  root: string,
  session: SessionRef,
  reading: SessionReading,
  { move, conversation }: { readonly move?: Move | undefined; readonly conversation?: string | undefined },
): Migration | { readonly refusal: string } | undefined {
  const path = statePathOf(session.id)
  const file = readStateFile(root, path)
  const trouble = stateTrouble(file)
  if (trouble !== undefined || file.kind !== 'read' || file.parsed.kind !== 'state') {
    return { refusal: trouble ?? 'its state.json cannot be used' }
  }
  const { state, old } = file.parsed
  if (move === undefined) return old ? { reason: 'its state has a shape from before the current one', ...rewritten(path, file, current(state, file.mtimeMs)) } : undefined
  return planMove({ path, file, state, session: session.id, conversation }, reading, move)
}

interface Found {
  readonly path: string
  readonly file: ReadState
  readonly state: State
  readonly session: string
  readonly conversation: string | undefined
}

/** A relative path means the working folder, which the conversation says, or a recorder noted; a snapshot of the plugin names nothing else. */
function planMove({ path, file, state, session, conversation }: Found, reading: SessionReading, move: Move): Migration | { readonly refusal: string } | undefined {
  const newKey = (key: string): string => movedPath(key, move.from, move.to)
  const keys = keysOf(state)
  const moving = keys.filter((key) => newKey(key) !== key)
  const noted = recordedFolder(state)
  const notedMoves = noted !== undefined && newKey(noted) !== noted
  const startedThere = reading.folders.some((folder) => newKey(folder) !== folder)
  if (moving.length === 0 && !startedThere) return undefined
  const clash = moving.find((key) => keys.includes(newKey(key)))
  if (clash !== undefined) return { refusal: `it tracks ${clash} and ${newKey(clash)}, which would be one file` }
  const message = `the conversation of ${session} still names ${move.from} as its folder: it is the agent's own; set "cwd" in its first line to the new folder, or resume the session in ${move.to}`
  return {
    reason: `its project moved from ${move.from} to ${move.to}`,
    ...(moving.length === 0 && !notedMoves ? { files: [], drop: [] } : rewritten(path, file, moved(state, newKey))),
    newKey,
    findings: startedThere && !notedMoves ? [finding('conversation-left', message, { session, path: conversation ?? path })] : [],
  }
}

function rewritten(path: string, { mode, mtimeMs }: ReadState, state: State): Pick<Migration, 'files' | 'drop'> {
  const bytes = serialiseState(state)
  // The plugin's sweep goes by times, and this is no use of the session.
  return { files: [{ path, mode, mtimeMs, write: (take) => { take(bytes) } }], drop: [] }
}

/** Every snapshot gets the id that it goes by already, every record that is `null` as a whole becomes one. */
function current(state: State, mtimeMs: number): State {
  const ids = idsOf(state)
  const fallback = new Date(mtimeMs).toISOString()
  return {
    ...state,
    snapshots: state.snapshots.map((snapshot, index) => ({
      ...snapshot,
      id: ids[index] ?? snapshot.key,
      files: recordsOf(snapshot.files, snapshot.createdAt ?? fallback),
    })),
    originals: recordsOf(state.originals, fallback),
  }
}

function recordsOf(records: ReadonlyMap<string, StateRecord>, time: string): Map<string, StateRecord> {
  return new Map([...records].map(([key, record]) => [key, record.from === null ? { ...record, backupTime: record.backupTime ?? time } : record]))
}

function moved(state: State, newKey: (key: string) => string): State {
  const records = (files: ReadonlyMap<string, StateRecord>): Map<string, StateRecord> => new Map([...files].map(([key, record]) => [newKey(key), record]))
  const noted = recordedFolder(state)
  return {
    ...state,
    snapshots: state.snapshots.map((snapshot) => ({ ...snapshot, files: records(snapshot.files) })),
    originals: records(state.originals),
    trackedFiles: state.trackedFiles.map(newKey),
    ...(noted === undefined ? {} : { from: { ...state.from, cwd: newKey(noted) } }),
  }
}

function keysOf({ trackedFiles, originals, snapshots }: State): string[] {
  return [...new Set([...trackedFiles, ...originals.keys(), ...snapshots.flatMap(({ files }) => [...files.keys()])])]
}
