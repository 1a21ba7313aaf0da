import { isAbsolute, relative } from 'node:path'
import { AnchoredFolder } from '../../fs/anchored-folder.js'
import { eachBlockAt, type ContentAt, type Stretch } from '../../fs/content.js'
import { decodeText, lineStats, unifiedPatch, type DiffSide } from '../../model/line-diff.js'
import { isChange, type PlannedPath } from '../../model/restore-plan.js'
import { BackupSource } from './backup-source.js'
import type { RestorePlan } from './plan.js'

/** Files above this many bytes are not compared line by line. */
const largestText = 64 * 1024 * 1024
/** What a patch says of a new file whose mode nothing records. */
const newFileMode = 0o644

/** What a restore does to one file, counted in lines. */
export interface ChangeStats {
  readonly path: string
  readonly action: 'restore' | 'delete'
  readonly insertions: number
  readonly deletions: number
  /** True when one side is not text (or above 64 MiB): lines were not counted. */
  readonly binary: boolean
  /** False when the sides differ so much that the counts are an upper bound. */
  readonly exact: boolean
}

/**
 * Lines that each change of a plan adds to and takes from the working tree, as `git diff --numstat` counts them.
 * Reads file and backup; throws the system error when one cannot be read.
 */
export function diffStats(plan: RestorePlan): ChangeStats[] {
  return eachChange(plan, (item, before, after) => {
    const action = item.decision.action === 'delete' ? 'delete' : 'restore'
    if (before.kind === 'binary' || after.kind === 'binary') {
      return { path: item.path, action, insertions: 0, deletions: 0, binary: true, exact: true }
    }
    return { path: item.path, action, binary: false, ...lineStats(textOf(before), textOf(after)) }
  })
}

/** The changes of a plan as a unified diff that git can read. Paths are shown relative to `folder` when below it. */
export function unifiedDiff(plan: RestorePlan, folder?: string): string {
  return eachChange(plan, (item, before, after) => unifiedPatch(shown(item.path, folder), before, after)).join('')
}

function shown(path: string, folder: string | undefined): string {
  const inside = folder === undefined ? path : relative(folder, path)
  return inside.startsWith('..') || isAbsolute(inside) ? path.slice(1) : inside
}

function eachChange<T>(plan: RestorePlan, take: (item: PlannedPath, before: DiffSide, after: DiffSide) => T): T[] {
  const changes = plan.items.filter((item) => isChange(item.decision))
  const needsSource = changes.some((item) => item.decision.action === 'restore')
  const source = needsSource ? BackupSource.open(plan.source, plan.inline) : undefined
  try {
    return changes.map((item) => take(item, sideOfTarget(item), sideOfBackup(item, source)))
  } finally {
    source?.close()
  }
}

function sideOfTarget({ node, place }: PlannedPath): DiffSide {
  if (node.kind !== 'file' || place === undefined) return { kind: 'absent' }
  const folder = AnchoredFolder.open(place.folder)
  try {
    return sideOf({ folder, name: place.name }, { offset: 0, size: node.size }, node.mode)
  } finally {
    folder.close()
  }
}

function sideOfBackup({ decision }: PlannedPath, source: BackupSource | undefined): DiffSide {
  if (decision.action !== 'restore' || source === undefined) return { kind: 'absent' }
  return sideOf(source.at(decision.backup), decision, decision.mode ?? newFileMode)
}

function sideOf(at: ContentAt, stretch: Stretch, mode: number): DiffSide {
  if (stretch.size > largestText) return { kind: 'binary', mode }
  const blocks: Buffer[] = []
  eachBlockAt(at, stretch, (block) => blocks.push(Buffer.from(block)))
  const text = decodeText(Buffer.concat(blocks))
  return text === undefined ? { kind: 'binary', mode } : { kind: 'text', text, mode }
}

function textOf(side: DiffSide): string {
  return side.kind === 'text' ? side.text : ''
}

