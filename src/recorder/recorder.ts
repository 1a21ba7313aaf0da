import { lstatSync } from 'node:fs'
import pLimit from 'p-limit'
import { recordedOf, withRecorded, type Recorded, type RecordedTurn } from '../formats/pi-candy-undo/recorded.js'
import type { Snapshot, State, StateRecord } from '../formats/pi-candy-undo/state.js'
import { acquireLock, type HeldLock, type LockOptions } from '../fs/lock.js'
import { systemErrorCode } from '../model/errors.js'
import { isBelow, trackedTarget, type TrackedTarget } from '../model/tracked-path.js'
import { Sidecar } from '../plan/sidecar.js'
import { Backups } from './backups.js'
import type { StagedCopy } from './copy.js'
import { discardCopy } from './copy.js'
import { excluder } from './exclude.js'
import { GapNotes } from './gap-notes.js'
import { lookAt, type Look } from './look.js'
import { defaultMaxFileBytes, defaultWaitMs, placeOf, type RecorderOptions, type RecorderPlace } from './options.js'
import { absentRecord, fileRecord, gapRecord, seenAs } from './records.js'
import { SessionFile } from './session-file.js'
import { trackedKey } from './tracked-key.js'
import { takeTurn } from './turn.js'

/** What came of a turn that began. */
export interface BegunTurn {
  /** Id of the snapshot that the message means. */
  readonly snapshot: string
  /** False when no tracked file had changed, so that the message means the snapshot before it. */
  readonly own: boolean
  /** Tracked paths that changed since they were recorded last. */
  readonly changed: readonly string[]
  /** Tracked paths whose state could not be recorded; a rewind to this message leaves them alone. */
  readonly gaps: readonly string[]
}

/** What came of looking after a file before an edit. */
export interface PreparedEdit {
  /**
   * `recorded`: its state is saved now. `tracked`: the turn has it already. `gap`: it is tracked, but its state before this edit is
   * not known. `excluded` and `left-out`: it is not tracked.
   */
  readonly outcome: 'recorded' | 'tracked' | 'gap' | 'excluded' | 'left-out'
  /** The path that it is tracked by. */
  readonly path: string
  readonly reason?: string
}

/** What a message is, besides its id. */
export interface MessageWords {
  /** The prompt, or its begin: shown where a message is to be chosen. */
  readonly text?: string
  /** Where the agent writes its conversation, and its size in bytes now: there the id of the message can be found later. */
  readonly transcript?: { readonly path: string; readonly size: number }
}

/**
 * Records the checkpoints of one session while its agent works. Calls may overlap, in this process and between processes: each
 * change of the state is made under the lock of the store, from the state as it is then. Every method throws `LockedError`
 * when the lock cannot be had in time or the session is read-only, `NewerFormatError`, `NoSpaceError`, or system errors; what
 * could not be recorded is noted as a gap then, so that nobody guesses across it.
 */
export interface Recorder {
  /** Makes the baseline, so that the first turn can be undone. */
  sessionStart(): Promise<void>
  /**
   * Takes the state of every tracked file before a turn. A message that was begun already is not begun again.
   * @param message id of the user's message; without it the turn has a random word until `nameTurn`
   */
  beginTurn(message?: string, words?: MessageWords): Promise<BegunTurn>
  /**
   * Gives the turn that was begun last the id of its message. Returns false when there is none.
   * @param word the one it had until now: another turn, begun meanwhile by another process, is left alone
   */
  nameTurn(message: string, word?: string): Promise<boolean>
  /** Saves a file that an agent is about to edit, once per session: its original. `path` absolute, or relative to the working folder. */
  beforeEdit(path: string): Promise<PreparedEdit>
  endSession(): Promise<void>
  /** The turn that was begun last. @throws as above, when the state cannot be read */
  currentTurn(): CurrentTurn | undefined
}

/** A turn, with the begin of its prompt. */
export interface CurrentTurn extends RecordedTurn {
  readonly text?: string
}

/**
 * Opens a session for recording; nothing is written but the root, if it is not there.
 * @throws UsageError for an id that is no name, or a working folder that is none; LockedError and NewerFormatError when the
 *   session is read-only
 */
