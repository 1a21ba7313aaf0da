import { basename, dirname, join } from 'node:path'
import { sameContent, sameText } from '../../fs/content.js'
import { nodeAt, WorkingTree } from '../../fs/working-tree.js'
import { systemErrorCode } from '../../model/errors.js'
import type { Resolution } from '../../model/resolve.js'
import {
  decide,
  defaultRestoreRules,
  isAlike,
  obstacle,
  type BackupState,
  type Decision,
  type Observation,
  type ParentState,
  type PlannedPath,
  type RestoreRules,
  type TargetNode,
  type Wanted,
} from '../../model/restore-plan.js'
import { isBelow, linkFence } from '../../model/tracked-path.js'
import type { BackupSource } from './backup-source.js'

export interface PlannerContext {
  /** The session's start folder, as recorded. */
  readonly start: string | undefined
  readonly home: string
  readonly windows: boolean
  /** Folders that are never a target. */
  readonly fenced: readonly string[]
  /** Where backups are; `undefined` when there are none. */
  readonly source: BackupSource | undefined
  readonly rules?: RestoreRules
  readonly backupOf: (resolution: Resolution & { readonly state: 'backup' }) => BackupState
  /** Folders that an undone rewind made: they give way to the file that was there before. */
  readonly yielding?: ReadonlySet<string>
}

/** Looks at paths one by one and says what a restore does to each. One planner serves one plan. */
export class PathPlanner {
  readonly #context: PlannerContext
  readonly #rules: RestoreRules
  readonly #tree = new WorkingTree()

  constructor(context: PlannerContext) {
    this.#context = context
    this.#rules = context.rules ?? defaultRestoreRules
  }

  /** Plans every path, then brings together those that are one file, and those that stand in each other's way. */
  planAll(wanted: readonly Wanted[]): PlannedPath[] {
    const items = wanted.map((each) => this.plan(each))
    const gone = new Set(items.filter((item) => item.decision.action === 'delete').map((item) => item.path))
    const settled = items.map((item, index) => {
      const each = wanted[index]
      return each === undefined || gone.size === 0 ? item : this.#planBehind(each, item, gone)
    })
    return oneOfEach(settled)
  }

  plan({ path, keys, resolution }: Wanted): PlannedPath {
    if (resolution.state === 'unknown') return { path, keys, decision: decide(resolution, unseen), node: unseen.node, late: false }
    const found = nodeAt(path)
    const yields = found.kind === 'folder' && this.#context.yielding?.has(path) === true
    const node: TargetNode = yields ? { kind: 'absent' } : found
    const item = this.#judge({ path, keys, resolution }, node, this.#parentOf(path, resolution))
    return yields ? { ...item, late: true } : item
  }

  #parentOf(path: string, resolution: Resolution): ParentState {
    const { start, home, windows } = this.#context
    const recorded = resolution.state === 'unknown' ? undefined : resolution.record.parent
    return this.#tree.parentOf(path, recorded === undefined ? linkFence(path, start, home, windows) : undefined)
  }

  /** A file that stands where a folder should be is no obstacle when this very plan deletes it. */
  #planBehind(wanted: Wanted, item: PlannedPath, gone: ReadonlySet<string>): PlannedPath {
    if (wanted.resolution.state !== 'backup') return item
    const { blockedBy, ...parent } = this.#parentOf(wanted.path, wanted.resolution)
    if (blockedBy === undefined || !gone.has(blockedBy)) return item
    return { ...this.#judge(wanted, { kind: 'absent' }, parent), late: true }
  }

  #judge({ path, keys, resolution }: Wanted, node: TargetNode, parent: ParentState): PlannedPath {
    const { real, missing } = parent
    const place = real === undefined ? undefined : { folder: real, missing, name: basename(path) }
    const seen: Observation = { node, parent, ...this.#fenceAround(place === undefined ? path : join(place.folder, place.name)) }
    const decision = obstacle(resolution, seen, this.#rules) ?? this.#decide(resolution, seen, join(real ?? dirname(path), basename(path)))
    return { path, keys, decision, node, late: false, ...(place === undefined ? {} : { place }) }
  }

  #fenceAround(path: string): { fenced?: string } {
    const folder = this.#context.fenced.find((each) => isBelow(path, each, this.#context.windows))
    return folder === undefined ? {} : { fenced: `it lies in ${folder}, which is never written by a rewind` }
  }

  #decide(resolution: Resolution, seen: Observation, real: string): Decision {
    if (resolution.state !== 'backup') return decide(resolution, seen, this.#rules)
    const backup = this.#context.backupOf(resolution)
    const { source } = this.#context
    const lossy = resolution.record.lossy === true && seen.node.kind === 'file'
    if (backup.kind !== 'file' || source === undefined || !(lossy || isAlike(seen.node, backup, this.#rules))) {
      return decide(resolution, { ...seen, backup }, this.#rules)
    }
    try {
      const at = source.at(resolution.name)
      const equal = lossy ? sameText(real, at, backup) : sameContent(real, at, backup)
      return decide(resolution, { ...seen, backup, equal }, this.#rules)
    } catch (error) {
      return { action: 'fail', reason: `it cannot be compared with its backup (${systemErrorCode(error) ?? 'unknown error'})` }
    }
  }
}

const unseen: Observation = { node: { kind: 'absent' }, parent: { missing: 0 } }

/** Two paths that lead to one file through a link are one path; when they disagree nobody guesses. */
function oneOfEach(items: readonly PlannedPath[]): PlannedPath[] {
  const byPlace = new Map<string, PlannedPath>()
  for (const item of items) {
    // What is left alone stands in nobody's way.
    const isLeft = item.decision.action === 'skip' || item.decision.action === 'unknown'
    const place = item.place === undefined || isLeft ? `\0${item.path}` : join(item.place.folder, item.place.name)
    const other = byPlace.get(place)
    if (other === undefined) {
      byPlace.set(place, item)
      continue
    }
    const keys = [...other.keys, ...item.keys]
    const agree = isSame(other.decision, item.decision)
    const decision: Decision = { action: 'unknown', reason: `the records of ${keys.join(' and ')} disagree about this file` }
    byPlace.set(place, agree ? { ...other, keys } : { ...other, keys, decision })
  }
  return [...byPlace.values()]
}

function isSame(a: Decision, b: Decision): boolean {
  if (a.action === 'restore' && b.action === 'restore') return a.backup === b.backup && a.offset === b.offset
  return a.action === b.action
}
