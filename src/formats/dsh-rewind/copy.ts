import { join } from 'node:path'
import type { Member, SessionRef } from '../../model/session.js'
import { listFolder } from '../../fs/folder.js'
import type { SessionCopy } from '../format.js'
import { formatMarker, isRecordName, isSideFileName, storeMarker } from './layout.js'
import { materialise } from './materialise.js'
import type { SessionState } from './reading.js'

/**
 * What a fork needs of a session: the groups before its first own event, with their records and side files, then the markers. The
 * conversation is the agent's own matter; journals, rescue copies and leftovers are of the old session alone.
 * @param before anchor number from which on nothing is taken; all of it without
 */
export function planCopy(root: string, ref: SessionRef, state: SessionState, before: number | undefined): SessionCopy {
  const { records } = state
  const folder = join(root, ref.id)
  const isWanted = (group: number): boolean => before === undefined || group < before
  const { files } = materialise(folder, records, isWanted)
  const replaced = new Set(files.map(({ path }) => path))
  const copies: Member[] = []
  for (const [group, ofGroup] of records.groups) {
    if (!isWanted(group)) continue
    const foreign = new Set(ofGroup.flatMap((record) => (record.foreign ? [record.name] : [])))
    for (const entry of listFolder(join(folder, String(group))).entries) {
      const path = `${String(group)}/${entry.name}`
      if (!entry.isFile() || foreign.has(entry.name) || replaced.has(path)) continue
      if (isRecordName(entry.name) || isSideFileName(entry.name)) copies.push({ kind: 'backups', path, folder: false })
    }
  }
  const markers = [storeMarker, formatMarker].filter((name) => (name === storeMarker ? records.store : records.format).kind === 'number')
  return {
    copies: [...copies, ...markers.map((path): Member => ({ kind: 'companion', path, folder: false }))],
    files,
    checkpoints: [...records.groups.keys()].filter(isWanted).length,
    left: [...records.groups.keys()].filter((group) => !isWanted(group)).length,
  }
}
