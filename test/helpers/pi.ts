import { createHash } from 'node:crypto'
import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { serialiseState, type Snapshot, type StateRecord } from '../../src/formats/pi-candy-undo/state.js'
import { Identities, TestClock, uuidOf } from './identity.js'

/** Where a pi home has its parts. */
export interface PiPlaces {
  readonly home: string
  /** `<home>/.pi/file-history`. */
  readonly root: string
  /** `<home>/.pi/agent/sessions`. */
  readonly conversations: string
  readonly project: string
}

/** The folders of a pi home. `home` exists; nothing else need be there. */
export function piPlaces(home: string): PiPlaces {
  const project = join(home, 'project')
  mkdirSync(project, { recursive: true })
  return { home, root: join(home, '.pi', 'file-history'), conversations: join(home, '.pi', 'agent', 'sessions'), project }
}

/**
 * One session as pi and the plugin write it (formats/pi-candy-undo section 4): a snapshot of every tracked file at each
 * prompt, an original at the first edit of a file. Every call leaves the store as it would be.
 */
export class PiAgent {
  readonly session: string
  readonly messages: string[] = []
  readonly #places: PiPlaces
  readonly #clock: TestClock
  readonly #ids: Identities
  readonly #snapshots: Snapshot[] = []
  readonly #originals = new Map<string, StateRecord>()
  readonly #tracked: string[] = []
  readonly #lines: string[] = []
  #leaf: string | null = null

  constructor(places: PiPlaces, seed: string, clock = new TestClock()) {
    this.#places = places
    this.#clock = clock
    this.#ids = new Identities(`pi/${seed}`)
    this.session = uuidOf(`pi-session/${seed}`)
    mkdirSync(this.#backups, { recursive: true })
    this.#lines.push(JSON.stringify({ type: 'session', version: 3, id: this.session, timestamp: clock.iso, cwd: places.project }))
    this.#snapshots.push({ id: this.#ids.next(), key: 'baseline', kind: 'baseline', createdAt: clock.iso, files: new Map() })
    this.#write()
  }

  get statePath(): string {
    return join(this.#places.root, this.session, 'state.json')
  }

  get conversationPath(): string {
    return join(this.#places.conversations, '--project--', `${this.session}.jsonl`)
  }

  /** A prompt of the user's; returns the id of its message. */
  prompt(text: string): string {
    const time = this.#clock.tick()
    const id = this.#entry('user', text)
    const files = new Map(this.#tracked.map((path) => [path, this.#capture(path)]))
    this.#snapshots.push({ id: this.#ids.next(), key: id, kind: 'operation', createdAt: time, files })
    this.messages.push(id)
    this.#entry('assistant', 'done')
    this.#write()
    return id
  }

  /** The agent writes a file, or removes it with a tool that tracks; `path` relative to the project. */
  edit(path: string, content: string | Buffer | null, mode?: number): void {
    if (!this.#originals.has(path)) {
      this.#clock.tick()
      this.#originals.set(path, this.#save(path, 1))
      this.#tracked.push(path)
    }
    this.byHand(path, content, mode)
    this.#write()
  }

  /** A change that the plugin does not see. */
  byHand(path: string, content: string | Buffer | null, mode?: number): void {
    const file = join(this.#places.project, path)
    if (content === null) {
      rmSync(file, { force: true })
      return
    }
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content)
    if (mode !== undefined) chmodSync(file, mode)
  }

  /** Sets the times of everything of the session. */
  age(time: string): void {
    const at = new Date(time)
    const folder = join(this.#places.root, this.session)
    for (const records of [this.#originals, ...this.#snapshots.map(({ files }) => files)]) {
      for (const { backupFileName } of records.values()) if (backupFileName !== null) utimesSync(join(this.#backups, backupFileName), at, at)
    }
    for (const path of [this.statePath, this.conversationPath, this.#backups, folder]) utimesSync(path, at, at)
  }

  get #backups(): string {
    return join(this.#places.root, this.session, 'backups')
  }

  #entry(role: string, content: string): string {
    const id = this.#ids.next().slice(0, 8)
    this.#lines.push(JSON.stringify({ type: 'message', id, parentId: this.#leaf, timestamp: this.#clock.iso, message: { role, content } }))
    this.#leaf = id
    return id
  }

  #capture(path: string): StateRecord {
    const previous = this.#snapshots.findLast(({ files }) => files.has(path))?.files.get(path) ?? this.#originals.get(path)
    const file = join(this.#places.project, path)
    const name = previous?.backupFileName ?? null
    if (previous !== undefined && name !== null && existsSync(file) && readFileSync(file).equals(readFileSync(join(this.#backups, name)))) return previous
    return this.#save(path, (previous?.version ?? 0) + 1)
  }

  #save(path: string, version: number): StateRecord {
    const file = join(this.#places.project, path)
    const found = lstatSync(file, { throwIfNoEntry: false })
    if (found?.isFile() !== true) return { backupFileName: null, version, backupTime: this.#clock.iso }
    const backupFileName = `${createHash('sha256').update(path).digest('hex').slice(0, 16)}@v${String(version)}`
    writeFileSync(join(this.#backups, backupFileName), readFileSync(file))
    chmodSync(join(this.#backups, backupFileName), statSync(file).mode & 0o777)
    return { backupFileName, version, backupTime: this.#clock.iso }
  }

  #write(): void {
    const state = { sessionId: this.session, snapshots: this.#snapshots, originals: this.#originals, trackedFiles: this.#tracked, redo: [] }
    writeFileSync(this.statePath, serialiseState(state))
    mkdirSync(dirname(this.conversationPath), { recursive: true })
    writeFileSync(this.conversationPath, `${this.#lines.join('\n')}\n`)
  }
}
