import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { finding, type Finding } from '../../model/finding.js'
import { parseBackupName } from '../../model/names.js'
import type { SessionReading, SessionRef } from '../../model/session.js'
import { trackedTarget } from '../../model/tracked-path.js'
import { namesIn } from './cap.js'
import { backupNames, isWiped, temporaryFiles } from './contents.js'
import type { Conversations } from './conversations.js'
import { bytesOf, recordedFolder, recordedOf } from './recorded.js'
import { backupFolderOf, statePathOf } from './layout.js'
import type { State } from './state.js'
import { readStateFile } from './state-file.js'
import { versionsIn } from './versions.js'

/** A message so long after the newest snapshot says that the plugin stopped making them (R119), in milliseconds. */
const stoppedAfter = 24 * 60 * 60 * 1000
/** A temporary file may belong to a write that is going on, for so long; milliseconds. */
const youngTemporary = 60 * 60 * 1000

interface CheckContext {
  readonly root: string
  readonly conversations: Conversations
}

/** Findings of the plugin's own rules about one session (formats/pi-candy-undo section 15). */
export function checkSession({ root, conversations }: CheckContext, session: SessionRef, reading: SessionReading, now: number): Finding[] {
  const place = { session: session.id, path: statePathOf(session.id) }
  const findings = [...temporaries(root, session.id, now), ...checkConversation(conversations, session.id, reading, now)]
  const file = readStateFile(root, statePathOf(session.id))
  if (file.kind !== 'read' || file.parsed.kind !== 'state') return findings
  const { state } = file.parsed
  const orphans = backupNames(root, session.id).filter((name) => !reading.history.references.has(name))
  if (isWiped(file) && orphans.length > 0) {
    const message = `the state names no file, but ${String(orphans.length)} backups lie beside it: it was written over by an empty one, and the next turn of the agent deletes them`
    return [...findings, finding('state-wiped', message, place)]
  }
  return [...findings, ...checkOrphans(state, orphans, session.id), ...checkState(state, place), ...checkGaps(state, place), ...checkKeys(state, reading.project, place)]
}

/** A file that has the number which the plugin gives next is taken for the new backup without a look (weakness 7). */
function checkOrphans(state: State, orphans: readonly string[], session: string): Finding[] {
  const named = versionsIn(namesIn(state))
  return orphans.flatMap((name): Finding[] => {
    const parsed = parseBackupName(name)
    if (parsed === undefined) return []
    const path = `${backupFolderOf(session)}/${name}`
    if (parsed.version === (named.get(parsed.pathHash) ?? 0) + 1) {
      return [finding('reusable-orphan', 'no record names it, and the agent takes it unseen for its next backup of the file', { session, path })]
    }
    // The generic step reports every other version.
    return parsed.version === 1 ? [finding('unreferenced-backup', 'no record names it; it is kept', { session, path })] : []
  })
}

function checkState(state: State, place: { session: string; path: string }): Finding[] {
  const findings: Finding[] = []
  const { snapshots, redo, sessionId } = state
  if (sessionId !== place.session) findings.push(finding('foreign-lines', `the state says that it is of session ${sessionId}`, place))
  const baselines = snapshots.filter(({ kind }) => kind === 'baseline').length
  if (baselines > 1) findings.push(finding('duplicate-checkpoint', `${String(baselines)} snapshots are the baseline; there should be one`, place))
  const keys = new Set(snapshots.map(({ key }) => key))
  if (keys.size < snapshots.length) {
    const [twice = ''] = snapshots.map(({ key }) => key).filter((key, index, all) => all.indexOf(key) !== index)
    findings.push(finding('duplicate-checkpoint', `several snapshots have the key ${twice}: for a message the last counts, for a redo the first; an id always names one`, place))
  }
  for (const { restoreKey } of redo) {
    if (restoreKey === null || keys.has(restoreKey)) continue
    findings.push(finding('odd-record', `the redo stack names the snapshot ${restoreKey}, which is not there; the agent drops that step when it comes to it`, place))
  }
  const tracked = new Set(state.trackedFiles)
  const untracked = new Set([state.originals, ...snapshots.map(({ files }) => files)].flatMap((files) => [...files.keys()]).filter((path) => !tracked.has(path)))
  const [first] = untracked
  if (first !== undefined) {
    findings.push(finding('odd-record', `${String(untracked.size)} paths have records but are not tracked, ${first} among them; a rewind leaves them alone, as the agent does`, place))
  }
  return findings
}

