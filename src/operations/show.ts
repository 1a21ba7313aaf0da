import type { Store } from '../formats/format.js'
import type { BackupRecord } from '../model/backup.js'
import { NoMatchError, UsageError } from '../model/errors.js'
import { finding, type Finding } from '../model/finding.js'
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

/** A session and the store that it was found in. */
export interface FoundSession {
  readonly store: Store
  readonly ref: SessionRef
  /** Says that a store of another format has the session too, and why that one is not meant. */
  readonly elsewhere: readonly Finding[]
}

/**
 * Finds the one session that `id`, whole or a unique prefix, names in all of the stores together. Which of two is meant is not
 * guessed: only where two formats have it, and just one of them has checkpoints of it, as when our recorder runs beside an agent
 * that keeps none. `now` in milliseconds since 1970. Throws `NoMatchError` or `UsageError`.
 */
export function findSession(stores: readonly Store[], id: string, now: number): FoundSession {
  const begun = stores.flatMap((store) => store.inventory().sessions.filter((ref) => ref.id.startsWith(id)).map((ref) => ({ store, ref })))
  const whole = begun.filter(({ ref }) => ref.id === id)
  const found = whole.length > 0 ? whole : begun
  const [one, other] = found
  if (one === undefined) throw new NoMatchError(`no session begins with ${id}`, { hint: 'rewind-admin list' })
  if (other === undefined) return { ...one, elsewhere: [] }
  if (found.some(({ ref }) => ref.id !== one.ref.id)) throw severalBegin([...new Set(begun.map(({ ref }) => ref.id))], id)
  const meant = theOneWithCheckpoints(found, now)
  if (meant !== undefined) return meant
  throw new UsageError(`session ${one.ref.id} is in ${one.store.root} and in ${other.store.root}`, { hint: 'name one of them with --root' })
}

function theOneWithCheckpoints(found: readonly { readonly store: Store; readonly ref: SessionRef }[], now: number): FoundSession | undefined {
  if (new Set(found.map(({ store }) => store.format)).size < found.length) return undefined
  const read = found.map((each) => ({ ...each, reading: readSession(each.store, each.ref, { now }) }))
  const [meant, second] = read.filter(({ reading }) => reading.history.checkpoints.length > 0)
  const others = read.filter((each) => each !== meant)
  if (meant === undefined || second !== undefined || others.some(({ reading }) => reading.damaged)) return undefined
  const { store, ref } = meant
  const roots = others.map((each) => each.store.root).join(', ')
  return { store, ref, elsewhere: [finding('session-elsewhere', `the session is in ${roots} too, without checkpoints: the one in ${store.root} is meant`, { session: ref.id })] }
}

/**
 * The checkpoints of one session with their message, their files and whether a rewind there can be whole (R49, R57):
 * every tracked path is listed with the state that a rewind would find. `now` in milliseconds since 1970.
 */
export function show(stores: readonly Store[], id: string, now: number): Report {
  const { store, ref, elsewhere } = findSession(stores, id, now)
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
    findings: [...elsewhere, ...reading.findings],
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
