import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { FormatId } from '../../src/model/session.js'
import { verify } from '../../src/operations/verify/verify.js'
import { redo, rewind, type RewindContext } from '../../src/operations/rewind.js'
import { TestClock } from '../helpers/identity.js'
import { temporaryFolder } from '../helpers/temp.js'
import { put, writers } from '../helpers/writers.js'
import { machine } from '../operations/repair/repair-context.js'
import { sessionOf } from '../operations/fork/fork-context.js'

let base = ''
beforeAll(async () => { base = await temporaryFolder(afterAll) })

const path = fc.constantFrom('a.txt', 'run.sh', 'deep/er/ünï cöde 🌲.txt', 'deep/c d.bin', '__proto__', '-dash', 'back\\slash', 'new\nline')
const bytes = fc.oneof(
  fc.constantFrom('', 'one\n', 'two\n', 'one\r\n').map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 24 }).map((array) => Buffer.from(array)),
  fc.constantFrom(Buffer.from([0xff, 0xfe, 0]), Buffer.from([0xfe, 0xff, 0])),
)

type Step =
  | { readonly kind: 'prompt' }
  | { readonly kind: 'edit' | 'outside'; readonly path: string; readonly bytes: Buffer }
  | { readonly kind: 'remove'; readonly path: string }
  | { readonly kind: 'chmod'; readonly path: string; readonly mode: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ kind: 'prompt' as const }) },
  { weight: 7, arbitrary: fc.record({ kind: fc.constant('edit' as const), path, bytes }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('outside' as const), path, bytes }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), path }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('chmod' as const), path, mode: fc.constantFrom(0o755, 0o644, 0o600, 0o444) }) },
)

interface File {
  readonly bytes: Buffer
  readonly mode: number
}

type Files = ReadonlyMap<string, File>

/** What a format keeps of one path at one moment. `undefined`: there was no file. */
type State = File | undefined

/** What each format remembers of a history, by the resolve rule of its page; it never looks at a disk. */
interface Memory {
  prompt(tree: Files): void
  /** Just before a tool changes a path. */
  edit(tree: Files, path: string): void
  /** Tracked path to what a rewind to the prompt of this number makes of it. */
  at(prompt: number, live: Files): Map<string, State>
}

/**
 * claude-code, qwen-code and pi-candy-undo: a snapshot of every tracked file at each prompt; of a path that it does not have, the
 * state before its first edit.
 * @param modesCount false where a change of the mode alone is not captured (formats/pi-candy-undo section 4)
 */
function snapshots(modesCount: boolean): Memory {
  const firsts = new Map<string, State>()
  const known = new Map<string, State>()
  const taken: Map<string, State>[] = []
  const capture = (tree: Files, path: string): State => {
    const [before, now] = [known.get(path), tree.get(path)]
    const isSame = !modesCount && before !== undefined && now?.bytes.equals(before.bytes) === true
    const state = isSame ? before : now
    known.set(path, state)
    return state
  }
  return {
    prompt: (tree) => { taken.push(new Map([...firsts.keys()].map((path) => [path, capture(tree, path)]))) },
    edit: (tree, path) => { if (!firsts.has(path)) firsts.set(path, capture(tree, path)) },
    at: (prompt) => new Map([...firsts].map(([path, first]) => [path, taken[prompt]?.has(path) === true ? taken[prompt].get(path) : first])),
  }
}

interface DshRecord {
  readonly turn: number
  readonly path: string
  readonly state: State
  /** The record says the mode, not only the bits of its side file. */
  readonly saysMode: boolean
}

/** dsh-rewind: the earliest record at or after the target; a mode alone is no change, and only some records say one (section 3). */
function records(): Memory {
  const all: DshRecord[] = []
  let turn = -1
  const lastOf = (path: string): DshRecord | undefined => all.findLast((record) => record.path === path)
  const isLast = (path: string, now: State): boolean => {
    const last = lastOf(path)
    if (last === undefined) return false
    return last.state === undefined || now === undefined ? last.state === now : last.state.bytes.equals(now.bytes)
  }
  return {
    prompt: (tree) => {
      turn += 1
      for (const path of new Set(all.map((record) => record.path))) {
        const now = tree.get(path)
        if (now === undefined || !isLast(path, now)) all.push({ turn, path, state: now, saysMode: false })
      }
    },
    edit: (tree, path) => {
      const now = tree.get(path)
      // A link leads to the bytes, and the bits, of the record before.
      all.push(isLast(path, now) ? { turn, path, state: lastOf(path)?.state, saysMode: false } : { turn, path, state: now, saysMode: true })
    },
    at: (prompt, live) => {
      const wanted = new Map<string, State>()
      for (const { turn: of, path, state, saysMode } of all) {
        if (of < prompt || wanted.has(path)) continue
        const now = live.get(path)
        const keepsMode = now !== undefined && (state === undefined || now.bytes.equals(state.bytes) || (!saysMode && (now.mode & 0o200) === 0))
        wanted.set(path, state === undefined || !keepsMode ? state : { ...state, mode: now.mode })
      }
      return wanted
    },
  }
}

