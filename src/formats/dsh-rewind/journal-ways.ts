import type { BackupRecord } from '../../model/backup.js'
import type { InterruptedRestore, RestoreWay } from '../format.js'
import { isFinished, type DamagedJournal, type Journal, type JournalAction, type JournalBytes, type JournalState } from './journal.js'
import { isLossyText } from './record.js'

/** A journal that is not finished, as `repair` works on it: what either way makes of each path (section 3.3). */
export function interrupted(session: string, journal: Journal | DamagedJournal): InterruptedRestore | undefined {
  const path = `${session}/${journal.name}`
  if (journal.kind === 'damaged') return { path, id: journal.id, damaged: journal.reason }
  if (isFinished(journal)) return undefined
  const rollBack = wayOf(session, journal, 'rescue', 'rolled-back')
  return {
    path,
    id: journal.id,
    target: `@${String(journal.targetSeq)}`,
    state: journal.state,
    ...(journal.startedAt === 0 ? {} : { startedAt: journal.startedAt }),
    // From another state on only the way back is open.
    ...(journal.state === 'running' ? { finish: wayOf(session, journal, 'before', 'completed') } : {}),
    rollBack,
  }
}

function wayOf(session: string, journal: Journal, side: 'before' | 'rescue', state: JournalState): RestoreWay {
  const inline = new Map<string, Buffer>()
  const files = new Map<string, BackupRecord>()
  const written = new Map<string, BackupRecord>()
  for (const [index, action] of journal.actions.entries()) {
    files.set(action.path, recordOf(action, side, index, inline))
    // A path that did not exist before the restore: whatever stands there now must be what the restore wrote.
    if (side === 'rescue' && action.rescue === null) written.set(action.path, recordOf(action, 'before', index, inline))
  }
  return {
    files,
    inline,
    written,
    closed: (now) => ({ path: `${session}/${journal.name}`, bytes: Buffer.from(JSON.stringify(closedJournal(journal, state, now)), 'utf8') }),
  }
}

function recordOf(action: JournalAction, side: 'before' | 'rescue', index: number, inline: Map<string, Buffer>): BackupRecord {
  const bytes = action[side]
  const mode = side === 'before' ? action.mode : action.rescueMode
  const base = { version: 1, ...(action.parent === undefined ? {} : { parent: action.parent }), ...(mode === undefined ? {} : { mode }) }
  if (side === 'rescue' && action.rescueError !== undefined) return { ...base, name: null, unusable: `its state before the restore could not be saved: ${action.rescueError}` }
  if (bytes === null) return { ...base, name: null }
  if ('blob' in bytes) return { ...base, name: bytes.blob }
  const name = `${side}-${String(index)}`
  inline.set(name, Buffer.from(bytes.text, 'utf8'))
  return { ...base, name, ...(isLossyText(bytes.text) ? { lossy: true as const } : {}) }
}

/** The journal as the plugin closes it: version 2 whatever it was, in the order of its own keys (sections 1.9 and 2.6). */
function closedJournal(journal: Journal, state: JournalState, now: number): unknown {
  const { id, sessionId, targetSeq, startedAt, actions } = journal
  return { version: 2, id, sessionId, targetSeq, startedAt, finishedAt: now, state, actions: actions.map(closedAction) }
}

function closedAction({ path, action, before, rescue, rescueError, mode, rescueMode, parent }: JournalAction): unknown {
  return {
    path,
    action,
    before: bytesJson(before),
    rescue: bytesJson(rescue),
    ...(rescueError === undefined ? {} : { rescueError }),
    ...(mode === undefined ? {} : { mode }),
    ...(rescueMode === undefined ? {} : { rescueMode }),
    ...(parent === undefined ? {} : { parent }),
    done: true,
  }
}

function bytesJson(bytes: JournalBytes | null): unknown {
  return bytes === null ? null : 'blob' in bytes ? { blob: bytes.blob } : { text: bytes.text }
}
