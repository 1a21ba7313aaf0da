import { cpSync, existsSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDshRewind } from '../../src/formats/dsh-rewind/index.js'
import type { Store } from '../../src/formats/format.js'
import { mergeRoots } from '../../src/operations/migrate/merge-roots.js'
import { migrate } from '../../src/operations/migrate/migrate.js'
import { resolutionsOf, type Resolutions } from '../../src/operations/migrate/resolutions.js'
import { repairJournals } from '../../src/operations/repair/journals.js'
import { recoverRuns } from '../../src/plan/recover.js'
import { ageAll, dshSession, DshStore } from '../helpers/dsh.js'
import { extractDshLog } from '../helpers/dsh-corpus.js'
import { machineWith } from '../helpers/removal.js'
import { temporaryFolder } from '../helpers/temp.js'
import { snapshotTree, withoutTimes } from '../helpers/tree.js'
import { killedAt, withoutFlushing } from './dying-disk.js'

const now = Date.parse('2027-06-01T12:00:00Z')
const old = Date.parse('2026-10-01T12:00:00Z')
const machine = machineWith()
const session = { id: dshSession, members: [] }

let flushAgain: () => void
beforeAll(() => { flushAgain = withoutFlushing() })
afterAll(() => { flushAgain() })

/** The world is laid anew for each cut, at the same place, since records name absolute paths. */
class World {
  readonly #master: string
  readonly home: string

  private constructor(master: string, home: string) {
    this.#master = master
    this.home = home
  }

  static async made(arrange: (home: string) => void): Promise<World> {
    const folder = await temporaryFolder()
    const home = join(folder, 'home')
    arrange(home)
    ageAll(home, old)
    cpSync(home, join(folder, 'master'), { recursive: true, preserveTimestamps: true })
    return new World(join(folder, 'master'), home)
  }

  lay(): void {
    rmSync(this.home, { recursive: true })
    cpSync(this.#master, this.home, { recursive: true, preserveTimestamps: true })
  }

  store(name = '.dsh'): Store {
    return openDshRewind(join(this.home, name, 'rewind-snapshots'), { home: this.home, env: { DSH_HOME: join(this.home, 'new') }, platform: 'linux' })
  }
}

function readAs(store: Store): Resolutions {
  return resolutionsOf(store, store.read(session, { now }))
}

/** The agent's files, without our own folder and without times. */
function filesOf(folder: string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(withoutTimes(snapshotTree(folder))).filter(([path]) => !path.includes('.rewind-admin')))
}

/** Every cut of a run, from the first act to the last; `token` is new for each run, as it is in life. */
async function everyCut(world: World, run: (token: string) => Promise<unknown>, after: (name: string, token: string) => Promise<void>): Promise<number> {
  world.lay()
  const { acts } = await killedAt(Number.POSITIVE_INFINITY, () => run('aaaa00000000'))
  expect(acts).toBeGreaterThan(15)
  for (let at = 1; at <= acts; at += 1) {
    world.lay()
    const end = await killedAt(at, () => run('aaaa00000000'))
    expect(end.killed, `act ${String(at)}`).toBe(true)
    await after(`act ${String(at)} of ${String(acts)}`, 'bbbb00000000')
  }
  return acts
}

async function recovered(...stores: readonly Store[]): Promise<void> {
  for (const store of stores) expect((await recoverRuns(store, { now })).flatMap(({ errors }) => errors)).toEqual([])
}

