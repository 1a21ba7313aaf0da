import { hash } from 'node:crypto'
import { lstatSync } from 'node:fs'
import { LockedError, NoMatchError, UsageError } from '../../model/errors.js'
import { isFields, textOf, type Fields } from '../../model/fields.js'
import type { ForkOutline, ForkRequest } from '../conversation.js'
import { parseRecord } from '../parse-record.js'
import { chainTo, loadTranscript, type ChainNode, type LoadedTranscript } from './chain.js'
import { forkedPromptId, forkedRecord } from './fork-record.js'
import { HistoryBuilder } from './history.js'
import type { ListedSnapshot } from './loaded-list.js'
import { headOf, type RecordHead } from './record-bytes.js'
import { RecordReader } from './record-reader.js'
import { readSnapshotRecord, shortened } from './snapshots.js'
import { Timeline } from './timeline.js'
import type { TranscriptFile } from './transcripts.js'

/** What the agent leaves out of a fork: where the old session came from, and the results of its turns. */
const leftOut: ReadonlySet<string> = new Set(['session_source', 'parent_session', 'turn_result'])
const titleLength = 60

/**
 * Writes the transcript of a fork (formats/qwen-code section 7) through `write`, record by record: the active chain in one
 * line, each record with the new session id and where it comes from and not another byte changed; snapshots that the agent
 * would load; a title. With `before` it is cut there, and the snapshots that are left follow once more as they are now, with the
 * first record of paths that only a snapshot beyond the cut holds: so what is left resolves as before.
 *
 * @throws NoMatchError when the session has no transcript, or no message `before`; UsageError when nothing stands before it;
 *   LockedError when the transcript changes meanwhile
 */
export function forkTranscript(oldId: string, files: readonly TranscriptFile[], request: ForkRequest, write: (bytes: Buffer) => void): ForkOutline {
  const [file] = files
  if (file === undefined) throw new NoMatchError(`session ${oldId} has no transcript; there is nothing to fork`)
  const transcript = loadTranscript(file.path, 0)
  const reader = new RecordReader(file.path)
  try {
    const outline = new Fork(oldId, request, transcript, reader, write).run()
    const now = lstatSync(file.path, { throwIfNoEntry: false })
    if (transcript.stamp.changed || now?.size !== transcript.stamp.size) {
      throw new LockedError(`${file.shown} changed while it was read; nothing was made`, { hint: 'run again when the session is quiet' })
    }
    return outline
  } finally {
    reader.close()
  }
}

class Fork {
  readonly #oldId: string
  readonly #request: ForkRequest
  readonly #transcript: LoadedTranscript
  readonly #reader: RecordReader
  readonly #write: (bytes: Buffer) => void
  readonly #start: string | undefined
  #parent: string | null = null
  #last: RecordHead | undefined
  #title: string | undefined
  #prompt: string | undefined
  #messages = 0

  constructor(oldId: string, request: ForkRequest, transcript: LoadedTranscript, reader: RecordReader, write: (bytes: Buffer) => void) {
    this.#oldId = oldId
    this.#request = request
    this.#transcript = transcript
    this.#reader = reader
    this.#write = write
    this.#start = transcript.first?.cwd
  }

