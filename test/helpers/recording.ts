import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Store } from '../../src/formats/format.js'
import { openPiCandyUndo } from '../../src/formats/pi-candy-undo/index.js'
import { parseState, type State } from '../../src/formats/pi-candy-undo/state.js'
import { thisMachine } from '../../src/fs/machine.js'
import type { Finding } from '../../src/model/finding.js'
import { findCheckpoint } from '../../src/model/resolve.js'
import type { SessionReading, SessionRef } from '../../src/model/session.js'
import { applyRestore, type RestoreResult } from '../../src/operations/restore/apply.js'
import { planRestore } from '../../src/operations/restore/plan.js'
import { verify } from '../../src/operations/verify/verify.js'
import type { Recorder } from '../../src/recorder/api.js'
import { openRecorder } from '../../src/recorder/recorder.js'
import type { RecorderOptions } from '../../src/recorder/options.js'
import { TestClock } from './identity.js'
import { machineWith } from './removal.js'
import { temporaryFolder } from './temp.js'

/** Options of a recorder that a test may set. */
export type RecordingOptions = Partial<Omit<RecorderOptions, 'root' | 'cwd'>>

/** A session of our own recorder in a temporary home, with the working tree that it records. */
export class Recording {
  readonly home: string
  readonly project: string
  readonly root: string
  readonly session: string
  readonly recorder: Recorder
  readonly #options: RecordingOptions
  readonly #clock: TestClock

  constructor(home: string, options: RecordingOptions = {}, clock = new TestClock()) {
    this.home = home
    this.project = join(home, 'project')
    this.root = join(home, 'records')
    mkdirSync(this.project, { recursive: true })
    this.session = options.sessionId ?? '0f5b1d5e-0000-4000-8000-00000000c0de'
    this.#options = options
    this.#clock = clock
    this.recorder = this.open()
  }

  /** Another recorder of the same session, as another process has one. */
  open(more: RecordingOptions & { readonly cwd?: string } = {}): Recorder {
    return openRecorder({
      root: this.root,
      cwd: this.project,
      now: () => Date.parse(this.#clock.tick()),
      uuid: randomUUID,
      process: { pid: process.pid, host: 'test', table: thisMachine() },
      ...this.#options,
      sessionId: this.session,
      ...more,
    })
  }

  get statePath(): string {
    return join(this.root, this.session, 'state.json')
  }

  get state(): State {
    const parsed = parseState(readFileSync(this.statePath))
    if (parsed.kind !== 'state') throw new Error('the state cannot be read')
    return parsed.state
  }

  get backups(): string[] {
    return readdirSync(join(this.root, this.session, 'backups')).sort()
  }

  /** The agent edits a file: recorded first, then written; `null` removes it. */
  async edit(path: string, content: string | Buffer | null, recorder = this.recorder): Promise<void> {
    await recorder.beforeEdit(path)
    this.byHand(path, content)
  }

  byHand(path: string, content: string | Buffer | null): void {
    const place = path.startsWith('/') ? path : join(this.project, path)
    mkdirSync(dirname(place), { recursive: true })
    if (content === null) rmSync(place)
    else writeFileSync(place, content)
  }

  /** Text of a file of the project, `null` when there is none. */
  read(path: string): string | null {
    const place = path.startsWith('/') ? path : join(this.project, path)
    return existsSync(place) ? readFileSync(place, 'utf8') : null
  }

  store(): { readonly store: Store; readonly ref: SessionRef; readonly reading: SessionReading } {
    const store = openPiCandyUndo(this.root, { home: this.home, env: { REWIND_ADMIN_RECORDS: this.root }, platform: 'linux' })
    const ref = store.inventory().sessions.find(({ id }) => id === this.session)
    if (ref === undefined) throw new Error('the session was not found')
    return { store, ref, reading: store.read(ref, { now: this.now }) }
  }

  /** Now, in milliseconds since 1970, with the clock standing. */
  get now(): number {
    return Date.parse(this.#clock.iso)
  }

  /** What verify finds in the store. */
  async findings(): Promise<readonly Finding[]> {
    const report = await verify([this.store().store], {}, { now: Date.now(), machine: machineWith(), random: () => 0, threads: 0 })
    return report.findings
  }

  /** Takes the files back to what a word names. */
  rewind(word: string): RestoreResult {
    const { store, reading } = this.store()
    const checkpoint = findCheckpoint(reading.history, word)
    if (checkpoint === undefined) throw new Error(`no checkpoint ${word}`)
    const plan = planRestore(store, reading, checkpoint, { home: this.home, sealOf: (name) => reading.history.references.get(name)?.digest })
    return applyRestore(plan, { sidecar: store.sidecar, now: this.now })
  }
}

/** A recording in a home of its own, begun. */
export async function startRecording(options: RecordingOptions = {}): Promise<Recording> {
  const recording = new Recording(await temporaryFolder(), options)
  await recording.recorder.sessionStart()
  return recording
}