describe('a dsh-rewind migration that is killed (promise 6)', () => {
  function textStore(home: string): void {
    const store = new DshStore(join(home, '.dsh'))
    const first = store.text({ anchor: 1, call: 'a', file: '/p/a', before: 'one\u00e9', time: 1 })
    store.link({ anchor: 7, call: 'c', file: '/p/a', ref: first, time: 3, era: 1 })
    const action = { path: '/p/a', action: 'restore', before: 'one', rescue: null, done: false }
    store.putJson('restore-journal-op-1.json', { version: 1, id: 'op-1', sessionId: dshSession, targetSeq: 1, startedAt: 5, state: 'running', actions: [action] })
    store.log('/p', [1, 7].map((seq) => ({ seq, text: 'go', time: old })))
  }

  it('reads the same at every step, and the next run finishes', async () => {
    const world = await World.made(textStore)
    const store = (): Store => world.store()
    const run = (token: string): Promise<unknown> => migrate(store(), { apply: true, quietPeriodMs: 0 }, { now, machine, token })
    const before = readAs(store())
    const journals = store().interruptedRestores?.(session).map(({ id, state, damaged }) => ({ id, state, damaged }))
    await run('cccc00000000')
    const whole = filesOf(world.home)
    const acts = await everyCut(world, run, async (name, token) => {
      expect(readAs(store()), name).toEqual(before)
      expect(store().interruptedRestores?.(session).map(({ id, state, damaged }) => ({ id, state, damaged })), name).toEqual(journals)
      await recovered(store())
      expect(readAs(store()), name).toEqual(before)
      expect(await run(token), name).toMatchObject({ errors: [], kept: [] })
      expect(filesOf(world.home), name).toEqual(whole)
    })
    expect(acts).toBeGreaterThan(40)
  })

  it('a merge of two roots: each root means what it meant or what both mean together, and the next run finishes', async () => {
    const world = await World.made((home) => {
      const from = new DshStore(join(home, '.dsh'))
      const first = from.bytes({ anchor: 1, call: 'a', file: '/p/a', before: 'one', time: 1 })
      from.link({ anchor: 13, call: 'c', file: '/p/a', ref: first, time: 3 })
      const to = new DshStore(join(home, 'new'))
      to.bytes({ anchor: 19, call: 'd', file: '/p/a', before: 'later', time: 9 })
    })
    const run = (token: string): Promise<unknown> => mergeRoots(world.store('new'), world.store(), { apply: true, quietPeriodMs: 0 }, { now, machine, token })
    const [here, there] = [readAs(world.store('new')), readAs(world.store())]
    await run('cccc00000000')
    const together = readAs(world.store('new'))
    const whole = filesOf(world.home)
    await everyCut(world, run, async (name, token) => {
      for (const [checkpoint, paths] of readAs(world.store('new'))) {
        for (const [path, word] of paths) {
          const expected = [together.get(checkpoint)?.get(path), here.get(checkpoint)?.get(path) ?? here.get('19')?.get(path)]
          expect(expected, `${name} @${checkpoint}`).toContain(word)
        }
      }
      const left = world.store().inventory().sessions.length > 0
      if (left) expect(readAs(world.store()), name).toEqual(there)
      await recovered(world.store('new'), world.store())
      expect(await run(token), name).toMatchObject({ errors: [], kept: [] })
      expect(readAs(world.store('new')), name).toEqual(together)
      expect(filesOf(world.home), name).toEqual(whole)
    })
  })

  it('a repair of markers in a log: there is always a whole log, the old one or the new one, and the next run finishes', async () => {
    const { home: made } = await extractDshLog('b-ghost-frame', 'session.jsonl.zstd')
    const world = await World.made((home) => { cpSync(made, join(home, '.dsh'), { recursive: true }) })
    const run = (token: string): Promise<unknown> => migrate(world.store(), { apply: true, quietPeriodMs: 0 }, { now, machine, token })
    const sessions = (): Record<string, unknown> => filesOf(join(world.home, '.dsh', 'sessions'))
    const before = sessions()
    await run('cccc00000000')
    const whole = sessions()
    await everyCut(world, run, async (name, token) => {
      expect([before, whole], name).toContainEqual(sessions())
      await recovered(world.store())
      expect(await run(token), name).toMatchObject({ errors: [], kept: [] })
      expect(sessions(), name).toEqual(whole)
    })
  })
})

describe('repair --journals that is killed (promise 6)', () => {
  /** A restore of three files that was cut off after the first: the target is "new", before it was "old". */
  function cutRestore(home: string): void {
    const store = new DshStore(join(home, '.dsh'))
    const blob = (call: string): string => {
      const record = store.bytes({ anchor: 1, call, file: join(home, 'p', call), before: `new ${call}`, time: 1 })
      return record.replace(/\.json$/, '.before')
    }
    const place = (name: string, text: string): string => {
      store.put(`../../../p/${name}`, text)
      return join(home, 'p', name)
    }
    const rescue = (index: number, text: string): { blob: string } => {
      store.put(`rescue/op-1/${String(index)}.before`, text)
      return { blob: `rescue/op-1/${String(index)}.before` }
    }
    const actions = [
      { path: place('a', 'new a'), action: 'restore', before: { blob: blob('a') }, rescue: rescue(0, 'old a'), done: true },
      { path: place('b', 'old b'), action: 'restore', before: { blob: blob('b') }, rescue: rescue(1, 'old b'), done: false },
      { path: place('c', 'old c'), action: 'delete', before: null, rescue: rescue(2, 'old c'), done: false },
      { path: place('d', 'new d'), action: 'restore', before: { blob: blob('d') }, rescue: null, done: true },
    ]
    store.putJson('journal-op-1.json', { version: 2, id: 'op-1', sessionId: dshSession, targetSeq: 1, startedAt: 5, state: 'running', actions })
  }

  const treeOf = (home: string): Record<string, string> =>
    Object.fromEntries(readdirSync(join(home, 'p')).filter((name) => !name.includes('rewind-admin')).map((name) => [name, readFileSync(join(home, 'p', name), 'utf8')]))

  it.each([
    ['finishes', false, 'completed', { a: 'new a', b: 'new b', d: 'new d' }],
    ['rolls back', true, 'rolled-back', { a: 'old a', b: 'old b', c: 'old c' }],
  ] as const)('while it %s: no file is ever half, the store reads the same, and the next run ends it', async (_, rollBack, state, wanted) => {
    const world = await World.made(cutRestore)
    const run = (token: string): Promise<unknown> =>
      repairJournals(world.store(), { apply: true, quietMs: 0, rollBack }, { now, machine, token, home: world.home, windows: false })
    const before = readAs(world.store())
    const start = treeOf(world.home)
    await everyCut(world, run, async (name, token) => {
      expect(readAs(world.store()), name).toEqual(before)
      for (const [file, text] of Object.entries(treeOf(world.home))) expect([start[file], (wanted as Record<string, string>)[file]], `${name} ${file}`).toContain(text)
      for (const file of Object.keys(start).filter((each) => each in wanted)) expect(existsSync(join(world.home, 'p', file)), `${name} ${file}`).toBe(true)
      await recovered(world.store())
      expect(await run(token), name).toMatchObject({ errors: [], kept: [], exitCode: 0 })
      expect(treeOf(world.home), name).toEqual(wanted)
      expect(readdirSync(join(world.home, 'p')), name).toEqual(Object.keys(wanted))
      expect(JSON.parse(readFileSync(join(world.store().root, dshSession, 'journal-op-1.json'), 'utf8')), name).toMatchObject({ state })
      expect(readAs(world.store()), name).toEqual(before)
    })
  })
})