export function openRecorder(options: RecorderOptions): Recorder {
  const recorder = new SessionRecorder(options, placeOf(options))
  if (options.evenIfReadOnly !== true) recorder.currentTurn()
  return recorder
}

/** One act under the lock: what it is made from, and what it makes of it. */
interface Act {
  readonly state: State
  readonly recorded: Recorded
  readonly backups: Backups
  /** Clock of the file system when the lock was taken, milliseconds since 1970. */
  readonly fileClock: number
}

interface Done<T> {
  readonly result: T
  /** Absent when nothing is to be written. */
  readonly state?: State
  readonly recorded?: Partial<Recorded>
  /** Notes of gaps that the new state has. */
  readonly settled?: { readonly paths?: readonly string[]; readonly turns?: readonly string[] }
}

class SessionRecorder implements Recorder {
  readonly #options: RecorderOptions
  readonly #place: RecorderPlace
  readonly #file: SessionFile
  readonly #sidecar: Sidecar
  readonly #notes: GapNotes
  readonly #excluded: (key: string) => boolean
  readonly #limit: number
  /** Acts of this process wait for one another here: the lock is for other processes. */
  readonly #oneAtATime = pLimit(1)
  readonly #targets = new Map<string, TrackedTarget>()
  #isPrepared = false

  constructor(options: RecorderOptions, place: RecorderPlace) {
    this.#options = options
    this.#place = place
    this.#sidecar = new Sidecar(place)
    this.#file = new SessionFile(place.root, options.sessionId, () => this.#suffix())
    this.#notes = new GapNotes(place.sidecar, options.sessionId)
    this.#excluded = excluder(options)
    this.#limit = options.maxFileBytes ?? defaultMaxFileBytes
  }

