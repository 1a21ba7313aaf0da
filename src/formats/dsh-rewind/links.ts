import type { BackupRecord } from '../../model/backup.js'
import { inGroup, parseRef } from './layout.js'
import { backupNameOf, type ContentRecord, type StoredRecord } from './record.js'
import type { SessionRecords } from './records.js'

/** What following a record leads to: the record with the content, or why there is none. */
export type Followed = { readonly record: ContentRecord } | { readonly broken: string }

/** Follows links between the records of one session. */
export class Links {
  readonly #records: SessionRecords
  readonly #byPlace = new Map<string, StoredRecord>()

  constructor(records: SessionRecords) {
    this.#records = records
    for (const records of this.#records.groups.values()) {
      for (const record of records) this.#byPlace.set(inGroup(record.group, record.name), record)
    }
  }

  /** The record at a place, `undefined` when there is none. */
  at(group: number, name: string): StoredRecord | undefined {
    return this.#byPlace.get(inGroup(group, name))
  }

  /**
   * Follows links to a record with content (section 3.1, step a): each must have the shape of one, none may be met twice, and
   * what it names must be there and be whole.
   */
  follow(record: StoredRecord): Followed {
    const seen = new Set<StoredRecord>()
    let at = record
    while (at.kind === 'link') {
      if (seen.has(at)) return { broken: 'its links go in a circle' }
      seen.add(at)
      const place = parseRef(at.ref)
      if (place === undefined) return { broken: `it refers to ${JSON.stringify(at.ref)}, which is no record of the session` }
      const next = this.at(place.group, place.name)
      if (next === undefined) return { broken: `it refers to ${at.ref}, which is not there` }
      at = next
    }
    if (at.kind === 'damaged') return { broken: at === record ? at.reason : `it refers to ${inGroup(at.group, at.name)}, where ${at.reason}` }
    if (at.kind === 'newer') return { broken: `${inGroup(at.group, at.name)} was written by a newer version of the plugin` }
    return { record: at }
  }

  /**
   * A record as restores know it. The pin is its own also where a link leads to the content; a link has no mode (section 3.1,
   * step i). Whatever cannot be followed is unusable, and never says that the file did not exist.
   */
  backupOf(record: StoredRecord): BackupRecord {
    const followed = this.follow(record)
    const time = timeText(record.time)
    const base = { version: 1, ...(time === undefined ? {} : { time }) }
    if ('broken' in followed) {
      const name = record.kind === 'link' ? record.ref : inGroup(record.group, record.name)
      return { ...base, name, unusable: `record ${inGroup(record.group, record.name)}: ${followed.broken}` }
    }
    const { content, lossy, mode } = followed.record
    const parent = record.kind === 'link' || record.kind === 'content' ? record.parent : undefined
    return {
      ...base,
      name: backupNameOf(followed.record),
      ...(parent === undefined ? {} : { parent }),
      ...(record.kind === 'link' || mode === undefined ? {} : { mode }),
      ...(lossy ? { lossy } : {}),
      ...(content.kind === 'side' ? { size: content.size } : {}),
    }
  }
}

/** A recorded time in ISO 8601; `undefined` for one that is missing or no time. */
export function timeText(ms: number): string | undefined {
  const time = new Date(ms)
  return ms > 0 && !Number.isNaN(time.getTime()) ? time.toISOString() : undefined
}
