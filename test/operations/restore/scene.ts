import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { openClaudeCode } from '../../../src/formats/claude-code/index.js'
import type { Store } from '../../../src/formats/format.js'
import type { Checkpoint } from '../../../src/model/history.js'
import { findCheckpoint } from '../../../src/model/resolve.js'
import type { Decision } from '../../../src/model/restore-plan.js'
import type { SessionReading } from '../../../src/model/session.js'
import { applyRestore, type ApplyOptions, type RestoreResult } from '../../../src/operations/restore/apply.js'
import { planRestore, type RestoreOptions, type RestorePlan } from '../../../src/operations/restore/plan.js'
import { snap, userLine, writeBackup, writeTranscript, S1, type RawRecord } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temp.js'

/** The checkpoint that every scene has. */
export const K = '33333333-3333-4333-8333-333333333333'
/** Later than every time in the lines. */
export const later = Date.parse('2026-11-02T09:00:00Z')

/** A home with one project, a folder beside it that nothing may touch, and a store with one session of one checkpoint. */
export interface Scene {
  readonly home: string
  readonly project: string
  readonly outside: string
  readonly root: string
  readonly store: Store
}

export async function makeScene(records: Readonly<Record<string, RawRecord>>): Promise<Scene> {
  const home = await temporaryFolder()
  const [project, outside, root] = [join(home, 'project'), join(home, 'outside'), join(home, '.claude')]
  for (const folder of [project, outside]) mkdirSync(folder)
  writeLines({ root, project }, records)
  return { home, project, outside, root, store: openClaudeCode(root, { home, env: {}, platform: 'linux' }) }
}

/** Writes the transcript: one user message, and the checkpoint before it with these records. */
export function writeLines({ root, project }: Pick<Scene, 'root' | 'project'>, records: Readonly<Record<string, RawRecord>>): void {
  writeTranscript(root, '-p', S1, [userLine(K, { cwd: project }), snap(K, records)])
}

/** A record with the folder that the file was in. */
export function inFolder(backupFileName: string | null, realParentDir: string, version = 1): RawRecord {
  return { backupFileName, version, backupTime: '2026-11-01T09:00:00.000Z', realParentDir }
}

export function backup(scene: Scene, name: string, bytes: Buffer | string, mode = 0o644): void {
  writeBackup(scene.root, S1, name, bytes, { mode })
}

export function read({ store }: Scene): { reading: SessionReading; checkpoint: Checkpoint } {
  const [ref] = store.inventory().sessions
  if (ref === undefined) throw new Error('the scene has no session')
  const reading = store.read(ref, { now: later })
  const checkpoint = findCheckpoint(reading.history, K)
  if (checkpoint === undefined) throw new Error('the scene has no checkpoint')
  return { reading, checkpoint }
}

export function plan(scene: Scene, options: Partial<RestoreOptions> = {}): RestorePlan {
  const { reading, checkpoint } = read(scene)
  return planRestore(scene.store, reading, checkpoint, { home: scene.home, ...options })
}

export function apply(scene: Scene, made: RestorePlan = plan(scene), options: Partial<ApplyOptions> = {}): RestoreResult {
  return applyRestore(made, { sidecar: scene.store.sidecar, now: later, ...options })
}

/** What a plan does to one path of the project. */
export function decisionOn(made: RestorePlan, path: string): Decision | undefined {
  return made.items.find((item) => item.path === path)?.decision
}

/** Names below a folder that our runs leave behind when they should not. */
export function leftovers(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => /\.rewind-admin-|\.new-/.test(name))
}