/** What a recorder says that it could not record. */
function checkGaps(state: State, place: { session: string; path: string }): Finding[] {
  const reasons = new Map<string, string>()
  for (const files of [state.originals, ...state.snapshots.map((snapshot) => snapshot.files)]) {
    for (const [path, record] of files) {
      const { gap } = bytesOf(record)
      if (gap !== undefined) reasons.set(path, gap)
    }
  }
  const at = { ...place, severity: 'info' } as const
  const findings = [...reasons].map(([path, reason]) => finding('failed-backup', `${path}: at some checkpoints its state was not recorded: ${reason}`, at))
  const lost = recordedFolder(state) === undefined ? 0 : recordedOf(state, '/').lostTurns
  if (lost > 0) findings.push(finding('failed-backup', `${String(lost)} messages have no checkpoint: the store was locked or its disk was full when they began`, at))
  return findings
}

/** Keys that name no file here, or the same one as another key (weaknesses 16 and 18). */
function checkKeys(state: State, project: string | undefined, place: { session: string; path: string }): Finding[] {
  const findings: Finding[] = []
  const byTarget = new Map<string, string[]>()
  for (const key of new Set(state.trackedFiles)) {
    const target = trackedTarget(key, project ?? '/')
    if ('refused' in target) {
      findings.push(finding('odd-path', `${JSON.stringify(key)}: ${target.refused}; a rewind leaves it alone`, place))
      continue
    }
    if (!key.startsWith('/') && key.split('/').includes('..')) {
      findings.push(finding('odd-path', `${JSON.stringify(key)} leads out of the project, as the agent never stores it; a rewind leaves it alone`, place))
    }
    const known = byTarget.get(target.path)
    if (known === undefined) byTarget.set(target.path, [key])
    else known.push(key)
  }
  for (const [path, keys] of byTarget) {
    if (keys.length > 1) findings.push(finding('odd-path', `${keys.map((key) => JSON.stringify(key)).join(' and ')} are one file, ${path}; where their records disagree, a rewind leaves it alone`, place))
  }
  return findings
}

function temporaries(root: string, session: string, now: number): Finding[] {
  return temporaryFiles(root, session).flatMap(({ path }): Finding[] => {
    const status = lstatSync(join(root, path), { throwIfNoEntry: false })
    if (status === undefined || now - status.mtimeMs < youngTemporary) return []
    return [finding('stale-temp', 'a temporary file of a write of the agent that never ended; it goes with the session', { session, path, remedy: 'none: repair looks into it when the state is damaged' })]
  })
}

function checkConversation(conversations: Conversations, session: string, { history }: SessionReading, now: number): Finding[] {
  const conversation = conversations.of(session, now)
  if (conversation === undefined) return []
  const at = { session, path: conversation.path }
  const findings: Finding[] = []
  const { withoutId, damaged, header } = conversation
  if (withoutId > 0 && (header.version ?? 1) > 1) {
    const message = `the conversation says version ${String(header.version)}, but ${String(withoutId)} messages have no id, as in version 1: pi shows no history for it`
    findings.push(finding('version-lies', message, at))
  }
  if (damaged > 0) findings.push(finding('damaged-line', `${String(damaged)} lines of the conversation cannot be read; messages behind them name no checkpoint`, { ...at, remedy: 'none: conversations are the user\'s and never written' }))
  const last = newest(history.checkpoints.flatMap(({ kind, time }) => (kind === undefined ? [Date.parse(time ?? '')] : [])))
  const late = last === undefined ? 0 : [...conversation.entries.values()].filter(({ user }) => user?.time !== undefined && user.time - last > stoppedAfter).length
  if (late > 0) findings.push(finding('checkpointing-stopped', `${String(late)} messages more than a day after the last snapshot`, at))
  return findings
}

function newest(times: readonly number[]): number | undefined {
  const known = times.filter((time) => !Number.isNaN(time))
  return known.length === 0 ? undefined : known.reduce((a, b) => Math.max(a, b))
}
