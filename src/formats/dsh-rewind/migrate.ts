import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { readPlain } from '../../fs/blocks.js'
import { finding, type Finding, type FindingId } from '../../model/finding.js'
import type { SessionRef } from '../../model/session.js'
import type { MigratedFile, Migration } from '../format.js'
import { isFinished } from './journal.js'
import { formatMarker, inGroup, sideFileOf, storeMarker, storeVersion } from './layout.js'
import { Links } from './links.js'
import { madeFrom, madeOf } from './migrate-files.js'
import { proveFormat } from './migrate-proof.js'
import { byteRecordOf, isFirstJournal, secondJournalOf, sideBytesOf } from './migrate-records.js'
import type { SessionState } from './reading.js'
import type { ContentRecord, LinkRecord, StoredRecord } from './record.js'

/** A journal of more bytes than this is not read. */
const journalLimit = 256 * 1024 * 1024

/**
 * What brings a session to the newest generation (section 2.8). Names stay, so that no link points at a file that is gone, not
 * even for a moment; of each text record the side file comes first. What cannot be followed stays as it is: it is never taken
 * for a file that did not exist. `undefined` when there is nothing to do or to say.
 * @param converted true when a log of an older format lies beside the one that counts
 */
export function planUpgrade(root: string, ref: SessionRef, state: SessionState, converted: boolean): Migration | { readonly refusal: string } | undefined {
  if (state.records.newer) return { refusal: 'its store version is newer than this version knows' }
  const upgrade = new Upgrade(root, ref.id, state)
  upgrade.records()
  upgrade.journals()
  upgrade.markers(converted)
  const { files, findings } = upgrade
  if (files.length === 0 && findings.length === 0) return undefined
  return { reason: upgrade.reason(), files, drop: [], findings }
}

class Upgrade {
  readonly files: MigratedFile[] = []
  readonly findings: Finding[] = []
  readonly #root: string
  readonly #session: string
  readonly #state: SessionState
  #records = 0
  #journals = 0
  #hasBytes = false

  constructor(root: string, session: string, state: SessionState) {
    this.#root = root
    this.#session = session
    this.#state = state
  }

  records(): void {
    const links = new Links(this.#state.records)
    const inUse = this.#journalBlobs()
    for (const record of [...this.#state.records.groups.values()].flat()) {
      if ((record.kind === 'content' || record.kind === 'link') && record.generation === 2) this.#hasBytes = true
      else if (record.kind === 'damaged' || record.kind === 'newer') this.#stays(record)
      else if (record.foreign) this.#leave('foreign-file', record, 'another program wrote it')
      else if (record.anchor !== record.group) this.#leave('odd-record', record, `its anchor is ${String(record.anchor)}, its group ${String(record.group)}: nobody can tell which is right`)
      else this.#convert(record, links, inUse)
    }
  }

  /** Journals that did not end: the byte builds read the old ones, and finish them; the names stay (section 2.6). */
  journals(): void {
    for (const journal of this.#state.journals) {
      const path = `${this.#session}/${journal.name}`
      if (journal.kind === 'damaged') {
        this.findings.push(finding('damaged-journal', `left as it is: ${journal.reason}`, { session: this.#session, path }))
        continue
      }
      const bytes = isFinished(journal) ? undefined : readPlain(join(this.#root, path), journalLimit)
      if (bytes === undefined || !isFirstJournal(bytes)) continue
      this.files.push(madeFrom(this.#root, path, path, secondJournalOf))
      this.#journals += 1
    }
  }

  /** The markers last: they say what is true of all before them. */
  markers(converted: boolean): void {
    const { store } = this.#state.records
    const marked = store.kind === 'number' && store.value === storeVersion
    if (this.#hasBytes && !marked) this.#marker(storeMarker, storeVersion)
    const proof = proveFormat(this.#state, converted)
    if (proof === undefined) return
    if ('format' in proof) this.#marker(formatMarker, proof.format)
    else {
      const message = `${proof.doubt}; the plugin deletes the session when the agent opens it`
      this.findings.push(finding('will-be-cleared', message, { session: this.#session, path: this.#session, remedy: 'none: copy the session folder away before the agent opens the session' }))
    }
  }

  reason(): string {
    const parts = [counted(this.#records, 'text record'), counted(this.#journals, 'journal')].filter((part) => part !== undefined)
    const made = parts.length === 0 ? undefined : `${parts.join(' and ')} to store version ${String(storeVersion)}`
    const marker = this.files.some(({ path }) => path.endsWith(`/${formatMarker}`)) ? 'marked with the format of its conversation' : undefined
    return [made, marker].filter((part) => part !== undefined).join('; ') || 'its markers'
  }

  #convert(record: ContentRecord | LinkRecord, links: Links, inUse: ReadonlySet<string>): void {
    const followed = links.follow(record)
    if ('broken' in followed) {
      this.#leave('broken-link', record, followed.broken)
      return
    }
    const path = this.#path(inGroup(record.group, record.name))
    if (record.kind === 'content' && record.content.kind === 'text') {
      const side = inGroup(record.group, sideFileOf(record.name))
      if (inUse.has(side)) {
        this.#leave('odd-record', record, `an open journal needs ${side}, which would be its side file`)
        return
      }
      this.files.push(madeFrom(this.#root, path, this.#path(side), sideBytesOf))
    }
    this.files.push(madeFrom(this.#root, path, path, (bytes) => byteRecordOf(record, bytes)))
    this.#records += 1
    this.#hasBytes = true
  }

  #stays(record: StoredRecord & { readonly kind: 'damaged' | 'newer' }): void {
    if (record.kind === 'newer') this.#leave('newer-format', record, `it has store version ${String(record.store)}`)
    else this.#leave('damaged-record', record, record.reason)
  }

  #leave(id: FindingId, record: StoredRecord, reason: string): void {
    this.findings.push(finding(id, `left as it is: ${reason}`, { session: this.#session, path: this.#path(inGroup(record.group, record.name)) }))
  }

  #marker(name: string, value: number): void {
    this.files.push(madeOf(this.#path(name), String(value), 0o644, this.#newest()))
  }

  /** Newest time of a record or journal: a marker must not make the session look more recent than it is. */
  #newest(): number {
    const records = [...this.#state.records.groups.values()].flat().map(({ group, name }) => inGroup(group, name))
    const times = [...records, ...this.#state.journals.map(({ name }) => name)].map((name) => lstatSync(join(this.#root, this.#path(name))).mtimeMs)
    return Math.floor(times.reduce((newest, time) => Math.max(newest, time), 0))
  }

  #journalBlobs(): Set<string> {
    const open = this.#state.journals.flatMap((journal) => (journal.kind === 'journal' && !isFinished(journal) ? journal.actions : []))
    return new Set(open.flatMap(({ before, rescue }) => [before, rescue]).flatMap((bytes) => (bytes !== null && 'blob' in bytes ? [bytes.blob] : [])))
  }

  #path(name: string): string {
    return `${this.#session}/${name}`
  }
}

function counted(count: number, what: string): string | undefined {
  return count === 0 ? undefined : `${String(count)} ${what}${count === 1 ? '' : 's'}`
}
