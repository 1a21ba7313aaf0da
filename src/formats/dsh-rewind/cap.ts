import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { listFolder } from '../../fs/folder.js'
import type { Member, SessionRef } from '../../model/session.js'
import type { CapChoice, CapContext } from '../format.js'
import { groupContents } from './contents.js'
import { groupsOf, isFinished } from './journal.js'
import { groupsNamedIn, isSideFileName, isTemporary, pendingFolder, rescueFolder } from './layout.js'
import { materialise } from './materialise.js'
import type { SessionState } from './reading.js'
import { backupNameOf } from './record.js'
import { readRecordBytes } from './records.js'

/** Anchor groups that the plugin keeps (section 4.1). */
export const groupCap = 100
/** A staged copy older than this was never recorded (section 4.1). Milliseconds. */
const stagedAge = 24 * 3_600_000

/**
 * What the plugin's own prune does (section 4.1): the highest `max` groups stay, those that hold what is spared, and those that an
 * open or unreadable journal, or a damaged record of a kept group, may need (R114). Links out of kept groups become records first. Finished journals go with
 * their rescue folder, and staged copies after a day.
 */
export function chooseGroups(root: string, ref: SessionRef, state: SessionState, max: number, { now, spared }: CapContext): CapChoice {
  const { records, journals } = state
  if (records.newer) return { checkpoints: 0, drop: [], rewrites: [], refusal: 'its store version is newer than this version knows' }
  const folder = join(root, ref.id)
  const kept = keptGroups(folder, state, max, spared)
  const { files, needed } = materialise(folder, records, (group) => kept.has(group))
  const drop: Member[] = []
  let dropped = 0
  for (const group of records.groups.keys()) {
    if (kept.has(group) || needed.has(group)) continue
    const { members, whole } = groupContents(root, ref.id, group)
    // Links within the group lead on to others: of a group with something foreign in it nothing goes.
    if (!whole) continue
    drop.push(...members)
    dropped += 1
  }
  for (const journal of journals) {
    if (journal.kind === 'journal' && isFinished(journal)) drop.push(...finishedJournal(root, ref.id, journal.name, journal.id))
  }
  drop.push(...oldStaged(root, ref.id, now))
  return { checkpoints: dropped, drop, rewrites: files.map((file) => ({ ...file, path: `${ref.id}/${file.path}` })) }
}

function keptGroups(folder: string, { records, journals }: SessionState, max: number, spared: ReadonlySet<string>): Set<number> {
  const groups = [...records.groups.keys()]
  const kept = new Set(groups.slice(Math.max(0, groups.length - max)))
  for (const group of groups) if (records.groups.get(group)?.some((record) => record.kind === 'content' && spared.has(backupNameOf(record) ?? '')) === true) kept.add(group)
  for (const journal of journals) {
    if (journal.kind === 'damaged' || !isFinished(journal)) for (const group of groupsOf(journal)) kept.add(group)
  }
  // Nobody knows what a damaged record refers to; what it may name stays, and so on from there.
  const waiting = [...kept]
  for (let group = waiting.pop(); group !== undefined; group = waiting.pop()) {
    for (const record of records.groups.get(group) ?? []) {
      if (record.kind !== 'damaged' && record.kind !== 'newer') continue
      for (const named of groupsNamedIn(readRecordBytes(folder, group, record.name)?.toString('latin1') ?? '')) {
        if (kept.has(named) || !records.groups.has(named)) continue
        kept.add(named)
        waiting.push(named)
      }
    }
  }
  return kept
}

/** The rescue folder first: without it a finished journal says nothing wrong. */
function finishedJournal(root: string, session: string, name: string, id: string): Member[] {
  const path = `${session}/${rescueFolder}/${id}`
  const { entries } = listFolder(join(root, path))
  const whole = entries.every((entry) => entry.isFile() && (isSideFileName(entry.name) || isTemporary(entry.name)))
  if (!whole) return []
  const rescue: Member[] = lstatSync(join(root, path), { throwIfNoEntry: false })?.isDirectory() === true ? [{ kind: 'backups', path, folder: true }] : []
  return [...rescue, { kind: 'companion', path: `${session}/${name}`, folder: false }]
}

function oldStaged(root: string, session: string, now: number): Member[] {
  return listFolder(join(root, session, pendingFolder)).entries.flatMap((entry) => {
    const path = `${session}/${pendingFolder}/${entry.name}`
    if (!entry.isFile() || !isSideFileName(entry.name) || now - lstatSync(join(root, path)).mtimeMs <= stagedAge) return []
    return [{ kind: 'leftover' as const, path, folder: false }]
  })
}
