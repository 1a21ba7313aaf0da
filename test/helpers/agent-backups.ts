import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import type { Generation, Line } from './agent-lines.js'
import type { TestClock } from './identity.js'
import { setTime } from './store.js'

/** What a path is, or shall be after a rewind. */
export type Expected = { readonly state: 'absent' } | { readonly state: 'file'; readonly mode: number; readonly bytes: Buffer }

export interface AgentRecord {
  readonly backupFileName: string | null
  readonly version: number
  readonly backupTime: string
  readonly realParentDir?: string
}

export interface AgentCheckpoint {
  readonly id: string
  readonly time: string
  readonly files: Map<string, AgentRecord>
}

interface Tracked {
  readonly first: AgentRecord
  last: AgentRecord
  highest: number
}

const cap = 100

/** The backups of a simulated session and what they hold, remembered apart from the disk. */
export class AgentBackups {
  readonly checkpoints: AgentCheckpoint[] = []
  readonly evicted = new Set<string>()
  readonly #folder: string
  readonly #project: string
  readonly #clock: TestClock
  /** Tracked path, as recorded, to its first record and its newest, and the highest version used. */
  readonly #tracked = new Map<string, Tracked>()
  readonly #contents = new Map<string, Expected>()

  constructor(folder: string, project: string, clock: TestClock) {
    this.#folder = folder
    this.#project = project
    this.#clock = clock
  }

  name(path: string, version: number): string {
    const hash = createHash('sha256').update(resolve(this.#project, path)).digest('hex').slice(0, 16)
    return `${hash}@v${String(version)}`
  }

  find(id: string): AgentCheckpoint {
    const found = this.checkpoints.find((checkpoint) => checkpoint.id === id)
    if (found === undefined) throw new Error(`no checkpoint ${id}`)
    return found
  }

  /** Every tracked path (absolute) at a checkpoint: its own record, else its version 1. */
  expected(checkpoint: string): Map<string, Expected> {
    const own = this.find(checkpoint).files
    const result = new Map<string, Expected>()
    for (const [key, { first }] of this.#tracked) {
      const name = (own.get(key) ?? first).backupFileName
      const content: Expected | undefined = name === null ? { state: 'absent' } : this.#contents.get(name)
      if (content === undefined) throw new Error(`the simulated agent forgot ${String(name)}`)
      result.set(resolve(this.#project, key), content)
    }
    return result
  }

  keyOf(file: string): string {
    const inside = relative(this.#project, file)
    return inside.startsWith('../') || inside === '..' ? file : inside
  }

  /** Before the first edit of a file in a session: its bytes become version 1. `undefined` when it is tracked already. */
  track(file: string, generation: Generation): { key: string; record: AgentRecord; checkpoint: AgentCheckpoint } | undefined {
    const key = this.keyOf(file)
    if (this.#tracked.has(key)) return undefined
    const checkpoint = this.checkpoints.at(-1)
    if (checkpoint === undefined) throw new Error('the simulated agent needs a prompt before it edits')
    const record = this.#backUp(file, 1, stateOf(file), generation)
    this.#tracked.set(key, { first: record, last: record, highest: 1 })
    checkpoint.files.set(key, record)
    return { key, record, checkpoint }
  }

  /** Opens a checkpoint: compares every tracked file with its newest record (section 3). */
  open(id: string, generation: Generation): AgentCheckpoint {
    const files = new Map<string, AgentRecord>()
    for (const [key, tracked] of this.#tracked) {
      const file = resolve(this.#project, key)
      const now = stateOf(file)
      if (now === 'other') {
        if (generation !== 'G1') files.set(key, tracked.last)
        continue
      }
      if (!this.#isUnchanged(tracked.last, now)) {
        tracked.highest += 1
        tracked.last = this.#backUp(file, tracked.highest, now, generation)
      }
      files.set(key, tracked.last)
    }
    const checkpoint = { id, time: this.#clock.tick(), files }
    this.checkpoints.push(checkpoint)
    return checkpoint
  }

  /** A checkpoint beyond the cap takes the backups that no kept one names, except version 1 (section 5). */
  evict(): void {
    const recordsOf = (checkpoints: readonly AgentCheckpoint[]): AgentRecord[] => checkpoints.flatMap((each) => [...each.files.values()])
    const kept = new Set(recordsOf(this.checkpoints.slice(-cap)).map((record) => record.backupFileName))
    for (const { backupFileName: name, version } of recordsOf(this.checkpoints.slice(0, -cap))) {
      if (name === null || version === 1 || kept.has(name) || this.evicted.has(name)) continue
      rmSync(join(this.#folder, name))
      this.evicted.add(name)
    }
  }

  /** Gives a forked session what this one has: memory, and every backup by hard link. */
  copyTo(target: AgentBackups): void {
    target.checkpoints.push(...this.checkpoints.map((each) => ({ ...each, files: new Map(each.files) })))
    for (const [key, tracked] of this.#tracked) target.#tracked.set(key, { ...tracked })
    for (const [name, content] of this.#contents) target.#contents.set(name, content)
    for (const name of this.evicted) target.evicted.add(name)
    if (!existsSync(this.#folder)) return
    mkdirSync(target.#folder, { recursive: true, mode: 0o700 })
    for (const name of readdirSync(this.#folder)) linkOrCopy(join(this.#folder, name), join(target.#folder, name))
  }

  #isUnchanged(record: AgentRecord, now: Expected): boolean {
    const before = record.backupFileName === null ? undefined : this.#contents.get(record.backupFileName)
    return now.state === 'file' && before?.state === 'file' && before.mode === now.mode && before.bytes.equals(now.bytes)
  }

  #backUp(file: string, version: number, content: Expected | 'other', generation: Generation): AgentRecord {
    if (content === 'other') throw new Error(`${file} is no file: the tools refuse`)
    const parent = generation === 'G4' ? { realParentDir: realParent(file) } : {}
    const backupTime = this.#clock.tick(1)
    if (content.state === 'absent') return { backupFileName: null, version, backupTime, ...parent }
    const name = this.name(file, version)
    const path = join(this.#folder, name)
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    writeFileSync(path, content.bytes, { flag: 'wx' })
    chmodSync(path, content.mode)
    setTime(path, this.#clock.now)
    this.#contents.set(name, content)
    return { backupFileName: name, version, backupTime, ...parent }
  }
}

/** A whole-snapshot line; `outer` is the checkpoint itself, or the message that made the edit. */
export function snapshotLine({ id, time, files }: AgentCheckpoint, outer: string, isSnapshotUpdate: boolean): Line {
  const snapshot = { messageId: id, trackedFileBackups: Object.fromEntries(files), timestamp: time }
  return { type: 'file-history-snapshot', messageId: outer, snapshot, isSnapshotUpdate }
}

/** The text a tool saw: decoded, line ends made LF, a BOM kept (corpus, scenario `modes`). `null`: no such file. */
export function originalText(file: string): string | null {
  const state = stateOf(file)
  if (state === 'other') throw new Error(`${file} is no file: the tools refuse`)
  return state.state === 'absent' ? null : state.bytes.toString('utf8').replaceAll('\r\n', '\n')
}

function stateOf(file: string): Expected | 'other' {
  const stat = statSync(file, { throwIfNoEntry: false })
  if (stat === undefined) return { state: 'absent' }
  return stat.isFile() ? { state: 'file', mode: stat.mode & 0o7777, bytes: readFileSync(file) } : 'other'
}

function realParent(file: string): string {
  const parent = dirname(file)
  return existsSync(parent) ? realpathSync(parent) : parent
}

function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to)
  } catch {
    copyFileSync(from, to)
  }
}
