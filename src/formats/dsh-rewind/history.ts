import type { BackupRecord } from '../../model/backup.js'
import type { Checkpoint, History, Reference } from '../../model/history.js'
import type { Writable } from '../../model/writable.js'
import { Links, timeText } from './links.js'
import { backupNameOf, type StoredRecord } from './record.js'
import type { SessionRecords } from './records.js'

/** What the conversation says of the message at an anchor. */
export interface AnchorWords {
  readonly id?: string
  /** Milliseconds since 1970. */
  readonly time?: number
}

/**
 * The checkpoints of a session: one for each anchor group, with the state of every path that is recorded in it or later
 * (section 3.1): the record with the lowest anchor, then the lowest time. A path whose record cannot be followed is unusable
 * there, and so is every path of a group before a record of a newer store version.
 */
export function historyOf(records: SessionRecords, wordsOf: (anchor: number) => AnchorWords | undefined): History {
  const links = new Links(records)
  const groups = [...records.groups]
  const picks = new Map<string, { readonly record: StoredRecord; readonly backup: BackupRecord }>()
  const checkpoints: Checkpoint[] = []
  let newer: number | undefined
  for (let order = groups.length - 1; order >= 0; order -= 1) {
    const [group, ofGroup] = groups[order] ?? [0, []]
    if (ofGroup.some(({ kind }) => kind === 'newer')) newer = group
    for (const record of ofGroup.toReversed()) {
      const file = fileOf(record)
      if (file === undefined) continue
      const known = picks.get(file)
      if (known === undefined || comesBefore(record, known.record)) picks.set(file, { record, backup: links.backupOf(record) })
    }
    checkpoints.push(checkpointOf(group, order, ofGroup, picks, newer, wordsOf(group)))
  }
  checkpoints.reverse()
  return {
    checkpoints,
    originals: new Map(),
    references: referencesOf(groups, links),
    tracked: new Set([...picks.keys()].sort()),
    anomalies: [],
    lines: groups.reduce((sum, [, { length }]) => sum + length, 0),
  }
}

/** The path that a record is about, as far as it says so. */
function fileOf(record: StoredRecord): string | undefined {
  return record.kind === 'newer' ? undefined : record.file
}

function checkpointOf(
  group: number,
  order: number,
  records: readonly StoredRecord[],
  picks: ReadonlyMap<string, { readonly backup: BackupRecord }>,
  newer: number | undefined,
  words: AnchorWords | undefined,
): Checkpoint {
  const first = words?.time ?? Math.min(...records.flatMap(({ time }) => (time > 0 ? [time] : [])))
  const time = timeText(first)
  const unusable = newer === undefined ? {} : { unusable: `group ${String(newer)} holds a record of a newer version of the plugin` }
  return {
    id: String(group),
    order,
    aliases: [`@${String(group)}`, ...(words?.id === undefined ? [] : [words.id])],
    ...(time === undefined ? {} : { time }),
    files: new Map([...picks].map(([file, { backup }]) => [file, newer === undefined ? backup : { ...backup, ...unusable }])),
  }
}

/** Of two records of one path: that which decides. Groups are met from the last to the first, so equals give way to the earlier one. */
function comesBefore(a: StoredRecord, b: StoredRecord): boolean {
  return a.anchor < b.anchor || (a.anchor === b.anchor && a.time <= b.time)
}

function referencesOf(groups: readonly (readonly [number, readonly StoredRecord[]])[], links: Links): Map<string, Reference> {
  const references = new Map<string, Writable<Reference>>()
  for (const [order, [, records]] of groups.entries()) {
    for (const record of records) {
      const followed = links.follow(record)
      const target = 'record' in followed ? followed.record : undefined
      const name = target === undefined ? null : backupNameOf(target)
      if (target === undefined || name === null) continue
      const known = references.get(name)
      if (known === undefined) references.set(name, { ...referenceTo(name, target), oldest: order, newest: order })
      else {
        known.oldest = Math.min(known.oldest, order)
        known.newest = Math.max(known.newest, order)
      }
    }
  }
  return references
}

function referenceTo(name: string, target: { readonly file: string; readonly time: number; readonly parent?: string }): Omit<Reference, 'oldest' | 'newest'> {
  const time = timeText(target.time)
  return { name, path: target.file, version: 1, ...(time === undefined ? {} : { time }), ...(target.parent === undefined ? {} : { parent: target.parent }), pinned: false }
}
