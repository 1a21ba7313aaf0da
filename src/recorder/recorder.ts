import { recordedFolder, recordedOf } from '../formats/pi-candy-undo/recorded.js'
import type { Snapshot, State, StateRecord } from '../formats/pi-candy-undo/state.js'
import { isBelow, trackedTarget, type TrackedTarget } from '../model/tracked-path.js'
import { Acts, type Act, type Done } from './acts.js'
import type { BegunTurn, CurrentTurn, MessageWords, PreparedEdit, Recorder } from './api.js'
import { discardCopy, type StagedCopy } from './copy.js'
import { excluder } from './exclude.js'
import { lookAt, type Look } from './look.js'
import { defaultMaxFileBytes, placeOf, type RecorderOptions, type RecorderPlace } from './options.js'
import { absentRecord, fileRecord, gapRecord, seenAs } from './records.js'
import { trackedKey } from './tracked-key.js'
import { takeTurn } from './turn.js'

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

class SessionRecorder implements Recorder {
  readonly #options: RecorderOptions
  readonly #place: RecorderPlace
  readonly #acts: Acts
  readonly #excluded: (key: string) => boolean
  readonly #limit: number
  readonly #targets = new Map<string, TrackedTarget>()

  constructor(options: RecorderOptions, place: RecorderPlace) {
    this.#options = options
    this.#place = place
    this.#acts = new Acts(options, place)
    this.#excluded = excluder(options)
    this.#limit = options.maxFileBytes ?? defaultMaxFileBytes
  }

  async sessionStart(): Promise<void> {
    await this.#acts.run(({ state, recorded }) => {
      const begun = withBaseline(state, this.#options)
      if (begun === state && recorded.endedAt === null && state.from?.cwd !== undefined) return { result: undefined }
      return { result: undefined, state: begun, recorded: { endedAt: null, sequence: Math.max(recorded.sequence, begun.snapshots.length) } }
    })
  }

  async beginTurn(message?: string, { text, transcript }: MessageWords = {}): Promise<BegunTurn> {
    const id = message ?? this.#options.uuid()
    try {
      return await this.#acts.run(({ state: found, recorded, backups, fileClock }) => {
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
        const { turns } = this.#acts.notes.read()
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
      this.#acts.notes.turn(id)
      throw error
    }
  }

  async nameTurn(message: string, word?: string): Promise<boolean> {
    return this.#acts.run(({ state, recorded }) => {
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
      this.#acts.notes.path(key)
      throw error
    }
  }

  async endSession(): Promise<void> {
    await this.#acts.run(({ state }) => ({ result: undefined, state, recorded: { endedAt: this.#time() } }))
    this.#acts.notes.close()
  }

  currentTurn(): CurrentTurn | undefined {
    const state = this.#acts.file.load()
    if (state === undefined) return undefined
    const { turn, messages } = recordedOf(state, this.#place.cwd)
    if (turn === undefined) return undefined
    const text = messages.findLast(({ id }) => id === turn.message)?.text
    return { ...turn, ...(text === undefined ? {} : { text }) }
  }

  /** Three phases: is it tracked already, copy it, and commit if it still is not tracked. */
  async #firstEdit(key: string, path: string): Promise<PreparedEdit> {
    if (this.#acts.file.peek()?.originals.has(key) === true) return { outcome: 'tracked', path: key }
    const look = lookAt(path, this.#limit)
    const copied = look.kind === 'file' ? this.#acts.stage(path, key, this.#limit) : undefined
    const copy = copied?.kind === 'copied' ? copied.copy : undefined
    let waiting = copy
    try {
      return await this.#acts.run((act): Done<PreparedEdit> => {
        const { state, recorded } = act
        if (state.originals.has(key)) return { result: { outcome: 'tracked', path: key } }
        if (look.kind === 'left-out') {
          return { result: { outcome: 'left-out', path: key, reason: look.reason }, state: withBaseline(state, this.#options), recorded: { leftOut: recorded.leftOut + 1 } }
        }
        const known = this.#acts.notes.read().has(key)
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

  #original(key: string, { look, copy, reason }: { look: Look; copy: StagedCopy | undefined; reason: string | undefined }, { state, backups }: Act): StateRecord {
    const time = this.#time()
    if (reason === undefined && copy !== undefined) {
      const { name, version } = backups.publish(copy, key, state)
      return fileRecord(name, version, time, { sha256: copy.sha256, size: copy.stamp.size, mode: copy.stamp.mode })
    }
    const { name, version } = backups.nextName(key, state)
    return reason === undefined && look.kind === 'absent' ? absentRecord(version, time) : gapRecord(name, version, time, reason ?? 'it was not there any more')
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
      const state = this.#acts.file.peek()
      return (state === undefined ? undefined : recordedFolder(state)) ?? this.#place.cwd
    } catch {
      // A session that cannot be read says so where it matters.
      return this.#place.cwd
    }
  }

  #time(): string {
    return new Date(this.#options.now()).toISOString()
  }
}

/** The state with its baseline: the first snapshot, which is never a message and names no file (formats/pi-candy-undo section 2). */
function withBaseline(state: State, { now, uuid }: RecorderOptions): State {
  if (state.snapshots.some(({ kind }) => kind === 'baseline')) return state
  const baseline: Snapshot = { id: uuid(), key: 'baseline', kind: 'baseline', createdAt: new Date(now()).toISOString(), files: new Map() }
  return { ...state, snapshots: [baseline, ...state.snapshots] }
}