  run(): ForkOutline {
    const chain = this.#chain()
    const timeline = new Timeline(this.#transcript, this.#reader, this.#start, new HistoryBuilder())
    timeline.read()
    const list = timeline.list.snapshots
    const kept = this.#request.before === undefined ? list : this.#recordedIn(chain, list)
    const ids = new Set(kept.map(({ promptId }) => promptId))
    for (const node of chain) this.#node(node, ids)
    if (this.#request.before !== undefined && kept.length > 0) this.#append('file_history_snapshot', { snapshots: this.#current(kept, list) })
    this.#append('custom_title', { customTitle: `${this.#title ?? this.#prompt ?? 'session'} (fork)`, titleSource: 'manual' })
    return { messages: this.#messages, checkpoints: kept.length, notWhole: this.#transcript.problems.length }
  }

  #chain(): ChainNode[] {
    const { nodes, chain } = this.#transcript
    const { before } = this.#request
    const asNodes = (ids: readonly string[]): ChainNode[] => ids.flatMap((id) => nodes.get(id) ?? [])
    if (before === undefined) return asNodes(chain)
    const target = nodes.get(before)
    if (target?.kind !== 'prompt') throw new NoMatchError(`no message ${before} in the transcript`)
    const above = asNodes(chainTo(nodes, target.parent).chain)
    if (above.some(({ kind }) => kind === 'prompt')) return above
    throw new UsageError(`nothing stands before message ${before}; a new session begins there by itself`, { hint: 'name a later message' })
  }

  /** The snapshots of the list that a part of the chain records, with the time that the list has. */
  #recordedIn(chain: readonly ChainNode[], list: readonly ListedSnapshot[]): ListedSnapshot[] {
    const recorded = new Set<string>()
    for (const node of chain) {
      if (node.kind !== 'snapshot') continue
      for (const { snapshots } of this.#snapshotsOf(node)) for (const { promptId, time } of snapshots) recorded.add(`${promptId}\0${time ?? ''}`)
    }
    return list.filter(({ promptId, time }) => recorded.has(`${promptId}\0${time ?? ''}`))
  }

  #snapshotsOf(node: ChainNode): { snapshots: readonly { promptId: string; time: string | undefined }[] }[] {
    return node.places.flatMap((place) => {
      const value = parseRecord(this.#reader.read(place))
      const read = value === undefined ? undefined : readSnapshotRecord(value, this.#start)
      return read === undefined || 'odd' in read ? [] : [read]
    })
  }

  #node(node: ChainNode, ids: ReadonlySet<string>): void {
    let written = false
    for (const place of node.places) {
      const bytes = this.#reader.read(place)
      const value = parseRecord(bytes)
      // What no reader can read is left behind.
      if (value === undefined || leftOut.has(textOf(value.subtype) ?? '')) continue
      const record = node.kind === 'snapshot' ? withSnapshots(bytes, value, ids) : bytes
      if (record === undefined) continue
      this.#note(value)
      this.#write(forkedRecord(record, { uuid: node.id, parent: this.#parent, oldId: this.#oldId, newId: this.#request.newId }, node.kind === 'snapshot'))
      written = true
    }
    if (written) this.#parent = node.id
  }

  #note(value: Fields): void {
    this.#last = headOf(value)
    if (value.type !== 'system') this.#messages += 1
    if (value.subtype === 'custom_title' && isFields(value.systemPayload)) this.#title = textOf(value.systemPayload.customTitle) ?? this.#title
    if (value.type !== 'user' || this.#prompt !== undefined || !isFields(value.message) || !Array.isArray(value.message.parts)) return
    const [text] = (value.message.parts as unknown[]).flatMap((part) => (isFields(part) ? (textOf(part.text) ?? []) : []))
    this.#prompt = text?.split('\n')[0]?.slice(0, titleLength)
  }

  /** The snapshots that are kept as the list has them, with first records that would be lost. */
  #current(kept: readonly ListedSnapshot[], list: readonly ListedSnapshot[]): Fields[] {
    const known = new Set(kept.flatMap(({ files }) => [...files].flatMap(([path, { version }]) => (version === 1 ? [path] : []))))
    const added = kept.map((): [string, unknown][] => [])
    for (const snapshot of list) {
      for (const [path, { version, unusable }] of snapshot.files) {
        if (known.has(path) || version !== 1) continue
        known.add(path)
        const home = kept.findLastIndex(({ files }) => !files.has(path))
        if (home !== -1 && unusable === undefined) added[home]?.push([path, this.#rawRecord(snapshot, path)])
      }
    }
    return kept.map((snapshot, index) => {
      const raw = this.#raw(snapshot)
      const tracked = isFields(raw.trackedFileBackups) ? raw.trackedFileBackups : {}
      const promptId = forkedPromptId(snapshot.promptId, this.#oldId, this.#request.newId)
      return { ...raw, promptId, trackedFileBackups: { ...tracked, ...ownFields(added[index] ?? []) } }
    })
  }

  #raw({ place, index }: ListedSnapshot): Fields {
    const payload = parseRecord(this.#reader.read(place))?.systemPayload
    const snapshots: unknown[] = isFields(payload) && Array.isArray(payload.snapshots) ? payload.snapshots : []
    const raw = snapshots[index]
    return isFields(raw) ? raw : {}
  }

  #rawRecord(snapshot: ListedSnapshot, path: string): unknown {
    const tracked = this.#raw(snapshot).trackedFileBackups
    return isFields(tracked) ? Object.entries(tracked).findLast(([key]) => shortened(key, this.#start) === path)?.[1] : undefined
  }

  /** A record of our own at the end, as the agent writes one. */
  #append(subtype: string, systemPayload: Fields): void {
    const { newId } = this.#request
    const uuid = uuidFrom(`${newId} ${subtype}`)
    const { timestamp, cwd, version } = this.#last ?? {}
    const record = { uuid, parentUuid: this.#parent, sessionId: newId, timestamp, type: 'system', provenance: 'system', cwd, version, subtype, systemPayload }
    this.#write(Buffer.from(`${JSON.stringify(record)}\n`))
    this.#parent = uuid
  }
}

/** A snapshot record with only the snapshots of these prompts; `undefined` when none is left. One that is odd stays as it is. */
function withSnapshots(bytes: Buffer, value: Fields, ids: ReadonlySet<string>): Buffer | undefined {
  const payload = isFields(value.systemPayload) ? value.systemPayload : {}
  const snapshots: unknown[] = Array.isArray(payload.snapshots) ? payload.snapshots : []
  const left = snapshots.filter((each) => !isFields(each) || typeof each.promptId !== 'string' || ids.has(each.promptId))
  if (left.length === snapshots.length) return bytes
  return left.length === 0 ? undefined : Buffer.from(JSON.stringify({ ...value, systemPayload: { ...payload, snapshots: left } }))
}

/** Keys are data: `__proto__` is a path like any other. */
function ownFields(entries: readonly (readonly [string, unknown])[]): Fields {
  return Object.fromEntries(entries)
}

/** The same text gives the same id, so that a fork that is made again is the same. */
function uuidFrom(text: string): string {
  const hex = hash('sha256', text, 'hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
