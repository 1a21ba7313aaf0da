import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { pathProbe } from '../../src/fs/path-probe.js'
import { NoMatchError } from '../../src/model/errors.js'
import { resolve } from '../../src/model/resolve.js'
import { planCap } from '../../src/operations/cap.js'
import { planExpire } from '../../src/operations/expire.js'
import { planPurge } from '../../src/operations/purge.js'
import type { Removal } from '../../src/operations/removal/removal.js'
import { SimulatedAgent, type Generation } from '../helpers/agent.js'
import { TestClock, uuidOf } from '../helpers/identity.js'
import { carry, dayMs, daysAgo, expireOptions, machineWith, now, openStore, restore } from '../helpers/removal.js'
import { emptyRoot } from '../helpers/store.js'
import { temporaryFolder } from '../helpers/temp.js'
import { snapshotTree } from '../helpers/tree.js'

interface Edit {
  readonly file: number
  readonly byte: number
}

interface SessionSpec {
  readonly generation: Generation
  readonly project: number
  readonly age: number
  readonly turns: readonly (readonly Edit[])[]
}

type RemovalCommand =
  | { readonly kind: 'cap'; readonly max: number }
  | { readonly kind: 'expire'; readonly days: number }
  | { readonly kind: 'purge'; readonly project: number }

type Command = RemovalCommand | { readonly kind: 'fork'; readonly index: number } | { readonly kind: 'restore'; readonly index: number }

/** What should be true of one session. */
interface Known {
  readonly agent: SimulatedAgent
  readonly project: number
  /** Runs that hold something of it in the trash, oldest first: a cap, or the whole session. */
  readonly runs: { readonly id: string; readonly max?: number }[]
}

const edit = fc.record({ file: fc.nat(2), byte: fc.nat(255) })
const sessionSpec: fc.Arbitrary<SessionSpec> = fc.record({
  generation: fc.constantFrom<Generation>('G1', 'G2', 'G3', 'G4'),
  project: fc.nat(1),
  age: fc.integer({ min: 1, max: 100 }),
  turns: fc.array(fc.array(edit, { maxLength: 3 }), { minLength: 1, maxLength: 7 }),
})
const command: fc.Arbitrary<Command> = fc.oneof(
  fc.record({ kind: fc.constant('cap' as const), max: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ kind: fc.constant('expire' as const), days: fc.integer({ min: 1, max: 100 }) }),
  fc.record({ kind: fc.constant('purge' as const), project: fc.nat(1) }),
  fc.record({ kind: fc.constant('fork' as const), index: fc.nat(7) }),
  fc.record({ kind: fc.constant('restore' as const), index: fc.nat(7) }),
)

class Scene {
  readonly root: string
  readonly projects: readonly string[]
  readonly known: Known[] = []
  readonly #store
  #forks = 0

  constructor(root: string, projects: readonly string[]) {
    this.root = root
    this.projects = projects
    this.#store = openStore(root)
  }

  add({ generation, project, age, turns }: SessionSpec, index: number): void {
    const folder = this.projects[project] ?? ''
    const clock = new TestClock(daysAgo(age))
    const agent = new SimulatedAgent({ root: this.root, project: folder, generation, sessionId: uuidOf(`removal/${String(index)}`), clock, seed: String(index) })
    for (const edits of turns) {
      agent.prompt('go on')
      for (const { file, byte } of edits) agent.write(`${String(index)}-${String(file)}.bin`, Buffer.from([byte, index, 0x41]))
    }
    agent.end()
    this.known.push({ agent, project, runs: [] })
  }

  isThere({ runs }: Known): boolean {
    return runs.every(({ max }) => max !== undefined)
  }

  async run(step: Command): Promise<void> {
    if (step.kind === 'fork') this.#fork(step.index)
    else if (step.kind === 'restore') await this.#restore(step.index)
    else await this.#remove(step)
  }

