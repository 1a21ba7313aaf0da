import { lstatSync, readdirSync, type Dirent } from 'node:fs'
import type { Store } from '../../formats/format.js'
import type { AnchoredFolder } from '../../fs/anchored-folder.js'
import { nodeWord } from '../../fs/blocks.js'
import { sameBytes } from '../../fs/content.js'
import { isPruned } from '../../model/cap.js'
import type { History, Reference } from '../../model/history.js'

/** A backup that the target does not get, and why. */
export interface Lacking {
  readonly name: string
  readonly reason: string
}

/** What a fork has to do for each backup that its target names. */
export interface Choice {
  /** Names of backups that the target has to get. */
  readonly take: readonly string[]
  /** In the target already, with the same bytes. */
  readonly present: readonly string[]
  /** In the target already with other bytes: both stay. */
  readonly differing: readonly string[]
  readonly missing: readonly Lacking[]
}

/** The two sides of a fork. A folder is `undefined` when it is not there. */
export interface Sides {
  readonly store: Store
  readonly source: AnchoredFolder | undefined
  readonly sourceHistory: History
  readonly target: AnchoredFolder | undefined
  readonly targetHistory: History
}

/** Looks at every backup of `names` on both sides; nothing is changed. */
export function chooseBackups(names: Iterable<string>, sides: Sides): Choice {
  const choice = { take: [] as string[], present: [] as string[], differing: [] as string[], missing: [] as Lacking[] }
  const [source, target] = [entriesOf(sides.source), entriesOf(sides.target)]
  for (const name of names) {
    const [here, there] = [source.get(name), target.get(name)]
    const own = sides.targetHistory.references.get(name)
    const isCopy = isSameBackup(sides.sourceHistory.references.get(name), own)
    if (there !== undefined) {
      if (!there.isFile()) choice.missing.push({ name, reason: `${nodeWord(there)} stands in its place` })
      else if (here?.isFile() !== true || !isCopy || isEqual(sides, name)) choice.present.push(name)
      else choice.differing.push(name)
    } else if (here?.isFile() === true && isCopy) choice.take.push(name)
    else if (own === undefined || !isGoneByRight(sides, own)) choice.missing.push({ name, reason: whyMissing(here, isCopy) })
  }
  return choice
}

function entriesOf(folder: AnchoredFolder | undefined): Map<string, Dirent> {
  if (folder === undefined) return new Map()
  return new Map(readdirSync(folder.at('.'), { withFileTypes: true }).map((entry) => [entry.name, entry]))
}

/** Equal names alone do not make two backups one: both sessions may have gone on with the same file (R59). */
function isSameBackup(source: Reference | undefined, target: Reference | undefined): boolean {
  return source?.time === undefined || target?.time === undefined || source.time === target.time
}

/** What the agent removed by its own cap is gone by right (formats/claude-code section 5), and so is what ours removed of the source. */
function isGoneByRight({ sourceHistory, targetHistory, store }: Sides, reference: Reference): boolean {
  const inSource = sourceHistory.references.get(reference.name)
  return reference.path === undefined || isPruned(targetHistory, reference, store.cap) || (inSource?.dropped === true && isSameBackup(inSource, reference))
}

function whyMissing(here: Dirent | undefined, isCopy: boolean): string {
  if (here === undefined) return 'the source does not have it either'
  return isCopy ? `${nodeWord(here)} stands in its place in the source` : 'the source has another backup of this name, made at another time'
}

function isEqual({ source, target }: Sides, name: string): boolean {
  if (source === undefined || target === undefined) return false
  const [here, there] = [lstatSync(source.at(name)), lstatSync(target.at(name))]
  if (here.ino === there.ino && here.dev === there.dev) return true
  return here.size === there.size && sameBytes(source.at(name), target, name, { offset: 0, size: there.size })
}
