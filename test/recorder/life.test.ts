import fc from 'fast-check'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { findCheckpoint, resolve } from '../../src/model/resolve.js'
import { planCap } from '../../src/operations/cap.js'
import { fork } from '../../src/operations/fork/fork.js'
import { redo, rewind } from '../../src/operations/rewind.js'
import { Recording } from '../helpers/recording.js'
import { carry, dayMs, machineWith } from '../helpers/removal.js'
import { temporaryFolder } from '../helpers/temp.js'
import { backupAt, recordAndDie } from './dying.js'

/*
 * Random lives of a recorded session against a model that knows only what was on the disk: at each message the content of every
 * file, and of every file what it was when it was first looked after. A message means what its files were when it began; a file
 * that was not tracked then, what it was when it came to be. Crashes are SIGKILL in the middle of an act.
 */

type Content = string | null

const files = ['a', 'b', 'sub/c'] as const
type File = (typeof files)[number]

class Model {
  readonly disk = new Map<File, Content>(files.map((file) => [file, null]))
  readonly originals = new Map<File, Content>()
  /** Message to what the tracked files were when it began. */
  readonly turns = new Map<string, ReadonlyMap<File, Content>>()

  copy(): Model {
    const copy = new Model()
    for (const [file, content] of this.disk) copy.disk.set(file, content)
    for (const [file, content] of this.originals) copy.originals.set(file, content)
    for (const [message, tracked] of this.turns) copy.turns.set(message, tracked)
    return copy
  }

  begun(message: string): void {
    this.turns.set(message, new Map([...this.originals.keys()].map((file) => [file, this.disk.get(file) ?? null])))
  }

  tracked(file: File): void {
    if (!this.originals.has(file)) this.originals.set(file, this.disk.get(file) ?? null)
  }

  at(message: string, file: File): Content | undefined {
    const tracked = this.turns.get(message)
    return tracked?.has(file) === true ? tracked.get(file) : this.originals.get(file)
  }
}

type Step =
  | { readonly kind: 'turn' }
  | { readonly kind: 'edit'; readonly file: File; readonly content: Content }
  | { readonly kind: 'external'; readonly file: File; readonly content: Content }
  | { readonly kind: 'crash'; readonly act: 'turn' | File; readonly at: number }
  | { readonly kind: 'cap'; readonly max: number }
  | { readonly kind: 'rewind'; readonly which: number }
  | { readonly kind: 'fork' }