  async sessionStart(): Promise<void> {
    await this.#act(({ state, recorded }) => {
      const begun = withBaseline(state, this.#options)
      if (begun === state && recorded.endedAt === null && state.from?.cwd !== undefined) return { result: undefined }
      return { result: undefined, state: begun, recorded: { endedAt: null, sequence: Math.max(recorded.sequence, begun.snapshots.length) } }
    })
  }

  async beginTurn(message?: string, { text, transcript }: MessageWords = {}): Promise<BegunTurn> {
    const id = message ?? this.#options.uuid()
    try {
      return await this.#act(({ state: found, recorded, backups, fileClock }) => {
        const { turn } = recorded
        const same = turn?.message === id ? found.snapshots.find((snapshot) => snapshot.id === turn.snapshot) : undefined
        if (same !== undefined) return { result: { snapshot: same.id ?? same.key, own: same.key === id, changed: [], gaps: [] } }
        const state = withBaseline(found, this.#options)
        const now = this.#options.now()
        const begun = takeTurn(state, id, {
          backups,
          recorded,
          now,
          fileClock,
          limit: this.#limit,
          everyTurn: this.#options.everyTurn === true,
          uuid: () => this.#options.uuid(),
          targetOf: (key) => this.#targetOf(key, recorded.cwd),
        })
        const snapshot = begun.snapshot.id ?? begun.snapshot.key
        const kept = new Set(begun.state.snapshots.map((each) => each.id))
        const { turns } = this.#notes.read()
        const added = begun.state.snapshots.length - found.snapshots.length
        return {
          result: { snapshot, own: begun.own, changed: begun.changed, gaps: begun.gaps },
          // A prompt takes the way back to undone rewinds, as in the plugin (formats/pi-candy-undo section 4).
          state: begun.state.redo.length === 0 ? begun.state : { ...begun.state, redo: [] },
          recorded: {
            seen: begun.seen,
            sequence: recorded.sequence + added,
            lostTurns: recorded.lostTurns + turns.length,
            turn: { message: id, snapshot, ...(transcript === undefined ? {} : { transcript }) },
            messages: [
              ...recorded.messages.filter((each) => kept.has(each.snapshot)),
              { id, snapshot, ...(text === undefined ? {} : { text }), time: new Date(now).toISOString() },
            ],
          },
          settled: { turns },
        }
      })
    } catch (error) {
      this.#notes.turn(id)
      throw error
    }
  }

  async nameTurn(message: string, word?: string): Promise<boolean> {
    return this.#act(({ state, recorded }) => {
      const { turn } = recorded
      if (turn === undefined || turn.message === message) return { result: turn !== undefined }
      if (word !== undefined && turn.message !== word) return { result: false }
      const snapshots = state.snapshots.map((each) => (each.id === turn.snapshot && each.key === turn.message ? { ...each, key: message } : each))
      const messages = recorded.messages.map((each) => (each.id === turn.message ? { ...each, id: message } : each))
      // Where the id was to be found is of no use any more.
      return { result: true, state: { ...state, snapshots }, recorded: { messages, turn: { message, snapshot: turn.snapshot } } }
    })
  }

  async beforeEdit(path: string): Promise<PreparedEdit> {
    const cwd = this.#cwd()
    const key = trackedKey(path, cwd)
    const target = trackedTarget(key, cwd)
    if ('refused' in target) return { outcome: 'left-out', path: key, reason: target.refused }
    if (this.#excluded(key)) return { outcome: 'excluded', path: key }
    if ([this.#place.root, this.#place.sidecar].some((folder) => isBelow(target.path, folder))) {
      return { outcome: 'excluded', path: key, reason: 'it belongs to a store' }
    }
    try {
      return await this.#firstEdit(key, target.path)
    } catch (error) {
      this.#notes.path(key)
      throw error
    }
  }

  async endSession(): Promise<void> {
    await this.#act(({ state }) => ({ result: undefined, state, recorded: { endedAt: this.#time() } }))
    this.#notes.close()
  }

  currentTurn(): CurrentTurn | undefined {
    const state = this.#file.load()
    if (state === undefined) return undefined
    const { turn, messages } = recordedOf(state, this.#place.cwd)
    if (turn === undefined) return undefined
    const text = messages.findLast(({ id }) => id === turn.message)?.text
    return { ...turn, ...(text === undefined ? {} : { text }) }
  }

  /** Three phases: is it tracked already, copy it, and commit if it still is not tracked. */
  async #firstEdit(key: string, path: string): Promise<PreparedEdit> {
    if (this.#file.peek()?.originals.has(key) === true) return { outcome: 'tracked', path: key }
    const look = lookAt(path, this.#limit)
    const copied = look.kind === 'file' ? this.#stage(path, key) : undefined
    const copy = copied?.kind === 'copied' ? copied.copy : undefined
    let waiting = copy
    try {
      return await this.#act((act): Done<PreparedEdit> => {
        const { state, recorded } = act
        if (state.originals.has(key)) return { result: { outcome: 'tracked', path: key } }
        if (look.kind === 'left-out') {
          return { result: { outcome: 'left-out', path: key, reason: look.reason }, state: withBaseline(state, this.#options), recorded: { leftOut: recorded.leftOut + 1 } }
        }
        const known = this.#notes.read().has(key)
        const reason = known ? 'it was edited before its state could be recorded' : copied?.kind === 'refused' ? copied.reason : look.kind === 'too-big' ? look.reason : undefined
        // From here on the act looks after it.
        if (reason === undefined) waiting = undefined
        const record = this.#original(key, { look, copy, reason }, act)
        const begun = withBaseline(state, this.#options)
        return {
          result: reason === undefined ? { outcome: 'recorded', path: key } : { outcome: 'gap', path: key, reason },
          state: {
            ...begun,
            originals: new Map([...state.originals, [key, record]]),
            trackedFiles: state.trackedFiles.includes(key) ? state.trackedFiles : [...state.trackedFiles, key],
          },
          recorded: {
            sequence: Math.max(recorded.sequence, begun.snapshots.length),
            ...(reason === undefined && copy !== undefined ? { seen: new Map([...recorded.seen, [key, seenAs(record, copy.stamp, copy.at)]]) } : {}),
          },
          ...(known ? { settled: { paths: [key] } } : {}),
        }
      })
    } finally {
      if (waiting !== undefined) discardCopy(waiting)
    }
  }

  #stage(path: string, key: string): ReturnType<Backups['stage']> {
    this.#file.prepare()
    return new Backups(this.#file.backups, () => this.#suffix()).stage(path, key, this.#limit)
  }

  #original(key: string, { look, copy, reason }: { look: Look; copy: StagedCopy | undefined; reason: string | undefined }, { state, backups }: Act): StateRecord {
    const time = this.#time()
    if (reason === undefined && copy !== undefined) {
      const { name, version } = backups.publish(copy, key, state)
      return fileRecord(name, version, time, { sha256: copy.sha256, size: copy.stamp.size, mode: copy.stamp.mode })
    }
    const { name, version } = backups.nextName(key, state)
    return reason === undefined && look.kind === 'absent' ? absentRecord(version, time) : gapRecord(name, version, time, reason ?? 'it was not there any more')
  }

  /** Runs an act under the lock on the state as it is then, and publishes what it makes. */
  async #act<T>(act: (found: Act) => Done<T>): Promise<T> {
    return this.#oneAtATime(async () => {
      const held = await this.#lock()
      try {
        return await this.#commit(act)
      } finally {
        held.release()
      }
    })
  }

  /** Takes the lock of the store, as `lockStore` does; our own folder is looked over once, not at every act. */
  async #lock(): Promise<HeldLock> {
    const { process: who, waitMs = defaultWaitMs, signal } = this.#options
    const sidecar = this.#sidecar
    const options: LockOptions = {
      pid: who.pid,
      host: who.host,
      processes: who.table,
      command: who.command ?? 'record',
      now: this.#options.now(),
      token: this.#token(),
      waitMs,
      stepMs: lockStep,
      ...(sidecar.owner === undefined ? {} : { owner: sidecar.owner }),
      ...(signal === undefined ? {} : { signal }),
    }
    if (this.#isPrepared) {
      try {
        return await acquireLock(sidecar.lock, options)
      } catch (error) {
        if (systemErrorCode(error) !== 'ENOENT') throw error
      }
    }
    sidecar.prepare()
    this.#notes.prepare()
    this.#isPrepared = true
    return acquireLock(sidecar.lock, options)
  }

  async #commit<T>(act: (found: Act) => Done<T>): Promise<T> {
    const { sessionId } = this.#options
    const state = this.#file.load() ?? { sessionId, snapshots: [], originals: new Map(), trackedFiles: [], redo: [] }
    this.#file.prepare()
    const recorded = recordedOf(state, this.#place.cwd)
    const backups = new Backups(this.#file.backups, () => this.#suffix())
    let saved = false
    try {
      const done = act({ state, recorded, backups, fileClock: lstatSync(this.#sidecar.lock).ctimeMs })
      if (done.state !== undefined) {
        await this.#file.save(withRecorded(done.state, { ...recorded, ...done.recorded }), backups.written)
        saved = true
      }
      if (done.settled !== undefined) this.#notes.settle(done.settled.paths ?? [], done.settled.turns ?? [])
      return done.result
    } finally {
      backups.close(saved)
    }
  }

  /** What a tracked path stands for; the answer is the same at every turn. */
  #targetOf(key: string, cwd: string): TrackedTarget {
    const name = `${cwd}\0${key}`
    const known = this.#targets.get(name)
    if (known !== undefined) return known
    const target = trackedTarget(key, cwd)
    this.#targets.set(name, target)
    return target
  }

  /** What relative paths mean: what the session has recorded, else what was given. */
  #cwd(): string {
    try {
      const state = this.#file.load()
      return state === undefined ? this.#place.cwd : recordedOf(state, this.#place.cwd).cwd
    } catch {
      // A session that cannot be read says so where it matters.
      return this.#place.cwd
    }
  }

  #time(): string {
    return new Date(this.#options.now()).toISOString()
  }

  #token(): string {
    return this.#options.uuid().replaceAll('-', '').slice(0, 16)
  }

  /** End of the name of a temporary file, as the plugin makes it: pid and 8 hex digits. */
  #suffix(): string {
    return `${String(this.#options.process.pid)}-${this.#token().slice(0, 8)}`
  }
}

/** Holders of the lock are done in milliseconds. */
const lockStep = 10

/** The state with its baseline: the first snapshot, which is never a message and names no file (formats/pi-candy-undo section 2). */
function withBaseline(state: State, { now, uuid }: RecorderOptions): State {
  if (state.snapshots.some(({ kind }) => kind === 'baseline')) return state
  const baseline: Snapshot = { id: uuid(), key: 'baseline', kind: 'baseline', createdAt: new Date(now()).toISOString(), files: new Map() }
  return { ...state, snapshots: [baseline, ...state.snapshots] }
}
