import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve as resolvePath } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Store } from '../../src/formats/format.js'
import { FenceError, NoMatchError } from '../../src/model/errors.js'
import type { Report } from '../../src/model/report.js'
import { resolve } from '../../src/model/resolve.js'
import { fork } from '../../src/operations/fork/fork.js'
import { redo, rewind, type RewindContext } from '../../src/operations/rewind.js'
import { verify } from '../../src/operations/verify/verify.js'
import { SimulatedAgent, type Expected, type Generation } from '../helpers/agent.js'
import { uuidOf } from '../helpers/identity.js'
import { temporaryFolder } from '../helpers/temp.js'
import { snapshotTree, withoutTimes, type TreeNode } from '../helpers/tree.js'
import { openStore, sessionOf } from '../operations/fork/fork-context.js'
import { machine } from '../operations/repair/repair-context.js'

let base = ''
beforeAll(async () => { base = await temporaryFolder(afterAll) })

const path = fc.constantFrom('a.txt', 'deep/er/b.txt', '__proto__', '../beside/c.txt')
const bytes = fc.oneof(
  fc.constantFrom('', 'one\n', 'two\n', 'one\r\ntwo\r\n').map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 24 }).map((array) => Buffer.from(array)),
)
const scope = fc.constantFrom('code' as const, 'both' as const)

type Step =
  | { readonly kind: 'prompt' | 'clientFork' }
  | { readonly kind: 'write' | 'external' | 'hand'; readonly path: string; readonly bytes: Buffer }
  | { readonly kind: 'remove'; readonly path: string }
  | { readonly kind: 'chmod'; readonly path: string; readonly mode: number }
  | { readonly kind: 'rewind'; readonly at: number; readonly scope: 'code' | 'both' }
  | { readonly kind: 'redo'; readonly force: boolean }
  | { readonly kind: 'fork'; readonly at: number; readonly copy: boolean }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.constant({ kind: 'prompt' as const }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('write' as const), path, bytes }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('external' as const), path, bytes }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('hand' as const), path: fc.constantFrom('hand.txt', 'deep/hand.txt'), bytes }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), path }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('chmod' as const), path, mode: fc.constantFrom(0o644, 0o755, 0o600, 0o444) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('rewind' as const), at: fc.nat(), scope }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('redo' as const), force: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('fork' as const), at: fc.nat(), copy: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'clientFork' as const }) },
)

type Files = ReadonlyMap<string, Expected>

/** A rewind that can be undone: when it was, and what the paths tracked then were just before. */
interface Undo {
  readonly at: number
  readonly files: Files
}

/** A home, the agent in it, and what must be true: contents come from the agent's memory, never from the store. */
class World {
  readonly home = mkdtempSync(join(base, 'home-'))
  readonly root = join(this.home, '.claude')
  readonly store: Store
  agent: SimulatedAgent
  readonly #undo = new Map<string, Undo[]>()
  #made = 0

  constructor(generation: Generation) {
    const project = join(this.home, 'project')
    for (const folder of [project, join(this.home, 'beside'), this.root]) mkdirSync(folder)
    this.store = openStore(this.root)
    this.agent = new SimulatedAgent({ root: this.root, project, generation })
    this.agent.prompt('begin')
  }

  async take(each: Step): Promise<void> {
    const { agent } = this
    const file = 'path' in each ? join(agent.project, each.path) : ''
    if (each.kind === 'prompt') agent.prompt('go on')
    else if (each.kind === 'write') agent.write(each.path, each.bytes)
    else if (each.kind === 'external') agent.external(each.path, each.bytes)
    else if (each.kind === 'hand') {
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, each.bytes)
    } else if (each.kind === 'remove') rmSync(file, { force: true })
    else if (each.kind === 'chmod') {
      if (existsSync(file)) chmodSync(file, each.mode)
    } else if (each.kind === 'rewind') await this.#rewind(each.at, each.scope)
    else if (each.kind === 'redo') this.#redo(each.force)
    else if (each.kind === 'fork') await this.#fork(each.at, each.copy)
    else this.agent = agent.fork(this.#newId())
  }

