import * as fc from 'fast-check'
import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openClaudeCode } from '../../src/formats/claude-code/index.js'
import type { Store } from '../../src/formats/format.js'
import { findCheckpoint } from '../../src/model/resolve.js'
import type { SessionReading } from '../../src/model/session.js'
import { applyRestore } from '../../src/operations/restore/apply.js'
import { hasAnyChanges, planRestore } from '../../src/operations/restore/plan.js'
import { applyRedo, planRedo } from '../../src/operations/restore/redo.js'
import { SimulatedAgent, type Expected, type Generation } from '../helpers/agent.js'
import { temporaryFolder } from '../helpers/temp.js'
import { snapshotTree, withoutTimes, type Tree } from '../helpers/tree.js'

let base = ''
beforeAll(async () => {
  base = await temporaryFolder((remove) => {
    afterAll(remove)
  })
})

const paths = ['a.txt', 'deep/er/b.txt', 'deep/c d.txt', '__proto__', '-dash', 'back\\slash', '../beside/ünï.txt'] as const
const untracked = ['hand.txt', 'deep/hand.txt'] as const

const path = fc.constantFrom(...paths)
const bytes = fc.oneof(
  fc.constantFrom('', 'one\n', 'two\n', 'one\r\n').map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array)),
)
const mode = fc.constantFrom(0o644, 0o755, 0o600, 0o444, 0o4711)

type Act =
  | { readonly kind: 'prompt' }
  | { readonly kind: 'write'; readonly path: string; readonly bytes: Buffer }
  | { readonly kind: 'external'; readonly path: string; readonly bytes: Buffer }
  | { readonly kind: 'remove'; readonly path: string }
  | { readonly kind: 'chmod'; readonly path: string; readonly mode: number }
  | { readonly kind: 'resume'; readonly generation: Generation }
  | { readonly kind: 'hand'; readonly path: string; readonly bytes: Buffer }
  | { readonly kind: 'rewind'; readonly at: number; readonly redo: boolean }

const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ kind: 'prompt' as const }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('write' as const), path, bytes }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('external' as const), path, bytes }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), path }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('chmod' as const), path, mode }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('resume' as const), generation: fc.constantFrom<Generation>('G2', 'G3', 'G4') }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('hand' as const), path: fc.constantFrom(...untracked), bytes }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('rewind' as const), at: fc.nat(), redo: fc.boolean() }) },
)

interface World {
  readonly home: string
  readonly project: string
  readonly agent: SimulatedAgent
  readonly store: Store
}

function makeWorld(generation: Generation): World {
  const home = mkdtempSync(join(base, 'home-'))
  const [project, root] = [join(home, 'project'), join(home, '.claude')]
  for (const folder of [project, join(home, 'beside'), root]) mkdirSync(folder)
  const agent = new SimulatedAgent({ root, project, generation })
  agent.prompt('begin')
  return { home, project, agent, store: openClaudeCode(root, { home, env: {}, platform: 'linux' }) }
}

function readSession({ store, agent }: World): SessionReading {
  const ref = store.inventory().sessions.find((session) => session.id === agent.session)
  if (ref === undefined) throw new Error('the session is not in the store')
  return store.read(ref, { now: agent.clock.now })
}

function stateOf(file: string): Expected {
  if (!existsSync(file)) return { state: 'absent' }
  return { state: 'file', mode: lstatSync(file).mode & 0o7777, bytes: readFileSync(file) }
}

/** Everything in the home but the store. */
function treeOf({ home }: World): Tree {
  return Object.fromEntries(Object.entries(snapshotTree(home)).filter(([name]) => !name.startsWith('.claude')))
}

function rewind(world: World, at: number, redo: boolean): void {
  const { agent, store, home } = world
  const id = agent.checkpoints[at % agent.checkpoints.length] ?? ''
  const expected = agent.expected(id)
  const reading = readSession(world)
  const checkpoint = findCheckpoint(reading.history, id)
  if (checkpoint === undefined) throw new Error(`checkpoint ${id} is not in the transcript`)
  const before = treeOf(world)
  const options = { home }
  const apply = { sidecar: store.sidecar, now: agent.clock.now }

  const any = hasAnyChanges(store, reading, checkpoint, options)
  const result = applyRestore(planRestore(store, reading, checkpoint, options), apply)
  expect(result).toMatchObject({ failed: [], skipped: [], exitCode: 0 })
  expect(any).toBe(result.changed.length > 0)
  for (const [file, state] of expected) expect(stateOf(file), file).toEqual(state)
  const after = treeOf(world)
  const isTracked = (name: string): boolean => expected.has(join(home, name))
  const isFolder = (name: string): boolean => after[name]?.type === 'folder'
  for (const [name, node] of Object.entries(before)) {
    if (node.type === 'folder') expect(isFolder(name), name).toBe(true)
    else if (!isTracked(name)) expect(after[name], name).toEqual(node)
  }
  for (const name of Object.keys(after)) expect(name in before || isTracked(name) || isFolder(name), name).toBe(true)

  expect(applyRestore(planRestore(store, reading, checkpoint, options), apply).changed).toEqual([])
  expect(treeOf(world)).toEqual(after)
  if (!redo || result.changed.length === 0) return
  expect(applyRedo(planRedo(store, reading), apply)).toMatchObject({ failed: [], exitCode: 0 })
  expect(withoutTimes(treeOf(world))).toEqual(withoutTimes(before))
}

type Touch = Exclude<Act, { readonly kind: 'prompt' | 'resume' | 'rewind' }>

function touch({ agent, project }: World, step: Touch): void {
  const file = join(project, step.path)
  switch (step.kind) {
    case 'write':
      agent.write(step.path, step.bytes)
      break
    case 'external':
      agent.external(step.path, step.bytes)
      break
    case 'hand':
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, step.bytes)
      break
    case 'remove':
      rmSync(file, { force: true })
      break
    case 'chmod':
      if (existsSync(file)) chmodSync(file, step.mode)
      break
  }
}

function perform(world: World, step: Act): void {
  const { agent } = world
  if (step.kind === 'prompt') agent.prompt('go on')
  else if (step.kind === 'resume') {
    // Clients are updated, not taken back.
    if (step.generation > agent.generation) agent.resumeAs(step.generation)
  } else if (step.kind === 'rewind') rewind(world, step.at, step.redo)
  else touch(world, step)
}

it.each<Generation>(['G1', 'G2', 'G3', 'G4'])(
  '%s: a rewind gives tracked files the state of that message whatever came before, and leaves all others; redo undoes it',
  (generation) => {
    fc.assert(
      fc.property(fc.array(act, { minLength: 5, maxLength: 25 }), (steps) => {
        const world = makeWorld(generation)
        try {
          for (const step of steps) perform(world, step)
          rewind(world, 0, true)
        } finally {
          rmSync(world.home, { recursive: true, force: true })
        }
      }),
      { numRuns: 40 },
    )
  },
)