const memories: Readonly<Record<FormatId, () => Memory>> = {
  'claude-code': () => snapshots(true),
  'qwen-code': () => snapshots(true),
  'pi-candy-undo': () => snapshots(false),
  'dsh-rewind': records,
}

function isSame(a: State, b: State): boolean {
  return a === undefined || b === undefined ? a === b : a.mode === b.mode && a.bytes.equals(b.bytes)
}

/** Every file of a folder, by its relative path. */
function filesIn(folder: string): Map<string, File> {
  const all = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return new Map(
    all.map((entry): [string, File] => {
      const file = join(entry.parentPath, entry.name)
      return [file.slice(folder.length + 1), { bytes: readFileSync(file), mode: statSync(file).mode & 0o7777 }]
    }).sort(([a], [b]) => (a < b ? -1 : 1)),
  )
}

function sorted(files: ReadonlyMap<string, File>): Map<string, File> {
  return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)))
}

class World {
  readonly home = mkdtempSync(join(base, 'home-'))
  readonly project = join(this.home, 'project')
  readonly clock = new TestClock()
  readonly tree = new Map<string, File>()
  readonly prompts: string[] = []
  readonly memory: Memory
  readonly writer
  #made = 0

  constructor(format: FormatId) {
    mkdirSync(this.project)
    this.writer = writers[format](this.home, this.clock)
    this.memory = memories[format]()
  }

  take(each: Step): void {
    const { tree, project, memory, writer } = this
    if (each.kind === 'prompt') {
      memory.prompt(tree)
      this.prompts.push(writer.prompt())
      return
    }
    const [before, file] = [tree.get(each.path), join(project, each.path)]
    if ('bytes' in each) {
      if (each.kind === 'edit') {
        memory.edit(tree, each.path)
        writer.edit(each.path, each.bytes)
      } else put(file, each.bytes)
      tree.set(each.path, { bytes: each.bytes, mode: before?.mode ?? 0o644 })
    } else if (before === undefined) return
    else if (each.kind === 'remove') {
      rmSync(file)
      tree.delete(each.path)
    } else {
      chmodSync(file, each.mode)
      tree.set(each.path, { ...before, mode: each.mode })
    }
  }

  /** Rewinds to every prompt and back, and says how many files were changed by that. */
  async rewindAll(): Promise<number> {
    const { store, session } = this.writer.end()
    const now = sorted(this.tree)
    expect(filesIn(this.project)).toEqual(now)
    const report = await verify([store], {}, { now: this.clock.now, machine, random: () => 0, threads: 0 })
    expect(report.findings.filter(({ severity }) => severity === 'error')).toEqual([])
    let changed = 0
    for (const [number, word] of this.prompts.entries()) {
      const wanted = this.memory.at(number, now)
      const go = (apply: boolean): ReturnType<typeof rewind> =>
        rewind(store, sessionOf(store, session), word, { scope: 'code', apply, newId: '' }, this.#context())
      const differing = [...wanted].filter(([file, state]) => !isSame(state, now.get(file))).map(([file]) => join(this.project, file)).sort()
      const preview = await go(false)
      expect(filesIn(this.project)).toEqual(now)
      const done = await go(true)
      expect(done).toMatchObject({ exitCode: 0, errors: [], summary: { changes: differing.length, skipped: 0, failed: 0 } })
      expect(preview.extra).toEqual(done.extra)
      expect((done.extra as { changes: { path: string }[] }).changes.map((change) => change.path).sort()).toEqual(differing)
      const after = new Map(now)
      for (const [file, state] of wanted) if (state === undefined) after.delete(file); else after.set(file, state)
      expect(filesIn(this.project)).toEqual(sorted(after))

      expect(await go(true)).toMatchObject({ exitCode: 0, summary: { changes: 0 } })
      expect(filesIn(this.project)).toEqual(sorted(after))
      if (differing.length === 0) continue
      expect(redo(store, sessionOf(store, session), { apply: true }, this.#context())).toMatchObject({ exitCode: 0, errors: [], summary: { failed: 0, skipped: 0 } })
      expect(filesIn(this.project)).toEqual(now)
      changed += differing.length
    }
    return changed
  }

  #context(): RewindContext {
    this.clock.tick(2000)
    this.#made += 1
    return { now: this.clock.now, pid: process.pid, token: `c0ffee${String(this.#made)}`, processExists: () => true, home: this.home, windows: false }
  }
}

it.each<FormatId>(['claude-code', 'pi-candy-undo', 'dsh-rewind', 'qwen-code'])(
  '%s: one history, written as the agent writes it, rewinds to every prompt as the rule of the format says; twice is once, a preview is what is done, and redo undoes it',
  async (format) => {
    let changed = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 18 }), path, bytes, async (steps, first, content) => {
        const world = new World(format)
        try {
          for (const each of [{ kind: 'prompt' as const }, { kind: 'edit' as const, path: first, bytes: content }, ...steps]) world.take(each)
          changed += await world.rewindAll()
        } finally {
          rmSync(world.home, { recursive: true, force: true })
        }
      }),
      { numRuns: 20 },
    )
    expect(changed).toBeGreaterThan(50)
  },
)