  /** Every checkpoint that no cap which is still in force may have dropped gives the bytes that the agent remembers. */
  check(): number {
    let checked = 0
    const sessions = new Map(this.#store.inventory().sessions.map((ref) => [ref.id, ref]))
    for (const known of this.known) {
      const { agent, runs } = known
      const ref = sessions.get(agent.session)
      expect(ref !== undefined, `session ${agent.session} is there`).toBe(this.isThere(known))
      if (ref === undefined) continue
      const { history, damaged } = this.#store.read(ref, { now })
      expect(damaged).toBe(false)
      const firsts = agent.checkpoints.flatMap((id) => [...agent.records(id).values()]).filter((record) => record.version === 1 && record.backupFileName !== null)
      for (const { backupFileName } of firsts) expect(existsSync(join(this.root, 'file-history', agent.session, backupFileName ?? ''))).toBe(true)
      const newest = Math.min(...runs.map(({ max }) => max ?? 0), agent.checkpoints.length)
      for (const id of agent.checkpoints.slice(-newest)) {
        const checkpoint = history.checkpoints.find((each) => each.id === id)
        if (checkpoint === undefined) throw new Error(`no checkpoint ${id}`)
        const resolved = new Map([...resolve(history, checkpoint)].map(([path, one]) => [join(agent.project, path), one]))
        for (const [path, expected] of agent.expected(id)) {
          const got = resolved.get(path)
          checked += 1
          if (expected.state === 'absent') expect(got?.state).toBe('absent')
          else {
            const backup = join(this.root, 'file-history', agent.session, got?.state === 'backup' ? got.name : 'none')
            expect(readFileSync(backup)).toEqual(expected.bytes)
            expect(statSync(backup).mode & 0o7777).toBe(expected.mode)
          }
        }
      }
    }
    return checked
  }

  #fork(index: number): void {
    const source = this.known[index % this.known.length]
    if (source === undefined || !this.isThere(source) || source.runs.length > 0) return
    this.#forks += 1
    this.known.push({ agent: source.agent.fork(uuidOf(`removal/fork/${String(this.#forks)}`)), project: source.project, runs: [] })
  }

  /** Takes back the newest run of one session, with all others that the same run took something from, if it is their newest too. */
  async #restore(index: number): Promise<void> {
    const id = this.known[index % this.known.length]?.runs.at(-1)?.id
    const touched = this.known.filter(({ runs }) => runs.some((run) => run.id === id))
    if (id === undefined || touched.some(({ runs }) => runs.at(-1)?.id !== id)) return
    await restore(this.#store, id)
    for (const { runs } of touched) runs.pop()
  }

  async #remove(step: RemovalCommand): Promise<void> {
    const removal = this.#plan(step)
    if (removal === undefined) return
    const result = await carry(this.#store, removal)
    expect(result.errors).toEqual([])
    expect(result.done).toHaveLength(removal.plan.actions.length)
    for (const action of removal.plan.actions) {
      const known = this.known.find(({ agent }) => agent.session === action.session)
      if (known === undefined) throw new Error(`a session that nobody made was removed: ${String(action.session)}`)
      expect(this.isThere(known)).toBe(true)
      if (step.kind === 'purge') expect(known.project).toBe(step.project)
      if (step.kind === 'expire') expect(now - known.agent.clock.now).toBeGreaterThan(step.days * dayMs)
      known.runs.push({ id: result.runId, ...(step.kind === 'cap' ? { max: step.max } : {}) })
    }
    if (step.kind === 'purge') for (const known of this.known) expect(known.project === step.project && this.isThere(known)).toBe(false)
  }

  #plan(step: RemovalCommand): Removal | undefined {
    const context = { now, machine: machineWith() }
    if (step.kind === 'cap') return planCap(this.#store, { max: step.max, quietPeriodMs: 0 }, context)
    if (step.kind === 'expire') return planExpire(this.#store, expireOptions({ olderThanMs: step.days * dayMs, floorMs: 0, quietPeriodMs: 0 }), context)
    try {
      const projects = [this.projects[step.project] ?? '']
      return planPurge(this.#store, { projects, quietPeriodMs: 0 }, { ...context, cwd: '/', home: join(this.root, '..'), probe: pathProbe })
    } catch (error) {
      if (error instanceof NoMatchError) return undefined
      throw error
    }
  }
}

describe('any sequence of cap, expire, purge, fork and restore', () => {
  it('keeps the bytes of every checkpoint that was kept, and changes nothing outside of the store', { timeout: 300_000 }, async () => {
    let checked = 0
    await fc.assert(
      fc.asyncProperty(fc.array(sessionSpec, { minLength: 1, maxLength: 4 }), fc.array(command, { minLength: 1, maxLength: 8 }), async (specs, commands) => {
        const outside = await temporaryFolder()
        const projects = ['one', 'two'].map((name) => join(outside, name))
        for (const project of projects) mkdirSync(project)
        writeFileSync(join(outside, 'sentinel'), 'untouched')
        const scene = new Scene(await emptyRoot(), projects)
        for (const [index, spec] of specs.entries()) scene.add(spec, index)
        const before = snapshotTree(outside)
        for (const step of commands) {
          await scene.run(step)
          checked += scene.check()
        }
        expect(snapshotTree(outside)).toEqual(before)
      }),
      { numRuns: 60 },
    )
    expect(checked).toBeGreaterThan(100)
  })
})