const content = fc.oneof({ weight: 5, arbitrary: fc.constantFrom('A', 'B', 'longer text', '') }, { weight: 1, arbitrary: fc.constant(null) })
const file = fc.constantFrom(...files)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('turn' as const) }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('edit' as const), file, content }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('external' as const), file, content }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('crash' as const), act: fc.constantFrom('turn' as const, ...files), at: fc.integer({ min: 1, max: 45 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cap' as const), max: fc.integer({ min: 2, max: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('rewind' as const), which: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('fork' as const) }) },
)

/** A session with what must be true of it. */
class Life {
  #turns = 0
  #rewound = false
  /** Forks that nobody touches any more. */
  readonly left: { readonly recording: Recording; readonly model: Model }[] = []

  constructor(
    public recording: Recording,
    public model: Model,
  ) {}

  async take(each: Step): Promise<void> {
    const { recording, model } = this
    switch (each.kind) {
      case 'turn': {
        const message = this.#nextMessage()
        await recording.open().beginTurn(message)
        model.begun(message)
        return
      }
      case 'edit':
        await recording.open().beforeEdit(each.file)
        model.tracked(each.file)
        this.#write(each.file, each.content)
        return
      case 'external':
        this.#write(each.file, each.content)
        return
      case 'crash':
        await this.#crash(each)
        return
      case 'cap': {
        const { store } = recording.store()
        const at = Date.now() + dayMs
        await carry(store, planCap(store, { max: each.max, sessions: [recording.session], quietPeriodMs: 1 }, { now: at, machine: machineWith() }), { at })
        this.#forgetDropped()
        return
      }
      case 'rewind': {
        const messages = [...model.turns.keys()]
        const message = messages[each.which % messages.length]
        if (message !== undefined) await this.#rewind(message)
        return
      }
      case 'fork': {
        const { store } = recording.store()
        const newId = randomUUID()
        const report = await fork(store, recording.session, newId, {}, { now: Date.now(), pid: process.pid, token: 'c0ffee', processExists: () => true })
        expect(report.exitCode).toBe(0)
        this.left.push({ recording, model: model.copy() })
        this.recording = new Recording(recording.home, { sessionId: newId })
      }
    }
  }

  /** Every message gives the bytes that were there, whatever happened since; verify has no error. */
  async check(): Promise<void> {
    for (const { recording, model } of [...this.left, this]) checkResolved(recording, model)
    expect((await this.recording.findings()).filter(({ severity }) => severity === 'error')).toEqual([])
  }

  async #crash({ act, at }: Extract<Step, { kind: 'crash' }>): Promise<void> {
    const { recording, model } = this
    const message = act === 'turn' ? this.#nextMessage() : undefined
    const survived = await recordAndDie(recording, act === 'turn' ? { act: 'beginTurn', argument: message ?? '', at } : { act: 'beforeEdit', argument: act, at })
    // What the state says tells whether it was done; there is nothing in between.
    const { state } = recording
    const isThere = message === undefined ? state.originals.has(act) : findCheckpoint(recording.store().reading.history, message) !== undefined
    if (survived !== undefined) expect(isThere).toBe(true)
    if (isThere && message !== undefined) model.begun(message)
    if (isThere && act !== 'turn') model.tracked(act)
  }

  async #rewind(message: string): Promise<void> {
    const { recording, model } = this
    this.#rewound = true
    const { store, ref } = recording.store()
    const context = { now: Date.now(), pid: process.pid, token: 'c0ffee', processExists: () => true, home: recording.home, windows: false }
    const report = await rewind(store, ref, message, { scope: 'code', apply: true, newId: randomUUID() }, context)
    expect(report.exitCode).toBe(0)
    for (const each of files) {
      const expected = model.at(message, each)
      if (expected !== undefined) model.disk.set(each, expected)
      expect([each, recording.read(each)]).toEqual([each, model.disk.get(each)])
    }
  }

  #forgetDropped(): void {
    const { history } = this.recording.store().reading
    const { turns } = this.model
    const gone = [...turns.keys()].filter((message) => findCheckpoint(history, message) === undefined)
    // The newest one never goes, unless the redo point of a rewind is newer.
    if (!this.#rewound) expect(gone).not.toContain([...turns.keys()].at(-1) ?? '')
    for (const message of gone) turns.delete(message)
  }

  #nextMessage(): string {
    this.#turns += 1
    return `message-${String(this.#turns)}-`
  }

  #write(path: File, text: Content): void {
    if (text !== null || this.model.disk.get(path) !== null) this.recording.byHand(path, text)
    this.model.disk.set(path, text)
  }
}

function checkResolved(recording: Recording, model: Model): void {
  const { history } = recording.store().reading
  for (const message of model.turns.keys()) {
    const checkpoint = findCheckpoint(history, message)
    if (checkpoint === undefined) throw new Error(`${message} has no checkpoint`)
    const resolved = resolve(history, checkpoint)
    for (const each of files) {
      const resolution = resolved.get(each)
      const expected = model.at(message, each)
      const found = resolution?.state === 'backup' ? readFileSync(backupAt(recording, resolution.name), 'utf8') : resolution?.state === 'absent' ? null : undefined
      expect([message, each, found]).toEqual([message, each, expected])
    }
  }
}

it('no checkpoint ever gives wrong bytes, through turns, edits, changes by hand, crashes, caps, rewinds and forks', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 24 }), fc.boolean(), async (steps, everyTurn) => {
      const recording = new Recording(await temporaryFolder(), { everyTurn, sessionId: randomUUID() })
      await recording.recorder.sessionStart()
      const life = new Life(recording, new Model())
      for (const each of steps) {
        await life.take(each)
        if (each.kind === 'crash' || each.kind === 'cap') await life.check()
      }
      await life.check()
    }),
    { numRuns: Number(process.env.REWIND_ADMIN_LIVES ?? '8'), endOnFailure: true },
  )
})

it('a rewind leaves a redo point that the cap protects, and redo gives the files back', async () => {
  const recording = new Recording(join(await temporaryFolder(), 'home'))
  await recording.recorder.sessionStart()
  for (const [message, text] of [['m1', 'A'], ['m2', 'B'], ['m3', 'C']] as const) {
    await recording.recorder.beginTurn(message)
    await recording.edit('f', text)
  }
  const { store, ref } = recording.store()
  const context = { now: Date.now(), pid: process.pid, token: 'c0ffee', processExists: () => true, home: recording.home, windows: false }
  await rewind(store, ref, 'm2', { scope: 'code', apply: true, newId: randomUUID() }, context)
  expect(recording.read('f')).toBe('A')
  const at = Date.now() + dayMs
  await carry(store, planCap(store, { max: 1, quietPeriodMs: 1 }, { now: at, machine: machineWith() }), { at })
  redo(store, recording.store().ref, { apply: true }, context)
  expect(recording.read('f')).toBe('C')
})
