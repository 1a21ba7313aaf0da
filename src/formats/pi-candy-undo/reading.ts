import { finding, type Finding } from '../../model/finding.js'
import { fold } from '../../model/fold.js'
import { membersOf, type SessionReading, type SessionRef } from '../../model/session.js'
import type { Writable } from '../../model/writable.js'
import { foldersOf, type Conversation, type Conversations } from './conversations.js'
import { toHistory } from './history.js'
import { backupStateName, backupStatePathOf, statePathOf } from './layout.js'
import { meaningsOf } from './meanings.js'
import { recordedFolder } from './recorded.js'
import type { State } from './state.js'
import { readStateFile, stateIn, type StateFile } from './state-file.js'

/** Faults of one state that are reported one by one. */
const faultsShown = 20

/** What reading a session needs besides its id. */
export interface ReadingContext {
  readonly root: string
  readonly conversations: Conversations
  /** What relative paths mean when no conversation says. */
  readonly baseFolder: string | undefined
}

/**
 * Reads a session from its state.json and its conversation. A state that is damaged, missing or newer is never an empty
 * one: it is `damaged`, and a finding says why.
 */
export function readSession({ root, conversations, baseFolder }: ReadingContext, session: SessionRef, now: number): SessionReading {
  const path = membersOf(session, 'transcript')[0]?.path ?? statePathOf(session.id)
  const at = { session: session.id, path }
  const file = readStateFile(root, path)
  const conversation = conversations.of(session.id, now)
  const parsed = file.kind === 'read' && file.parsed.kind === 'state' ? file.parsed : undefined
  const state = parsed?.state
  const own = state === undefined ? undefined : recordedFolder(state)
  const said = foldersOf(conversations, session.id)
  const recorded = said.length > 0 || own === undefined ? said : [own]
  const before = stateBefore(root, session)
  const findings = [...fileFindings(file, at), ...conversationFindings(conversations, session.id, recorded), ...before.findings]
  const folders = recorded.length > 0 || baseFolder === undefined ? recorded : [baseFolder]
  const names = parsed === undefined || conversation === undefined ? new Map<string, number>() : meaningsOf(parsed.state, conversation, parsed.faults.length === 0)
  const read = state === undefined ? undefined : toHistory(state, names, at, before.state)
  if (read !== undefined) findings.push(...read.findings)
  const reading: Writable<SessionReading> = {
    id: session.id,
    folders,
    history: read?.history ?? fold([]),
    transcriptBytes: file.kind === 'read' ? file.bytes.length : 0,
    findings,
    damaged: file.kind !== 'read' || file.parsed.kind !== 'state' || file.parsed.faults.length > 0,
    busy: file.kind === 'read' && file.changed,
  }
  // Two conversations of one id that disagree: nobody can tell what relative paths mean.
  const [project, other] = folders
  if (project !== undefined && other === undefined) reading.project = project
  noteTimes(reading, file, state, conversation, now)
  return reading
}

/** The state before the present one, where a recorder of ours kept it. */
function stateBefore(root: string, session: SessionRef): { readonly state?: State; readonly findings: readonly Finding[] } {
  const path = backupStatePathOf(session.id)
  if (!session.members.some((member) => member.path === path)) return { findings: [] }
  const file = readStateFile(root, path)
  const state = stateIn(file)
  if (state !== undefined) return { state, findings: [] }
  const message = `${backupStateName} cannot be used; what only it names cannot be told, and cap leaves the session alone`
  return { findings: file.kind === 'missing' ? [] : [finding('state-damaged', message, { session: session.id, path, severity: 'warn', remedy: `none: remove ${path} when the session can be rewound` })] }
}

function noteTimes(reading: Writable<SessionReading>, file: StateFile, state: State | undefined, conversation: Conversation | undefined, now: number): void {
  const times = state === undefined ? [] : timesOf(state)
  const past = [...times.filter((time) => time <= now), ...(conversation?.newest === undefined ? [] : [conversation.newest])]
  const ahead = [...times.filter((time) => time > now), ...(conversation?.future === undefined ? [] : [conversation.future])]
  const written = [...(file.kind === 'read' ? [file.mtimeMs] : []), ...(conversation === undefined ? [] : [conversation.mtimeMs])]
  if (past.length > 0) reading.lastRecorded = newest(past)
  if (ahead.length > 0) reading.future = newest(ahead)
  if (written.length > 0) reading.lastWritten = newest(written)
}

function timesOf(state: State): number[] {
  const records = [state.originals, ...state.snapshots.map(({ files }) => files)].flatMap((files) => [...files.values()])
  const texts = [...records.map(({ backupTime }) => backupTime), ...state.snapshots.map(({ createdAt }) => createdAt), ...state.redo.map(({ createdAt }) => createdAt)]
  return texts.map((text) => Date.parse(text ?? '')).filter((time) => !Number.isNaN(time))
}

function newest(times: readonly number[]): number {
  return times.reduce((a, b) => Math.max(a, b))
}

function fileFindings(file: StateFile, at: { session: string; path: string }): Finding[] {
  if (file.kind === 'missing') return [finding('state-damaged', 'the state is missing: what the backups are cannot be told, and the next turn of the agent deletes them', at)]
  if (file.kind === 'not-regular') return [finding('not-regular', `${file.found} stands where the state should be`, at)]
  if (file.kind === 'unreadable') return [finding('unreadable', `the state: ${file.reason}`, at)]
  const busy = file.changed ? [finding('busy', 'the state changed while it was read; the session is left alone in this run', at)] : []
  const { parsed } = file
  if (parsed.kind === 'newer') return [...busy, finding('newer-format', `the state is of version ${String(parsed.version)}; this version knows 1`, at)]
  if (parsed.kind === 'unusable') {
    return [...busy, finding('state-damaged', `${parsed.at}: ${parsed.reason}; the agent takes it for an empty state and deletes the backups with its next turn`, at)]
  }
  const shown = parsed.faults.slice(0, faultsShown).map((fault) => finding('state-damaged', `${fault.at}: ${fault.reason}`, at))
  const more = parsed.faults.length - shown.length
  if (more > 0) shown.push(finding('state-damaged', `and ${String(more)} more values of an unexpected shape`, at))
  const old = parsed.old ? [finding('odd-record', 'parts of the state have a shape from before the current one; they were read as what they meant', { ...at, severity: 'info' })] : []
  return [...busy, ...shown, ...old]
}

function conversationFindings(conversations: Conversations, session: string, folders: readonly string[]): Finding[] {
  const [first, ...others] = conversations.headersOf(session)
  if (first === undefined || folders.length < 2) return []
  const message = `conversations of this id were started in ${folders.join(' and in ')}; relative paths are not restored`
  return [finding('duplicate-session', message, { session, path: others[0]?.path ?? first.path })]
}
