import { join } from 'node:path'
import { finding, type Finding, type FindingId } from '../../model/finding.js'
import type { SessionReading, SessionRef } from '../../model/session.js'
import { historyOf, type AnchorWords } from './history.js'
import { isFinished, readJournals, type DamagedJournal, type Journal } from './journal.js'
import { inGroup, storeMarker } from './layout.js'
import { Links } from './links.js'
import type { Log } from './log.js'
import { readRecords, type SessionRecords } from './records.js'

/** Findings of one kind that are reported one by one; the rest is counted. */
const shown = 20

/** Everything that a session says, in its records and in its conversation. */
export interface SessionState {
  readonly records: SessionRecords
  readonly journals: readonly (Journal | DamagedJournal)[]
  readonly log: Log | undefined
}

/** Reads a session whole. Of one with a newer store version nothing but the marker is read (section 1.6). */
export function readState(root: string, ref: SessionRef, log: Log | undefined): SessionState {
  const folder = join(root, ref.id)
  const records = readRecords(folder)
  return { records, journals: records.newer ? [] : readJournals(folder), log }
}

/** What the generic side wants to know of a session. */
export function readingOf(ref: SessionRef, state: SessionState, options: { readonly now: number; readonly baseFolder?: string | undefined }): SessionReading {
  const { records, log } = state
  const history = historyOf(records, wordsOf(log))
  const times = [...records.groups.values()].flat().flatMap(({ time }) => (time > 0 ? [time] : []))
  const past = newest([...times.filter((time) => time <= options.now), ...(log?.times.newest === undefined ? [] : [log.times.newest])])
  const future = newest([...times.filter((time) => time > options.now), ...(log?.times.future === undefined ? [] : [log.times.future])])
  const project = log?.cwd ?? options.baseFolder
  return {
    id: ref.id,
    ...(project === undefined ? {} : { project }),
    folders: log?.cwd === undefined ? [] : [log.cwd],
    history,
    ...(past === undefined ? {} : { lastRecorded: past }),
    ...(future === undefined ? {} : { future }),
    ...(log === undefined || log.mtimeMs === 0 ? {} : { lastWritten: log.mtimeMs }),
    transcriptBytes: log?.size ?? 0,
    findings: findingsOf(ref, state),
    damaged: records.unread.length > 0,
    busy: log?.changed === true,
  }
}

/** What the log says of the message at an anchor. */
function wordsOf(log: Log | undefined): (anchor: number) => AnchorWords | undefined {
  const bySeq = new Map(log?.messages.map((message) => [message.seq, message]))
  return (anchor) => bySeq.get(anchor)
}

function findingsOf(ref: SessionRef, { records, journals, log }: SessionState): Finding[] {
  const report = new Findings(ref.id)
  if (records.newer) {
    const version = records.store.kind === 'number' ? String(records.store.value) : ''
    report.add('newer-format', storeMarker, `its store has version ${version}; nothing of it was read`)
  }
  for (const { path, reason, regular } of records.unread) {
    report.add(regular ? 'unreadable' : 'not-regular', path, regular ? `it cannot be read (${reason}); the session is left alone` : `${reason} stands where the plugin keeps a file or folder`)
  }
  const links = new Links(records)
  for (const record of [...records.groups.values()].flat()) {
    const path = inGroup(record.group, record.name)
    if (record.kind === 'newer') report.add('newer-format', path, `the record has store version ${String(record.store)}`)
    else if (record.kind === 'damaged') report.add('damaged-record', path, `${record.file === undefined ? 'ignored' : 'its file counts as unknown'}: ${record.reason}`)
    else if (record.kind === 'link') {
      const followed = links.follow(record)
      if ('broken' in followed) report.add('broken-link', path, followed.broken)
    } else if (record.lossy) report.add('lossy-backup', path, `the text of ${record.file} lost bytes before it was recorded; it is compared, never written`)
    if (record.foreign) report.add('foreign-file', path, 'another program wrote it; it is read and never removed')
    if (record.kind !== 'newer' && record.anchor !== record.group) report.add('odd-record', path, `its anchor is ${String(record.anchor)}, its group ${String(record.group)}; the group decides where it belongs`)
  }
  for (const journal of journals) addJournal(report, journal)
  if (log?.trouble !== undefined) report.add('odd-log', log.file.path, log.trouble)
  return report.finish()
}

function addJournal(report: Findings, journal: Journal | DamagedJournal): void {
  if (journal.kind === 'damaged') report.add('damaged-journal', journal.name, `${journal.reason}; it is kept, and so is all that it may name`)
  else if (!isFinished(journal)) {
    const { actions, state, targetSeq } = journal
    report.add('open-journal', journal.name, `a restore of ${String(actions.length)} files to @${String(targetSeq)} did not end (${state})`)
  }
}

class Findings {
  readonly #session: string
  readonly #found: Finding[] = []
  readonly #counts = new Map<FindingId, number>()

  constructor(session: string) {
    this.#session = session
  }

  /** @param path within the session, or absolute */
  add(id: FindingId, path: string, message: string): void {
    const count = (this.#counts.get(id) ?? 0) + 1
    this.#counts.set(id, count)
    if (count > shown) return
    const place = path === '' ? this.#session : path.startsWith('/') ? path : `${this.#session}/${path}`
    this.#found.push(finding(id, message, { session: this.#session, path: place }))
  }

  finish(): Finding[] {
    return this.#found.map((found, index) => {
      const count = this.#counts.get(found.id) ?? 0
      const isLast = this.#found.findLastIndex(({ id }) => id === found.id) === index
      return count > shown && isLast ? { ...found, message: `${found.message}; and ${String(count - shown)} more of this kind` } : found
    })
  }
}

function newest(times: readonly number[]): number | undefined {
  return times.reduce<number | undefined>((max, time) => (max === undefined || time > max ? time : max), undefined)
}
