import { lstatSync, type Stats } from 'node:fs'
import { join } from 'node:path'
import { listFolder } from '../../fs/folder.js'
import { finding, type Finding, type FindingId } from '../../model/finding.js'
import type { SessionRef } from '../../model/session.js'
import { groupNumber, inGroup, isOddGroup, isSideFileName, isTemporary, pendingFolder, rescueFolder } from './layout.js'
import { groupCap } from './cap.js'
import { readContents } from './contents.js'
import type { SessionState } from './reading.js'
import type { StoredRecord } from './record.js'

/** A leftover younger than this may belong to a write that is going on; the plugin takes staged copies away after as long. Milliseconds. */
const settled = 24 * 3_600_000
/** So many records in a row that say the same nothing are worth telling. */
const manyNulls = 10

/** What the plugin itself never looks for (section 8.5), and whether it will delete the session when that is opened (section 2.5). */
export function checkFolder(root: string, ref: SessionRef, state: SessionState, context: { readonly now: number; readonly knowsLogs: boolean }): Finding[] {
  if (state.records.newer) return []
  const check = new FolderCheck(root, ref.id, state, context.now)
  check.names()
  check.sideFiles()
  check.leftovers()
  check.repeatedNulls()
  check.anchors()
  check.markers(context.knowsLogs)
  return check.findings
}

class FolderCheck {
  readonly findings: Finding[] = []
  readonly #root: string
  readonly #session: string
  readonly #state: SessionState
  readonly #now: number

  constructor(root: string, session: string, state: SessionState, now: number) {
    this.#root = root
    this.#session = session
    this.#state = state
    this.#now = now
  }

  names(): void {
    const known = new Set([...this.#state.records.groups.values()].flat().flatMap((record) => (record.foreign ? [inGroup(record.group, record.name)] : [])))
    const { foreign, unreadable } = readContents(this.#root, { id: this.#session, members: [] })
    for (const path of foreign) {
      const name = path.slice(this.#session.length + 1)
      if (known.has(name)) continue
      const odd = isOddGroup(name) && groupNumber(name) === undefined
      this.#add('foreign-file', name, odd ? 'a number in a form that the plugin counts as a group and never reads; left alone' : 'not a name that the plugin makes; left alone')
    }
    for (const { path, code } of unreadable) this.#add('unreadable', path.slice(this.#session.length + 1), `it cannot be looked at (${code}); the session is left alone`)
  }

  /** Side files against their records: sizes are recorded (section 1.4), and nothing ever collects one without a record. */
  sideFiles(): void {
    for (const [group, records] of this.#state.records.groups) {
      const byName = new Map(records.map((record) => [record.name, record]))
      for (const { name } of this.#list(String(group))) {
        if (!isSideFileName(name)) continue
        const record = byName.get(`${name.slice(0, -'.before'.length)}.json`)
        if (record === undefined) this.#add('unreferenced-backup', inGroup(group, name), 'no record names it; it is kept')
        else this.#size(group, name, record)
      }
    }
  }

  #size(group: number, name: string, record: StoredRecord): void {
    if (record.kind !== 'content' || record.content.kind !== 'side') return
    const status = this.#status(inGroup(group, name))
    if (status?.isFile() !== true || status.size === record.content.size) return
    this.#add('size-differs', inGroup(group, name), `it has ${String(status.size)} bytes, its record says ${String(record.content.size)}`)
  }

  leftovers(): void {
    for (const { name } of this.#list('')) if (isTemporary(name)) this.#stale(name, 'the plugin was stopped while it wrote this file')
    for (const group of this.#state.records.groups.keys()) {
      for (const { name } of this.#list(String(group))) if (isTemporary(name)) this.#stale(inGroup(group, name), 'the plugin was stopped while it wrote this file')
    }
    for (const { name } of this.#list(pendingFolder)) this.#stale(`${pendingFolder}/${name}`, 'a staged copy that was never recorded')
    const kept = new Set(this.#state.journals.map(({ id }) => id))
    for (const { name } of this.#list(rescueFolder)) if (!kept.has(name)) this.#stale(`${rescueFolder}/${name}`, 'copies from before a restore whose journal is gone')
  }

  #stale(path: string, what: string): void {
    const status = this.#status(path)
    if (status === undefined || this.#now - status.mtimeMs < settled) return
    this.#add('stale-temp', path, what, 'none: it goes with the session')
  }

  /** A tracked path that is absent gets another null record with every message (section 6.2). */
  repeatedNulls(): void {
    const runs = new Map<string, number>()
    const longest = new Map<string, number>()
    for (const record of [...this.#state.records.groups.values()].flat()) {
      if (record.kind !== 'content') continue
      const run = record.content.kind === 'absent' ? (runs.get(record.file) ?? 0) + 1 : 0
      runs.set(record.file, run)
      longest.set(record.file, Math.max(longest.get(record.file) ?? 0, run))
    }
    for (const [file, run] of longest) {
      if (run >= manyNulls) this.#add('identical-versions', '', `${String(run)} records in a row say that ${file} did not exist`)
    }
  }

  /** Groups against the cap, and against the events of the conversation: an anchor is always a message (section 1.3). */
  anchors(): void {
    const { records, log } = this.#state
    const groups = [...records.groups.keys()]
    if (groups.length > groupCap) this.#add('over-cap', '', `${String(groups.length)} anchor groups, the cap is ${String(groupCap)}`)
    if (log === undefined || log.trouble !== undefined) return
    const stale = groups.filter((group) => !log.anchors.has(group))
    const [first] = stale
    if (first === undefined) return
    const more = stale.length === 1 ? '' : ` and of ${String(stale.length - 1)} more`
    this.#add('snapshot-without-message', String(first), `event ${String(first)} of the conversation is no message, so this group${more} may belong to another one`)
  }

  /** Whether the next build that opens the session will clear it (section 2.5). */
  markers(knowsLogs: boolean): void {
    const { records, log } = this.#state
    if (log === undefined) {
      if (knowsLogs) this.#add('transcript-missing', '', 'no conversation of this session was found', undefined, 'info')
    }
    if (records.groups.size === 0 && this.#state.journals.length === 0) return
    const format = records.format.kind === 'number' ? records.format.value : undefined
    const version = log?.trouble === undefined ? log?.version : undefined
    if (format === undefined) this.#add('will-be-cleared', '', 'it has no format marker: builds from 0.9 on delete it when the session is opened')
    else if (version !== undefined && version !== format) {
      this.#add('will-be-cleared', '', `its format marker says ${String(format)}, its conversation has format ${String(version)}: the plugin deletes it when the session is opened`)
    }
  }

  #add(id: FindingId, name: string, message: string, remedy?: string, severity?: Finding['severity']): void {
    const path = name === '' ? this.#session : `${this.#session}/${name}`
    this.findings.push(finding(id, message, { session: this.#session, path, ...(remedy === undefined ? {} : { remedy }), ...(severity === undefined ? {} : { severity }) }))
  }

  #list(name: string): readonly { readonly name: string }[] {
    return listFolder(join(this.#root, this.#session, name)).entries
  }

  #status(name: string): Stats | undefined {
    return lstatSync(join(this.#root, this.#session, name), { throwIfNoEntry: false })
  }
}
