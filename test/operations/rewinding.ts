import { mkdirSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Store } from '../../src/formats/format.js'
import type { Report } from '../../src/model/report.js'
import { redo, rewind, type RewindContext, type RewindOptions } from '../../src/operations/rewind.js'
import { SimulatedAgent, type Generation } from '../helpers/agent.js'
import { emptyRoot } from '../helpers/store.js'
import { snapshotTree, withoutTimes } from '../helpers/tree.js'
import { openStore, sessionOf, target } from './fork/fork-context.js'

/** A home with a project, and an agent that worked in it. */
export interface Life {
  readonly home: string
  readonly root: string
  readonly project: string
  readonly agent: SimulatedAgent
  readonly store: Store
}

export async function life(generation: Generation = 'G4'): Promise<Life> {
  const root = await emptyRoot()
  const home = dirname(root)
  const project = join(home, 'project')
  mkdirSync(project)
  return { home, root, project, agent: new SimulatedAgent({ root, project, generation }), store: openStore(root) }
}

/**
 * Three messages. `a.txt` holds one, two at the first, ONE, two at the second and third, ONE, TWO now; `sub/new.txt` is made
 * after the second message and holds n1, n2 from then on.
 */
export async function threeMessages(generation?: Generation): Promise<Life & { readonly first: string; readonly second: string; readonly third: string }> {
  const made = await life(generation)
  const { agent } = made
  agent.external('a.txt', 'one\ntwo\n')
  const first = agent.prompt('make it loud')
  agent.edit('a.txt', 'one', 'ONE')
  const second = agent.prompt('make a list')
  agent.write('sub/new.txt', 'n1\nn2\n')
  const third = agent.prompt('louder')
  agent.edit('a.txt', 'two', 'TWO')
  agent.end()
  return { ...made, first, second, third }
}

export function contextOf({ home, agent }: Life, more: Partial<RewindContext> = {}): RewindContext {
  return { now: agent.clock.now + 1000, pid: process.pid, token: 'c0ffee', processExists: () => true, home, windows: false, ...more }
}

export function rewindTo(made: Life, message: string, options: Partial<RewindOptions> = {}, more: Partial<RewindContext> = {}): Promise<Report> {
  const all = { scope: 'both', apply: true, newId: target, ...options } as const
  return rewind(made.store, sessionOf(made.store, made.agent.session), message, all, contextOf(made, more))
}

export function redoIn(made: Life, options: Parameters<typeof redo>[2] = { apply: true }): Report {
  return redo(made.store, sessionOf(made.store, made.agent.session), options, contextOf(made))
}

/** The project without what even a careful copy changes. */
export function projectOf({ project }: Life): Record<string, unknown> {
  return withoutTimes(snapshotTree(project))
}

/** Ids of the sessions that have a transcript or backups. */
export function sessionsIn({ store }: Life): string[] {
  return store.inventory().sessions.map(({ id }) => id).sort()
}

/** Files that a run left behind where it should not. */
export function remains({ home }: Life): string[] {
  return readdirSync(home, { recursive: true, encoding: 'utf8' }).filter((name) => /(^|\/)(\.rewind-admin-|\.new-)/.test(name))
}