  async end(): Promise<void> {
    this.agent.end()
    const report = await verify([openStore(this.root)], {}, { now: this.#now, machine, random: () => 0, threads: 0 })
    expect(report.findings.filter(({ severity }) => severity === 'error')).toEqual([])
  }

  async #rewind(at: number, scope: 'code' | 'both'): Promise<void> {
    const { agent, store } = this
    const index = at % agent.checkpoints.length
    const message = agent.checkpoints[index] ?? ''
    const wanted = agent.expected(message)
    const [before, was] = [this.#files(), statesOf(wanted.keys())]
    const transcript = readFileSync(agent.transcript)
    const go = (): Promise<Report> =>
      rewind(store, sessionOf(store, agent.session), message, { scope, apply: true, newId: this.#newId() }, this.#context())
    const differing = [...wanted].filter(([file, state]) => !isSame(was.get(file), state)).length
    const report = await go()
    expect(report).toMatchObject({ exitCode: 0, errors: [], summary: { checkpoint: message, changes: differing, skipped: 0, failed: 0 } })
    expect(statesOf(wanted.keys())).toEqual(wanted)
    expect(without(this.#files(), wanted)).toEqual(without(before, wanted))
    expect(readFileSync(agent.transcript)).toEqual(transcript)
    if (differing > 0) this.#stack().push({ at: this.#now, files: was })
    const { conversation } = report.extra as { conversation?: { session: string | null } }
    if (scope === 'both') {
      expect(conversation?.session === null).toBe(index === 0)
      if (typeof conversation?.session === 'string') this.#resolvesLike(conversation.session, agent.checkpoints.slice(0, index))
    }
    const after = snapshotTree(agent.project)
    expect(await go()).toMatchObject({ exitCode: 0, summary: { changes: 0 } })
    expect(snapshotTree(agent.project)).toEqual(after)
    agent.clock.tick(2000)
  }

  #redo(force: boolean): void {
    const { agent, store } = this
    const undo = this.#stack().at(-1)
    const before = this.#files()
    const go = (options: { readonly force?: boolean }): Report =>
      redo(store, sessionOf(store, agent.session), { apply: true, ...options }, this.#context())
    if (undo === undefined) {
      expect(() => go({ force })).toThrow(NoMatchError)
      return
    }
    if (this.#recordedSince(undo.at) && !force) {
      expect(() => go({})).toThrow(FenceError)
      expect(this.#files()).toEqual(before)
      return
    }
    expect(go({ force })).toMatchObject({ exitCode: 0, errors: [], summary: { failed: 0, skipped: 0 } })
    this.#stack().pop()
    expect(statesOf(undo.files.keys())).toEqual(undo.files)
    expect(without(this.#files(), undo.files)).toEqual(without(before, undo.files))
    agent.clock.tick(2000)
  }

  async #fork(at: number, copy: boolean): Promise<void> {
    const { agent, store } = this
    const target = this.#newId()
    const index = at % (agent.checkpoints.length + 1)
    const cut = index === 0 ? {} : { at: agent.checkpoints[index] ?? '' }
    const before = snapshotTree(agent.project)
    const isCut = 'at' in cut && cut.at !== ''
    const report = await fork(store, agent.session, target, { ...(isCut ? cut : {}), ...(copy ? { method: 'copy' } : {}) }, this.#context())
    expect(report).toMatchObject({ exitCode: 0, errors: [], extra: copy ? { linked: 0 } : { copied: 0 } })
    this.#resolvesLike(target, isCut ? agent.checkpoints.slice(0, index) : agent.checkpoints)
    expect(snapshotTree(agent.project)).toEqual(before)
  }

  /** Every checkpoint of a new session holds what the agent remembers of it. */
  #resolvesLike(session: string, checkpoints: readonly string[]): void {
    const { agent, store, root } = this
    const { history } = store.read(sessionOf(store, session), { now: this.#now })
    expect(history.checkpoints.map(({ id }) => id).sort()).toEqual([...checkpoints].sort())
    for (const checkpoint of history.checkpoints) {
      const seen = new Map([...resolve(history, checkpoint)].map(([key, resolution]): [string, Expected] => {
        const state = resolution.state === 'backup' ? stateOf(join(root, 'file-history', session, resolution.name)) : { state: 'absent' as const }
        return [resolvePath(agent.project, key), state]
      }))
      for (const [file, state] of agent.expected(checkpoint.id)) if (seen.has(file)) expect(seen.get(file), file).toEqual(state)
      // What a cut conversation does not know yet had not been touched when it ends.
      for (const file of agent.records(checkpoint.id).keys()) expect(seen.has(resolvePath(agent.project, file)), file).toBe(true)
    }
  }

  #recordedSince(time: number): boolean {
    const { agent } = this
    return agent.checkpoints.some((id) => [...agent.records(id).values()].some(({ backupTime }) => Date.parse(backupTime) > time))
  }

  #stack(): Undo[] {
    const stack = this.#undo.get(this.agent.session) ?? []
    this.#undo.set(this.agent.session, stack)
    return stack
  }

  /** Every file of the home outside the store, by its absolute path. */
  #files(): Map<string, TreeNode> {
    const nodes = Object.entries(withoutTimes(snapshotTree(this.home)))
    return new Map(nodes.filter(([name, { type }]) => type === 'file' && !name.startsWith('.claude/')).map(([name, node]) => [join(this.home, name), node]))
  }

  get #now(): number {
    return this.agent.clock.now + 1000
  }

  #newId(): string {
    this.#made += 1
    return uuidOf(`made/${String(this.#made)}`)
  }

  #context(): RewindContext {
    return { now: this.#now, pid: process.pid, token: 'c0ffee', processExists: () => true, home: this.home, windows: false }
  }
}

function stateOf(file: string): Expected {
  if (lstatSync(file, { throwIfNoEntry: false }) === undefined) return { state: 'absent' }
  return { state: 'file', mode: statSync(file).mode & 0o7777, bytes: readFileSync(file) }
}

function statesOf(files: Iterable<string>): Map<string, Expected> {
  return new Map([...files].map((file) => [file, stateOf(file)]))
}

function isSame(one: Expected | undefined, other: Expected): boolean {
  if (one?.state !== 'file' || other.state !== 'file') return one?.state === other.state
  return one.mode === other.mode && one.bytes.equals(other.bytes)
}

function without<T>(files: ReadonlyMap<string, T>, left: ReadonlyMap<string, unknown>): Map<string, T> {
  return new Map([...files].filter(([file]) => !left.has(file)))
}

it.each<Generation>(['G1', 'G2', 'G3', 'G4'])(
  '%s: whatever an agent and others did, a rewind gives the state of its message, redo that of before, a fork every checkpoint, and verify finds no error',
  async (generation) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 6, maxLength: 24 }), async (steps) => {
        const world = new World(generation)
        try {
          for (const each of steps) await world.take(each)
          await world.end()
        } finally {
          rmSync(world.home, { recursive: true, force: true })
        }
      }),
      { numRuns: 24 },
    )
  },
)
