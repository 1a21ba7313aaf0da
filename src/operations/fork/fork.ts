import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { listFolder } from '../../fs/folder.js'
import { joinSafe } from '../../fs/safe-path.js'
import type { Store } from '../../formats/format.js'
import { FenceError, LockedError, NewerFormatError, NoMatchError, UsageError } from '../../model/errors.js'
import { ExitCode } from '../../model/exit-code.js'
import { finding, type Finding } from '../../model/finding.js'
import { fold } from '../../model/fold.js'
import { isBackupName } from '../../model/names.js'
import { idNamed } from '../../model/resolve.js'
import type { ErrorItem, Report } from '../../model/report.js'
import { membersOf, type SessionReading, type SessionRef } from '../../model/session.js'
import { selectMessage } from '../conversation/select-message.js'
import { carryCapped } from '../capped.js'
import { completeReading } from '../read-session.js'
import { selectSessions } from '../select.js'
import { copySession } from './copy-session.js'
import { chooseBackups, type Choice, type Sides } from './choose.js'
import { forkState, type ForkedState } from './fork-state.js'
import { ForkFiles } from './fork-files.js'
import type { ForkContext, ForkOptions } from './options.js'
import { openIfThere } from './prove.js'
import { findDeparture } from './records.js'

/**
 * Gives a session that is a fork of another one its backups, and its transcript when it has none (formats/claude-code
 * section 8, design promises 7 and 8). Hard links where the agent is known never to open a backup for writing, else copies;
 * exactly the backups that the target names. All of it is made beside its place and published at the end, the transcript
 * last, so that a run that is killed leaves nothing that the next one does not finish. Hold the store's lock.
 *
 * Exit codes of the report: 3 when backups are missing or cannot be read, 1 when the target has one of the same name with
 * other bytes. When one cannot be read or made, the target is left as it was.
 * @param oldId id of the source, or a unique prefix
 * @param newId whole id of the target
 * @throws UsageError, NoMatchError for what is asked; LockedError when the source is being written; NewerFormatError;
 *   NoSpaceError; FenceError when a folder is a link or the result is not what the source has. Nothing was changed then.
 */
export async function fork(store: Store, oldId: string, newId: string, options: ForkOptions, context: ForkContext): Promise<Report> {
  const { conversations, copying } = store
  if (options.method === 'link' && !store.linksAreSafe) {
    throw new UsageError(`the agent of ${store.format} writes into existing backups, so they cannot be linked`, { hint: 'without --link they are copied' })
  }
  if (copying !== undefined) return copySession(store, copying, sourceOf(store, oldId, newId), newId, options, context)
  if (conversations === undefined) throw new UsageError(`sessions of the format ${store.format} cannot be forked`)
  if (!conversations.isSessionId(newId)) throw new UsageError(`${JSON.stringify(newId)} cannot be the id of a session`, { hint: 'give a whole id: a UUID in lower case' })
  const { sessions } = store.inventory()
  const [source] = selectSessions(sessions, [oldId])
  if (source === undefined) throw new NoMatchError(`no session begins with ${oldId}`, { hint: 'rewind-admin list' })
  const refusal = conversations.refusal?.(source)
  if (refusal !== undefined) throw new UsageError(`session ${source.id} cannot be forked: ${refusal}; nothing was made`)
  if (source.id === newId) throw new UsageError(`session ${newId} cannot be forked into itself`)
  const known = sessions.find(({ id }) => id === newId) ?? { id: newId, members: [] }
  assertNoSession(store, newId)
  const isNew = membersOf(known, 'transcript').length === 0
  if (isNew && membersOf(source, 'transcript').length === 0) throw new NoMatchError(`session ${source.id} has no transcript, and neither has ${newId}`)
  if (!isNew && options.at !== undefined) throw new UsageError(`session ${newId} has a transcript already; it is not cut`, { hint: 'name a new session id with --at' })
  const sourceReading = readWhole(store, source, context.now, isNew)
  const files = new ForkFiles(store, source, newId, options, context)
  try {
    files.sweep()
    const before = options.at === undefined ? undefined : selectMessage(store, source, idNamed(sourceReading.history, options.at)).id
    const staged = isNew ? files.writeTranscript({ newId, ...(before === undefined ? {} : { before }), ...(sourceReading.deltas === undefined ? {} : { deltas: sourceReading.deltas }) }) : known
    const target = { ref: staged, reading: readWhole(store, staged, context.now) }
    const state = forkState(store, { ref: source, reading: sourceReading }, target)
    return await new Fork(store, source, completeReading(store, source, sourceReading), target.ref, state, isNew, files, options, context).run()
  } finally {
    files.close()
  }
}

function sourceOf(store: Store, oldId: string, newId: string): SessionRef {
  const [source] = selectSessions(store.inventory().sessions, [oldId])
  if (source === undefined) throw new NoMatchError(`no session begins with ${oldId}`, { hint: 'rewind-admin list' })
  if (source.id === newId) throw new UsageError(`session ${newId} cannot be forked into itself`)
  return source
}

class Fork {
  readonly #findings: Finding[] = []
  readonly #errors: ErrorItem[] = []

