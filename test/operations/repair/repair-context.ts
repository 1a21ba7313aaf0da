import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Machine, Store } from '../../../src/formats/format.js'
import type { Report } from '../../../src/model/report.js'
import type { ExecFile } from '../../../src/operations/repair/git-objects.js'
import type { RepairContext, RepairOptions } from '../../../src/operations/repair/options.js'
import { repair } from '../../../src/operations/repair/repair.js'
import { verify } from '../../../src/operations/verify/verify.js'
import { SimulatedAgent, type Generation } from '../../helpers/agent.js'
import { emptyRoot } from '../../helpers/store.js'
import { openStore } from '../fork/fork-context.js'

export const now = Date.parse('2026-12-01T00:00:00.000Z')
export const machine: Machine = { processExists: () => false, processStart: () => undefined, pidDomain: undefined }

export const runFile: ExecFile = (file, args, options) =>
  new Promise((resolve, reject) => {
    execFile(file, [...args], { ...options, encoding: 'buffer' }, (error, stdout) => {
      if (error === null) resolve(stdout)
      else reject(new Error(`${file} failed`, { cause: error }))
    })
  })

let runs = 0

export async function run(store: Store, options: RepairOptions = { apply: true }, more: Partial<RepairContext> = {}): Promise<Report> {
  runs += 1
  return repair(store, options, { now, machine, token: `abcd${runs.toString(16).padStart(4, '0')}`, ...more })
}

/** Seals every backup that nothing speaks against. */
export async function seal(store: Store): Promise<void> {
  await verify([store], { seal: true }, { now, machine, random: () => 0, threads: 0 })
}

export interface Scene {
  readonly root: string
  readonly store: Store
  readonly agent: SimulatedAgent
  readonly project: string
  /** Absolute path of a backup. */
  backup(path: string, version: number): string
}

/** A home with a project and an agent that has not begun. */
export async function scene(generation: Generation = 'G4'): Promise<Scene> {
  const root = await emptyRoot()
  const project = join(dirname(root), 'project')
  mkdirSync(project)
  const agent = new SimulatedAgent({ root, project, generation })
  return { root, store: openStore(root), agent, project, backup: (path, version) => join(agent.backups, agent.backupName(path, version)) }
}

/** `notes.txt`: version 1 is certain by the transcript, version 2 strong, version 3 was made by somebody else. */
export async function twoEdits(content: Buffer | string = 'one\ntwo\n'): Promise<Scene> {
  const made = await scene()
  const { agent } = made
  agent.external('notes.txt', content)
  agent.chmod('notes.txt', 0o640)
  agent.prompt('first')
  agent.edit('notes.txt', 'one', 'ONE')
  agent.prompt('second')
  agent.edit('notes.txt', 'two', 'TWO')
  agent.external('notes.txt', Buffer.from('by\nhand\n'))
  agent.prompt('third')
  agent.external('notes.txt', 'later\n')
  agent.prompt('fourth')
  agent.end()
  return made
}

/** What stands at a path: digest and mode. */
export function factsOf(path: string): { sha256: string; mode: string } {
  return { sha256: createHash('sha256').update(readFileSync(path)).digest('hex'), mode: (lstatSync(path).mode & 0o7777).toString(8) }
}
