import type { Store } from '../formats/format.js'
import type { BackupRecord } from '../model/backup.js'
import { NoMatchError, UsageError } from '../model/errors.js'
import { ExitCode } from '../model/exit-code.js'
import type { Checkpoint, History } from '../model/history.js'
import { noItems, type Json, type Report } from '../model/report.js'
import { resolve } from '../model/resolve.js'
import type { Message, SessionRef } from '../model/session.js'
import { readSession } from './read-session.js'
import { severalBegin } from './select.js'
import { probeBackups } from './session-facts.js'

/** What stands behind a path at a checkpoint: three states that are never confused (R34), or nothing known. */
type FileState = 'absent' | 'present' | 'missing' | 'unknown'

/**
 * Finds the one session that `id`, whole or a unique prefix, names in all of the stores together: which of two is meant
 * is not guessed. Throws `NoMatchError` or `UsageError`.
 */
export function findSession(stores: readonly Store[], id: string): { store: Store; ref: SessionRef } {
  const begun = stores.flatMap((store) => store.inventory().sessions.filter((ref) => ref.id.startsWith(id)).map((ref) => ({ store, ref })))
  const whole = begun.filter(({ ref }) => ref.id === id)
  const [found, other] = whole.length > 0 ? whole : begun
  if (found === undefined) throw new NoMatchError(`no session begins with ${id}`, { hint: 'rewind-admin list' })
  if (other === undefined) return found
  if (other.ref.id !== found.ref.id) throw severalBegin(begun.map(({ ref }) => ref.id), id)
  throw new UsageError(`session ${found.ref.id} is in ${found.store.root} and in ${other.store.root}`, { hint: 'name one of them with --root' })
}

/**
 * The checkpoints of one session with their message, their files and whether a rewind there can be whole (R49, R57):
 * every tracked path is listed with the state that a rewind would find. `now` in milliseconds since 1970.
 */
export function show(stores: readonly Store[], id: string, now: number): Report {
  const { store, ref } = findSession(stores, id)
  const reading = readSession(store, ref, { now })
  const messages = new Map(messagesOf(store, ref).map((message) => [message.id, message]))
  const present = new Set(probeBackups(store, ref)?.entries.flatMap((entry) => (entry.node === 'file' && entry.error === undefined ? [entry.name] : [])))
  const checkpoints = reading.history.checkpoints.map((checkpoint) => checkpointJson(reading.history, checkpoint, messageOf(checkpoint, messages), present))
  return {
    command: 'show',
    roots: [store.root],
    applied: false,
    summary: {
      session: ref.id,
      project: reading.project ?? null,
      clientVersion: reading.clientVersion ?? null,
      checkpoints: checkpoints.length,
      restorable: checkpoints.filter((checkpoint) => checkpoint.restorable).length,
      trackedPaths: reading.history.tracked.size,
    },
    ...noItems,
    findings: reading.findings,
    exitCode: ExitCode.done,
    extra: { checkpoints, members: ref.members.map((member) => member.path) },
  }
}

/** The message that a checkpoint was made for: one of its names is the id of it. A baseline and a redo point have none. */
function messageOf({ id, aliases, kind }: Checkpoint, messages: ReadonlyMap<string, Message>): Message | undefined {
  if (kind !== undefined) return undefined
  return messages.get(id) ?? aliases?.map((alias) => messages.get(alias)).find((message) => message !== undefined)
}

/** Messages are words beside the checkpoints: a transcript that cannot be read is a finding of the reading already. */
function messagesOf(store: Store, ref: SessionRef): Message[] {
  try {
    return store.messages(ref)
  } catch {
    return []
  }
}

function checkpointJson(
  history: History,
  checkpoint: Checkpoint,
  message: Message | undefined,
  present: ReadonlySet<string>,
): { readonly [key: string]: Json; readonly restorable: boolean } {
  const files = [...resolve(history, checkpoint)].map(([path, resolution]) => {
    const record = resolution.state === 'unknown' ? undefined : resolution.record
    return fileJson(path, stateOf(resolution.state, record, present), record)
  })
  return {
    id: checkpoint.id,
    ...(checkpoint.kind === undefined ? {} : { kind: checkpoint.kind }),
    ...(checkpoint.aliases === undefined ? {} : { aliases: [...checkpoint.aliases] }),
    time: checkpoint.time ?? null,
    text: message?.text ?? null,
    active: message?.active ?? null,
    restorable: files.every(({ state }) => state === 'absent' || state === 'present'),
    files,
  }
}

function stateOf(state: 'absent' | 'backup' | 'unknown', record: BackupRecord | undefined, present: ReadonlySet<string>): FileState {
  if (state !== 'backup') return state
  return present.has(record?.name ?? '') ? 'present' : 'missing'
}

function fileJson(path: string, state: FileState, record: BackupRecord | undefined): { path: string; state: FileState; backup: string | null; version: number | null } {
  return { path, state, backup: record?.name ?? null, version: record?.version ?? null }
}
