import { existsSync, lstatSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { dirname, join, resolve as resolvePath } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Store } from '../../src/formats/format.js'
import { resolve } from '../../src/model/resolve.js'
import { fork } from '../../src/operations/fork/fork.js'
import { SimulatedAgent, type Expected, type Generation } from '../helpers/agent.js'
import { uuidOf } from '../helpers/identity.js'
import { emptyRoot } from '../helpers/store.js'
import { sameTree, snapshotTree } from '../helpers/tree.js'
import { forkContext, now, openStore, sessionOf } from '../operations/fork/fork-context.js'

const generations: readonly Generation[] = ['G1', 'G2', 'G3', 'G4']
const files = ['a.txt', 'sub/b.txt', 'c.bin', '__proto__'] as const

type Step =
  | { readonly kind: 'prompt'; readonly late: boolean }
  | { readonly kind: 'write' | 'edit' | 'external'; readonly file: string; readonly text: string }
  | { readonly kind: 'remove'; readonly file: string }
  | { readonly kind: 'chmod'; readonly file: string; readonly mode: number }
  | { readonly kind: 'resume'; readonly generation: Generation }
  | { readonly kind: 'fork' }

const file = fc.constantFrom(...files)
const text = fc.constantFrom('one\n', 'two\nlines\n', 'three', '\u00e4\u20ac\n')
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('prompt' as const), late: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('write' as const, 'edit' as const, 'external' as const), file, text }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), file }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('chmod' as const), file, mode: fc.constantFrom(0o644, 0o755, 0o600) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('resume' as const), generation: fc.constantFrom(...generations) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('fork' as const) }) },
)

/** Plays a history and returns the agent whose session is the last one. */
function play(agent: SimulatedAgent, steps: readonly Step[]): SimulatedAgent {
  let current = agent
  let forks = 0
  current.prompt('begin')
  for (const each of steps) {
    const has = 'file' in each && existsSync(join(current.project, each.file))
    if (each.kind === 'prompt') current.prompt('go on', { late: each.late })
    else if (each.kind === 'write') current.write(each.file, each.text)
    else if (each.kind === 'external') current.external(each.file, Buffer.from(`${each.text}\u0000`))
    else if (each.kind === 'resume') current.resumeAs(each.generation)
    else if (each.kind === 'fork') {
      forks += 1
      current = current.fork(uuidOf(`fork/${String(forks)}`))
    } else if (has && each.kind === 'remove') current.remove(each.file)
    else if (has && each.kind === 'chmod') current.chmod(each.file, each.mode)
    else if (has && each.kind === 'edit') {
      const [first = ''] = readFileSync(join(current.project, each.file), 'utf8').split('\n')
      if (first !== '' && first !== each.text.trim()) current.edit(each.file, first, each.text.trim())
    }
  }
  current.end()
  return current
}

/** Absolute path to what a rewind of the session would make of it, read from its backups. */
function seen(store: Store, session: string, checkpoint: string, project: string): Map<string, Expected> {
  const { history } = store.read(sessionOf(store, session), { now })
  const found = history.checkpoints.find(({ id }) => id === checkpoint)
  if (found === undefined) throw new Error(`no checkpoint ${checkpoint} in ${session}`)
  return new Map(
    [...resolve(history, found)].map(([path, resolution]): [string, Expected] => {
      const place = resolvePath(project, path)
      if (resolution.state !== 'backup') return [place, { state: 'absent' }]
      const backup = join(store.root, store.backupFolder(session), resolution.name)
      return [place, { state: 'file', mode: statSync(backup).mode & 0o7777, bytes: readFileSync(backup) }]
    }),
  )
}

async function begin(generation: Generation): Promise<{ root: string; agent: SimulatedAgent }> {
  const root = await emptyRoot((remove) => { cleaners.push(remove) })
  const project = join(dirname(root), 'project')
  mkdirSync(project)
  return { root, agent: new SimulatedAgent({ root, project, generation }) }
}

let cleaners: (() => Promise<void>)[] = []

async function clean(): Promise<void> {
  for (const remove of cleaners) await remove()
  cleaners = []
}

const target = uuidOf('target')

describe('fork over random histories of an agent', () => {
  it('every checkpoint of the fork holds what the agent remembers, whole or cut, linked or copied, and the source is not touched', async () => {
    await fc.assert(
      fc
        .asyncProperty(fc.constantFrom(...generations), fc.array(step, { minLength: 3, maxLength: 24 }), fc.nat(), fc.constantFrom('link' as const, 'copy' as const), async (generation, steps, pick, method) => {
          const { root, agent } = await begin(generation)
          const last = play(agent, steps)
          const store = openStore(root)
          const checkpoints = last.checkpoints
          const at = checkpoints[pick % (checkpoints.length + 1)]
          const cut = at === undefined || at === checkpoints[0] ? {} : { at }
          const transcript = snapshotTree(last.transcript)
          const linksOf = (): unknown => (existsSync(last.backups) ? readdirSync(last.backups).map((name) => {
            const { mode, mtimeMs, ino, size } = lstatSync(join(last.backups, name))
            return [name, mode, mtimeMs, ino, size]
          }) : [])
          const backups = linksOf()
          const report = await fork(store, last.session, target, { method, ...cut }, forkContext())
          expect([report.exitCode, report.errors]).toEqual([0, []])
          const kept = 'at' in cut ? checkpoints.slice(0, checkpoints.indexOf(cut.at)) : checkpoints
          expect(store.read(sessionOf(store, target), { now }).history.checkpoints.map(({ id }) => id).sort()).toEqual([...kept].sort())
          for (const checkpoint of kept) expect(seen(store, target, checkpoint, last.project)).toEqual(last.expected(checkpoint))
          const folder = join(root, 'file-history', target)
          const named = store.read(sessionOf(store, target), { now }).history.references
          for (const name of existsSync(folder) ? readdirSync(folder) : []) {
            expect(named.has(name)).toBe(true)
            expect(statSync(join(folder, name)).ino === statSync(join(last.backups, name)).ino).toBe(method === 'link')
          }
          sameTree(last.transcript, transcript)
          expect(linksOf()).toEqual(backups)
          // Again, from the other side: a second run has nothing to do.
          expect(await fork(store, last.session, target, { method }, forkContext())).toMatchObject({ exitCode: 0, extra: { linked: 0, copied: 0 } })
        }),
      { numRuns: 60, plugins: [fc.afterEach(clean)] },
    )
  })

  it('any backups lost from the fork come back with the next run', async () => {
    await fc.assert(
      fc
        .asyncProperty(fc.constantFrom(...generations), fc.array(step, { minLength: 3, maxLength: 16 }), fc.infiniteStream(fc.boolean()), async (generation, steps, dice) => {
          const { root, agent } = await begin(generation)
          const last = play(agent, steps)
          const store = openStore(root)
          await fork(store, last.session, target, {}, forkContext())
          const folder = join(root, 'file-history', target)
          const lost = (existsSync(folder) ? readdirSync(folder) : []).filter(() => dice.next().value === true)
          for (const name of lost) rmSync(join(folder, name))
          expect(await fork(store, last.session, target, {}, forkContext())).toMatchObject({ exitCode: 0, extra: { linked: lost.length } })
          for (const checkpoint of last.checkpoints) expect(seen(store, target, checkpoint, last.project)).toEqual(last.expected(checkpoint))
        }),
      { numRuns: 25, plugins: [fc.afterEach(clean)] },
    )
  })
})
