import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { openQwenCode } from '../../src/formats/qwen-code/index.js'
import type { Store, Surroundings } from '../../src/formats/format.js'
import { uuidOf } from './identity.js'
import { setTime } from './store.js'
import { temporaryFolder } from './temp.js'

/** A record of a file in a snapshot: a backup name, `null` for "did not exist", or the fields as they shall stand there. */
export type QwenRecord = string | null | Readonly<Record<string, unknown>>

export interface QwenSnapshotFields {
  readonly promptId: string
  readonly timestamp?: string
  readonly files?: Readonly<Record<string, QwenRecord>>
  /** Stands in place of the list of files. */
  readonly raw?: Readonly<Record<string, unknown>>
}

interface Place {
  readonly root: string
  readonly id: string
  /** The start folder. */
  readonly project?: string
  /** Milliseconds since 1970 of the first record; each takes one second. */
  readonly start?: number
  readonly version?: string
}

/** Time of the first record unless told otherwise. */
const qwenStart = Date.parse('2026-11-20T09:00:00.000Z')

/** An empty home root in a temporary home. */
export async function qwenRoot(register?: Parameters<typeof temporaryFolder>[0]): Promise<string> {
  const root = join(await temporaryFolder(register), '.qwen')
  mkdirSync(root, { mode: 0o700 })
  return root
}

export function openQwen(root: string, around: Partial<Surroundings> = {}): Store {
  return openQwenCode(root, { home: dirname(root), env: {}, platform: 'linux', ...around })
}

/** Name of a backup: the first half of the digest of its absolute path. */
export function qwenName(path: string, version: number): string {
  return `${createHash('sha256').update(path).digest('hex').slice(0, 16)}@v${String(version)}`
}

/** Writes the records of one session as the agent does, one hanging off the other, and its backups. */
export class QwenSession {
  readonly id: string
  readonly project: string
  readonly lines: string[] = []
  readonly #place: Place
  #last: string | null = null
  #count = 0
  #time: number

  constructor(place: Place) {
    this.#place = place
    this.id = place.id
    this.project = place.project ?? '/home/u/notes'
    this.#time = place.start ?? qwenStart
  }

  get folder(): string {
    return join(this.#place.root, 'projects', this.project.replace(/[^A-Za-z0-9]/g, '-'), 'chats')
  }

  get path(): string {
    return join(this.folder, `${this.id}.jsonl`)
  }

  promptId(number: number): string {
    return `${this.id}########${String(number)}`
  }

  /** Id of the record that was written last. */
  get last(): string {
    return this.#last ?? ''
  }

  /** Hangs what follows off another record: a rewind does so. */
  continueAt(uuid: string | null): void {
    this.#last = uuid
  }

  /** Any record. Returns its id. */
  record(fields: Readonly<Record<string, unknown>>): string {
    this.#count += 1
    const uuid = typeof fields.uuid === 'string' ? fields.uuid : uuidOf(`${this.id}/${String(this.#count)}`)
    const timestamp = new Date(this.#time).toISOString()
    this.#time += 1000
    const { version = '0.24.4' } = this.#place
    this.lines.push(JSON.stringify({ uuid, parentUuid: this.#last, sessionId: this.id, timestamp, cwd: this.project, version, ...fields }))
    this.#last = uuid
    return uuid
  }

  user(text: string): string {
    return this.record({ type: 'user', provenance: 'real_user', message: { role: 'user', parts: [{ text }] } })
  }

  assistant(text = 'done'): string {
    return this.record({ type: 'assistant', provenance: 'assistant_output', model: 'x', message: { role: 'model', parts: [{ text }] } })
  }

  system(subtype: string, systemPayload: unknown): string {
    return this.record({ type: 'system', provenance: 'system', subtype, systemPayload })
  }

  snapshots(...snapshots: readonly QwenSnapshotFields[]): string {
    return this.system('file_history_snapshot', { snapshots: snapshots.map((each) => this.#raw(each)) })
  }

  /** A message of the user's, its snapshot, and the answer. Returns the id of the message. */
  turn(number: number, text: string, files: Readonly<Record<string, QwenRecord>> = {}, timestamp?: string): string {
    const message = this.user(text)
    this.snapshots({ promptId: this.promptId(number), files, ...(timestamp === undefined ? {} : { timestamp }) })
    this.assistant()
    return message
  }

  backup(name: string, bytes: Buffer | string, options: { readonly mode?: number; readonly mtime?: number | string } = {}): string {
    const path = join(this.#place.root, 'file-history', this.id, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, bytes)
    chmodSync(path, options.mode ?? 0o644)
    setTime(path, options.mtime ?? this.#time)
    return path
  }

  /** Writes the transcript; `tail` is put behind the last line feed. */
  save(options: { readonly mtime?: number | string; readonly tail?: string; readonly archived?: boolean; readonly path?: string } = {}): string {
    const path = options.path ?? (options.archived === true ? join(this.folder, 'archive', `${this.id}.jsonl`) : this.path)
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeFileSync(path, this.lines.map((line) => `${line}\n`).join('') + (options.tail ?? ''), { mode: 0o600 })
    setTime(path, options.mtime ?? this.#time)
    return path
  }

  #raw({ promptId, timestamp, files = {}, raw }: QwenSnapshotFields): Record<string, unknown> {
    const time = timestamp ?? new Date(qwenStart + Number(promptId.split('#').at(-1)) * 1000).toISOString()
    if (raw !== undefined) return { promptId, timestamp: time, ...raw }
    const entries = Object.entries(files).map(([path, record]): [string, unknown] => [path, recordOf(record, time)])
    return { promptId, timestamp: time, trackedFileBackups: Object.fromEntries(entries) }
  }
}

function recordOf(record: QwenRecord, time: string): unknown {
  if (typeof record === 'object' && record !== null) return record
  return { backupFileName: record, version: Number(/@v(\d+)$/.exec(record ?? '')?.[1] ?? 1), backupTime: time }
}

/** What every tracked file was at the start of one prompt; `null` for "did not exist". */
export interface QwenState {
  readonly text: string
  readonly files: ReadonlyMap<string, Buffer | null>
}

/** Writes a session in which each prompt found these states, as the agent records them: a new backup only where a file changed. */
export function writeQwenHistory(place: Place, states: readonly QwenState[]): QwenSession {
  const session = new QwenSession(place)
  const known = new Map<string, { readonly record: Readonly<Record<string, unknown>>; readonly version: number; readonly bytes: Buffer | null }>()
  for (const [index, { text, files }] of states.entries()) {
    const time = new Date((place.start ?? qwenStart) + index * 1000).toISOString()
    for (const [path, bytes] of files) {
      const before = known.get(path)
      if (before !== undefined && bytes !== null && before.bytes?.equals(bytes) === true) continue
      const version = (before?.version ?? 0) + 1
      const backupFileName = bytes === null ? null : qwenName(join(session.project, path), version)
      if (bytes !== null && backupFileName !== null) session.backup(backupFileName, bytes, { mtime: time })
      known.set(path, { version, bytes, record: { backupFileName, version, backupTime: time } })
    }
    session.turn(index + 1, text, Object.fromEntries([...known].map(([path, { record }]) => [path, record])), time)
  }
  session.save()
  return session
}
