import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Report } from '../../../src/model/report.js'
import { SimulatedAgent, type Generation } from '../../helpers/agent.js'
import { emptyRoot } from '../../helpers/store.js'
import { check, found } from './verifying.js'

export interface GoodStore {
  readonly root: string
  readonly agent: SimulatedAgent
  readonly session: string
  /** Versions 1 and 2 of `a.txt`: the first is proven for certain, the second strongly. */
  readonly first: string
  readonly second: string
  /** The last version of `a.txt`: proven weakly, since no edit follows. */
  readonly last: string
  /** Version 1 of `empty.txt`: no bytes, and right so. */
  readonly empty: string
  readonly report: Report
}

/** Texts of `a.txt`, oldest first; edits by the agent alone. */
const texts = ['north wind\n', 'ten swans\n', 'two owls\n', 'no birds\n']

/** A store with one session of four prompts and nothing wrong with it. */
export async function goodStore(generation: Generation = 'G4'): Promise<GoodStore> {
  const root = await emptyRoot()
  const project = join(root, '..', 'project')
  mkdirSync(project)
  writeFileSync(join(project, 'a.txt'), texts[0] ?? '')
  writeFileSync(join(project, 'empty.txt'), '')
  const agent = new SimulatedAgent({ root, project, generation })
  for (const [index, text] of texts.slice(1).entries()) {
    agent.prompt(`turn ${String(index + 1)}`)
    agent.write('a.txt', text)
    if (index === 0) agent.write('empty.txt', 'filled\n')
    if (index === 1) agent.write('new.txt', 'new\n')
  }
  agent.prompt('last')
  agent.end()
  const report = await check(root)
  expect(found(report)).toEqual([])
  const name = (version: number): string => agent.backupName('a.txt', version)
  return { root, agent, session: agent.session, first: name(1), second: name(2), last: name(4), empty: agent.backupName('empty.txt', 1), report }
}

/** A session with so many prompts, each after an edit of `a.txt`. */
export async function longStore(prompts: number, generation: Generation): Promise<SimulatedAgent> {
  const root = await emptyRoot()
  const project = join(root, '..', 'project')
  mkdirSync(project)
  writeFileSync(join(project, 'a.txt'), 'zero\n')
  const agent = new SimulatedAgent({ root, project, generation })
  for (let index = 1; index <= prompts; index += 1) {
    agent.prompt('on')
    agent.write('a.txt', `text ${String(index)}\n`)
  }
  agent.end()
  return agent
}

/** Paths of a backup and of the transcript, relative to the root. */
export const backupPath = ({ session }: GoodStore, name: string): string => `file-history/${session}/${name}`
export const transcriptPath = ({ agent, session }: GoodStore): string => `projects/${agent.slug}/${session}.jsonl`
