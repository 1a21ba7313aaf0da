import { lstatSync } from 'node:fs'
import pLimit from 'p-limit'
import { recordedOf, withRecorded, type Recorded } from '../formats/pi-candy-undo/recorded.js'
import type { State } from '../formats/pi-candy-undo/state.js'
import { acquireLock, type HeldLock, type LockOptions } from '../fs/lock.js'
import { systemErrorCode } from '../model/errors.js'
import { Sidecar } from '../plan/sidecar.js'
import { Backups } from './backups.js'
import type { CopyResult } from './copy.js'
import { GapNotes } from './gap-notes.js'
import { defaultWaitMs, type RecorderOptions, type RecorderPlace } from './options.js'
import { SessionFile } from './session-file.js'

/** How often the lock is tried, in milliseconds: those who hold it are done in a few. */
const lockStep = 10

/** One act under the lock: what it is made from, and what it makes of it. */
export interface Act {
  readonly state: State
  readonly recorded: Recorded
  readonly backups: Backups
  /** Clock of the file system when the lock was taken, milliseconds since 1970. */
  readonly fileClock: number
}

export interface Done<T> {
  readonly result: T
  /** Absent when nothing is to be written. */
  readonly state?: State
  readonly recorded?: Partial<Recorded>
  /** Notes of gaps that the new state has. */
  readonly settled?: { readonly paths?: readonly string[]; readonly turns?: readonly string[] }
}

/** The acts on one session: one at a time, in this process and between processes, each from the state as it is then. */
export class Acts {
  readonly file: SessionFile
  readonly notes: GapNotes
  readonly #options: RecorderOptions
  readonly #place: RecorderPlace
  readonly #sidecar: Sidecar
  /** Acts of this process wait for one another here: the lock is for other processes. */
  readonly #oneAtATime = pLimit(1)
  #isPrepared = false

  constructor(options: RecorderOptions, place: RecorderPlace) {
    this.#options = options
    this.#place = place
    this.#sidecar = new Sidecar(place)
    this.file = new SessionFile(place.root, options.sessionId, () => this.#suffix())
    this.notes = new GapNotes(place.sidecar, options.sessionId)
  }

  /** Copies a file beside the backups, for an act to publish. Needs no lock. @throws system errors of writing */
  stage(path: string, key: string, limit: number): CopyResult {
    this.file.prepare()
    return this.#backups().stage(path, key, limit)
  }

  /**
   * Runs an act under the lock on the state as it is then, and publishes what it makes.
   * @throws LockedError when the lock cannot be had in time; what reading and saving the state throw
   */
  async run<T>(act: (found: Act) => Done<T>): Promise<T> {
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
    this.notes.prepare()
    this.#isPrepared = true
    return acquireLock(sidecar.lock, options)
  }

  async #commit<T>(act: (found: Act) => Done<T>): Promise<T> {
    const { sessionId } = this.#options
    const state = this.file.load() ?? { sessionId, snapshots: [], originals: new Map(), trackedFiles: [], redo: [] }
    this.file.prepare()
    const recorded = recordedOf(state, this.#place.cwd)
    const backups = this.#backups()
    let saved = false
    try {
      const done = act({ state, recorded, backups, fileClock: lstatSync(this.#sidecar.lock).ctimeMs })
      if (done.state !== undefined) {
        await this.file.save(withRecorded(done.state, { ...recorded, ...done.recorded }), backups.written)
        saved = true
      }
      if (done.settled !== undefined) this.notes.settle(done.settled.paths ?? [], done.settled.turns ?? [])
      return done.result
    } finally {
      backups.close(saved)
    }
  }

  #backups(): Backups {
    return new Backups(this.file.backups, () => this.#suffix())
  }

  #token(): string {
    return this.#options.uuid().replaceAll('-', '').slice(0, 16)
  }

  /** End of the name of a temporary file, as the plugin makes it: pid and 8 hex digits. */
  #suffix(): string {
    return `${String(this.#options.process.pid)}-${this.#token().slice(0, 8)}`
  }
}