  constructor(
    readonly store: Store,
    readonly source: SessionRef,
    readonly sourceReading: SessionReading,
    readonly target: SessionRef,
    readonly state: ForkedState,
    readonly isNew: boolean,
    readonly files: ForkFiles,
    readonly options: ForkOptions,
    readonly context: ForkContext,
  ) {}

  async run(): Promise<Report> {
    const { reading } = this.state
    this.#compareRecords(reading)
    const choice = this.#choose(reading)
    for (const name of choice.differing) this.#differs(name)
    for (const { name, reason } of choice.missing) this.#lacks(name, 'MISSING_BACKUP', 'missing-backup', reason)
    const unreadable = await this.files.stage(choice.take)
    for (const { name, reason } of unreadable) this.#lacks(name, reason, 'unreadable', `it cannot be read (${reason}); the target was left as it was`)
    if (unreadable.length > 0) return this.#report(reading, choice, false)
    this.files.publish()
    this.state.write()
    carryCapped(this.store, this.source.id, this.target.id)
    return this.#report(reading, choice, true)
  }

  #compareRecords(reading: SessionReading): void {
    const departure = findDeparture(this.sourceReading.history, reading.history, this.isNew)
    if (departure === undefined) return
    const { checkpoint, path } = departure
    const message = `checkpoint ${checkpoint} says another thing of ${path === '' ? 'its files' : path} than in session ${this.source.id}`
    if (this.isNew) throw new FenceError(`${message}; nothing was made`, { hint: 'look at the findings of: rewind-admin verify' })
    this.#findings.push(finding('conflicting-records', message, { session: this.target.id, path: this.store.backupFolder(this.target.id) }))
  }

  #choose(reading: SessionReading): Choice {
    const source = openIfThere(join(this.store.root, this.store.backupFolder(this.source.id)))
    const target = openIfThere(join(this.store.root, this.store.backupFolder(this.target.id)))
    try {
      const sides: Sides = { store: this.store, source, sourceHistory: this.sourceReading.history, target, targetHistory: reading.history }
      const names = new Set(reading.history.references.keys())
      if (this.options.all === true && source !== undefined) {
        for (const { name } of listFolder(source.path).entries) if (isBackupName(name)) names.add(name)
      }
      return chooseBackups(names, sides)
    } finally {
      source?.close()
      target?.close()
    }
  }

  #differs(name: string): void {
    const path = `${this.store.backupFolder(this.target.id)}/${name}`
    const message = `differs from the same backup in session ${this.source.id}; both were left as they are`
    this.#findings.push(finding('fork-differs', message, { session: this.target.id, path }))
  }

  #lacks(name: string, code: string, id: 'missing-backup' | 'unreadable', reason: string): void {
    const path = `${this.store.backupFolder(this.source.id)}/${name}`
    this.#findings.push(finding(id, reason, { session: this.source.id, path }))
    this.#errors.push({ code, path, message: reason })
  }

  #report(reading: SessionReading, choice: Choice, applied: boolean): Report {
    const { linked, copied, bytesCopied } = applied ? this.files.counts : { linked: 0, copied: 0, bytesCopied: 0 }
    const exitCode = this.#errors.length > 0 ? ExitCode.partial : this.#findings.length > 0 ? ExitCode.findings : ExitCode.done
    return {
      command: 'fork',
      roots: [this.store.root],
      applied,
      summary: {
        source: this.source.id,
        target: this.target.id,
        transcript: !this.isNew ? 'present' : applied ? 'written' : 'not written',
        checkpoints: reading.history.checkpoints.length,
        linked,
        copied,
        bytesCopied,
        present: choice.present.length,
        missing: choice.missing.length,
        differing: choice.differing.length,
        swept: this.files.swept.length,
      },
      findings: [...this.sourceReading.findings.filter(({ severity }) => severity === 'error' || severity === 'warn'), ...this.#findings],
      plan: [],
      kept: [],
      errors: this.#errors,
      exitCode,
      extra: { linked, copied, present: choice.present.length },
      ...(choice.missing.length > 0 || choice.differing.length > 0 ? { next: 'rewind-admin repair' } : {}),
    }
  }
}

/** Where a session has a folder of its own, a fork never goes into one that is there (formats/pi-candy-undo section 15, 14). */
function assertNoSession(store: Store, newId: string): void {
  const folder = store.conversations?.ownFolder?.(newId)
  if (folder === undefined || lstatSync(joinSafe(store.root, folder), { throwIfNoEntry: false }) === undefined) return
  throw new FenceError(`session ${newId} exists; it was left as it is`, { hint: 'name a session that has no checkpoints yet' })
}

/** @throws LockedError when the transcript is being written; NewerFormatError for lines of a newer format */
function readWhole(store: Store, session: SessionRef, now: number, deltas = false): SessionReading {
  if (membersOf(session, 'transcript').length === 0) {
    return { id: session.id, folders: [], history: fold([]), transcriptBytes: 0, findings: [], damaged: false, busy: false }
  }
  const reading = store.read(session, { now, deltas })
  const newer = reading.findings.find(({ id }) => id === 'newer-format')
  if (newer !== undefined) throw new NewerFormatError(`session ${session.id}: ${newer.message}; nothing was made`, { hint: 'update rewind-admin' })
  if (reading.busy) throw new LockedError(`the transcript of session ${session.id} changed while it was read; nothing was made`, { hint: 'run again when the session is quiet' })
  return reading
}
