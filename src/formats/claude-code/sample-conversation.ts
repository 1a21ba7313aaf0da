import { createHash } from 'node:crypto'
import { chmodSync, existsSync, linkSync, mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** One session of the sample as it was written. */
export interface SampleSession {
  readonly id: string
  readonly project: string
  readonly clientVersion: string
  readonly checkpoints: number
  /** Last activity, milliseconds since 1970. */
  readonly lastActivity: number
}

interface Recorded {
  readonly backupFileName: string | null
  readonly version: number
  readonly backupTime: string
  readonly realParentDir?: string
}

type Line = Readonly<Record<string, unknown>>

const cap = 100

interface Start {
  readonly root: string
  readonly id: string
  readonly project: string
  readonly version: string
  /** Milliseconds since 1970. */
  readonly time: number
}

interface Known {
  readonly text: string
  readonly record: Recorded
}

/** Builds one session the way its client version writes it. */
export class Conversation {
  readonly id: string
  readonly #start: Start
  readonly #lines: Line[] = []
  readonly #checkpoints: { id: string; time: string; files: Record<string, Recorded> }[] = []
  /** File to its text now, and to its newest record. */
  readonly #texts = new Map<string, string>()
  readonly #known = new Map<string, Known>()
  #time: number
  #parent: string | null = null
  #count = 0

  constructor(start: Start) {
    this.id = start.id
    this.#start = start
    this.#time = start.time
  }

  /** A user message, with the checkpoint that stands at its start. */
  prompt(text: string): void {
    const id = this.#nextId()
    for (const [file, now] of this.#texts) {
      const known = this.#known.get(file)
      if (known !== undefined && known.text !== now) this.#known.set(file, { text: now, record: this.#backUp(file, known.record.version + 1, now) })
    }
    const files = Object.fromEntries([...this.#known].map(([file, { record }]) => [file, record]))
    const checkpoint = { id, time: this.#tick(), files }
    this.#checkpoints.push(checkpoint)
    const message = this.#message('user', id, { message: { role: 'user', content: [{ type: 'text', text }] } })
    const snapshot = snapshotLine(checkpoint, id, false)
    this.#lines.push(...(this.#start.version.startsWith('2.0.') ? [snapshot, message] : [message, snapshot]))
  }

  /** The agent writes a file; before the first time its state goes on record as version 1. */
  write(file: string, before: string, after: string): void {
    const { project, version } = this.#start
    const [assistant, isNew] = [this.#nextId(), !this.#texts.has(file)]
    const [filePath, tool] = [join(project, file), { type: 'tool_use', id: `toolu_${assistant.slice(0, 8)}`, name: 'Write' }]
    const call = { ...tool, input: { file_path: filePath, content: after } }
    this.#lines.push(this.#message('assistant', assistant, { message: { role: 'assistant', content: [call] } }))
    const checkpoint = this.#checkpoints.at(-1)
    if (isNew && checkpoint !== undefined) {
      const backup = { backupFileName: null, version: 1, backupTime: this.#tick(), ...this.#parentDir(filePath) }
      this.#known.set(file, { text: '', record: backup })
      checkpoint.files[file] = backup
      const [type, messageId, snapshotMessageId] = ['file-history-delta', assistant, checkpoint.id]
      const delta = { type, messageId, snapshotMessageId, trackingPath: file, backup, timestamp: backup.backupTime }
      this.#lines.push(version === '2.0.64' || version === '2.1.112' ? snapshotLine(checkpoint, assistant, true) : delta)
    }
    this.#texts.set(file, after)
    const content = [{ type: 'tool_result', tool_use_id: tool.id, content: 'done' }]
    const result = {
      type: isNew ? 'create' : 'update', filePath, content: after, structuredPatch: isNew ? [] : patchOf(before, after), originalFile: isNew ? null : before,
    }
    this.#lines.push(this.#message('user', this.#nextId(), { message: { role: 'user', content }, toolUseResult: result }))
  }

  /** Section 8: folded snapshots, then the old messages under the new id; every backup hard-linked. */
  fork(id: string, time: number): Conversation {
    const forked = new Conversation({ ...this.#start, id, time })
    forked.#lines.push(...this.#checkpoints.map((each) => snapshotLine(each, each.id, false)))
    forked.#lines.push(...this.#lines.filter((line) => 'uuid' in line).map((line) => ({ ...line, sessionId: id })))
    forked.#checkpoints.push(...this.#checkpoints.map((each) => ({ ...each, files: { ...each.files } })))
    for (const [file, text] of this.#texts) forked.#texts.set(file, text)
    for (const [file, known] of this.#known) forked.#known.set(file, known)
    forked.#parent = this.#parent
    mkdirSync(forked.#folder, { mode: 0o700 })
    for (const name of readdirSync(this.#folder)) linkSync(join(this.#folder, name), join(forked.#folder, name))
    return forked
  }

  /** Writes the transcript and the files as they ended up, drops backups beyond the cap (section 5), sets the times. */
  end(): SampleSession {
    const { root, project, version } = this.#start
    if (version === '2.1.208') this.#evict()
    const transcript = join(root, 'projects', project.replace(/[^A-Za-z0-9]/g, '-'), `${this.id}.jsonl`)
    put(transcript, this.#lines.map((line) => `${JSON.stringify(line)}\n`).join(''), { mode: 0o600, folderMode: 0o700, time: this.#time })
    for (const [file, text] of this.#texts) {
      const path = join(project, file)
      // A fork works on the files of the session it came from.
      if (!existsSync(path)) put(path, text, { mode: 0o644, folderMode: 0o755, time: this.#time })
    }
    utimesSync(this.#folder, this.#time / 1000, this.#time / 1000)
    return { id: this.id, project, clientVersion: version, checkpoints: this.#checkpoints.length, lastActivity: this.#time }
  }

  get #folder(): string {
    return join(this.#start.root, 'file-history', this.id)
  }

  #evict(): void {
    const namesOf = (from: number, to?: number): (string | null)[] =>
      this.#checkpoints.slice(from, to).flatMap(({ files }) => Object.values(files).map((record) => record.backupFileName))
    const kept = new Set(namesOf(-cap))
    for (const name of new Set(namesOf(0, -cap))) if (name !== null && !kept.has(name) && !name.endsWith('@v1')) rmSync(join(this.#folder, name))
  }

  #backUp(file: string, version: number, text: string): Recorded {
    const path = join(this.#start.project, file)
    const backupTime = this.#tick()
    putBackup(this.#folder, nameOf(path, version), text, this.#time)
    return { backupFileName: nameOf(path, version), version, backupTime, ...this.#parentDir(path) }
  }

  #parentDir(path: string): { realParentDir?: string } {
    return this.#start.version === '2.1.332' ? { realParentDir: dirname(path) } : {}
  }

  #message(type: 'user' | 'assistant', uuid: string, body: Line): Line {
    const parentUuid = this.#parent
    this.#parent = uuid
    const { project: cwd, version } = this.#start
    const place = { userType: 'external', entrypoint: 'cli', cwd, sessionId: this.id, version, gitBranch: 'main' }
    return { parentUuid, isSidechain: false, type, ...body, uuid, timestamp: this.#tick(), ...place }
  }

  #nextId(): string {
    this.#count += 1
    return idOf(`${this.id}/${String(this.#count)}`)
  }

  #tick(): string {
    this.#time += 1000
    return new Date(this.#time).toISOString()
  }
}

function snapshotLine(checkpoint: { id: string; time: string; files: Record<string, Recorded> }, messageId: string, update: boolean): Line {
  const snapshot = { messageId: checkpoint.id, trackedFileBackups: { ...checkpoint.files }, timestamp: checkpoint.time }
  return { type: 'file-history-snapshot', messageId, snapshot, isSnapshotUpdate: update }
}

/** The id that stands for a label. */
export function idOf(label: string): string {
  const hex = createHash('sha256').update(`rewind-admin sample: ${label}`).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** Name of the backup of a file at a version. */
export function nameOf(path: string, version: number): string {
  return `${createHash('sha256').update(path).digest('hex').slice(0, 16)}@v${String(version)}`
}

/** Writes one backup, mode 0644, in a folder of mode 0700. */
export function putBackup(folder: string, name: string, text: string, time: number): void {
  put(join(folder, name), text, { mode: 0o644, folderMode: 0o700, time })
  utimesSync(folder, time / 1000, time / 1000)
}

/** Never overwrites; `time` in milliseconds since 1970. */
function put(path: string, text: string, how: { readonly mode: number; readonly folderMode: number; readonly time: number }): void {
  mkdirSync(dirname(path), { recursive: true, mode: how.folderMode })
  writeFileSync(path, text, { flag: 'wx' })
  chmodSync(path, how.mode)
  utimesSync(path, how.time / 1000, how.time / 1000)
}

/** One hunk of a file that grew at its end, three lines before it. */
function patchOf(before: string, after: string): unknown[] {
  const old = before.split('\n').slice(0, -1)
  const shown = old.slice(-3)
  const added = after.slice(before.length).split('\n').slice(0, -1)
  const [oldStart, oldLines, newLines] = [old.length - shown.length + 1, shown.length, shown.length + added.length]
  return [{ oldStart, oldLines, newStart: oldStart, newLines, lines: [...shown.map((line) => ` ${line}`), ...added.map((line) => `+${line}`)] }]
}
