import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { openClaudeCode } from '../../src/formats/claude-code/index.js'
import { openDshRewind } from '../../src/formats/dsh-rewind/index.js'
import type { Store, Surroundings } from '../../src/formats/format.js'
import { openPiCandyUndo } from '../../src/formats/pi-candy-undo/index.js'
import { openQwenCode } from '../../src/formats/qwen-code/index.js'
import type { FormatId } from '../../src/model/session.js'
import { SimulatedAgent } from './agent.js'
import { dshSession, DshStore } from './dsh.js'
import { uuidOf, type TestClock } from './identity.js'
import { PiAgent, piPlaces } from './pi.js'
import { QwenSession, qwenName, type QwenRecord } from './qwen.js'

/** An agent of some format at work in `<home>/project`: what it leaves in its store. Paths are relative to the project. */
export interface Writer {
  /** A prompt of the user's; returns a word that names it as a target. */
  prompt(): string
  /** A tool writes a file. */
  edit(path: string, bytes: Buffer): void
  /** Nothing comes after; returns the store and the session. */
  end(): { readonly store: Store; readonly session: string }
}

/** What writes sessions of each format, in an existing home with an existing project. */
export const writers: Readonly<Record<FormatId, (home: string, clock: TestClock) => Writer>> = {
  'claude-code': claudeWriter,
  'pi-candy-undo': piWriter,
  'dsh-rewind': (home, clock) => new DshWriter(home, clock),
  'qwen-code': (home, clock) => new QwenWriter(home, clock),
}

const surroundings = (home: string): Surroundings => ({ home, env: {}, platform: 'linux' })

/** Writes a file as tools do: one that is there keeps its mode, a new one is 0644. */
export function put(file: string, bytes: Buffer): void {
  mkdirSync(dirname(file), { recursive: true })
  const isNew = !existsSync(file)
  writeFileSync(file, bytes)
  if (isNew) chmodSync(file, 0o644)
}

interface Found {
  readonly bytes: Buffer
  readonly mode: number
}

function find(file: string): Found | undefined {
  const status = lstatSync(file, { throwIfNoEntry: false })
  return status === undefined ? undefined : { bytes: readFileSync(file), mode: status.mode & 0o7777 }
}

function claudeWriter(home: string, clock: TestClock): Writer {
  const root = join(home, '.claude')
  mkdirSync(root)
  const agent = new SimulatedAgent({ root, project: join(home, 'project'), generation: 'G4', clock })
  return {
    prompt: () => agent.prompt('go on'),
    edit: (path, bytes) => { agent.write(path, bytes) },
    end: () => {
      agent.end()
      return { store: openClaudeCode(root, surroundings(home)), session: agent.session }
    },
  }
}

function piWriter(home: string, clock: TestClock): Writer {
  const places = piPlaces(home)
  const agent = new PiAgent(places, 'writer', clock)
  return {
    prompt: () => agent.prompt('go on'),
    edit: (path, bytes) => {
      const isNew = !existsSync(join(places.project, path))
      agent.edit(path, bytes, isNew ? 0o644 : undefined)
    },
    end: () => ({ store: openPiCandyUndo(places.root, surroundings(home)), session: agent.session }),
  }
}

/** The plugin of the second generation: a record of the bytes before each tool call, and of what changed between messages (formats/dsh-rewind section 3.4). */
class DshWriter implements Writer {
  readonly #home: string
  readonly #clock: TestClock
  readonly #dsh: DshStore
  /** Tracked file to its newest record, and the bytes that it says. */
  readonly #last = new Map<string, { readonly ref: string; readonly bytes: Buffer | null }>()
  readonly #messages: { seq: number; text: string; time: number }[] = []
  #calls = 0
  #seq = 1

  constructor(home: string, clock: TestClock) {
    this.#home = home
    this.#clock = clock
    this.#dsh = new DshStore(join(home, '.dsh'))
    this.#dsh.markers()
  }

  prompt(): string {
    if (this.#messages.length > 0) this.#seq += 6
    this.#clock.tick()
    this.#messages.push({ seq: this.#seq, text: 'go on', time: this.#clock.now })
    for (const [file, { bytes }] of this.#last) {
      const now = find(file)
      if (now === undefined || bytes === null || !now.bytes.equals(bytes)) this.#record(`recheck-${String(this.#seq)}-${String(this.#calls)}`, file, now, false)
    }
    return String(this.#seq)
  }

  edit(path: string, bytes: Buffer): void {
    const file = join(this.#home, 'project', path)
    const now = find(file)
    const last = this.#last.get(file)
    const isSame = last !== undefined && (now === undefined ? last.bytes === null : last.bytes?.equals(now.bytes) === true)
    if (isSame) {
      const ref = this.#dsh.link({ ...this.#change(`call-${String(this.#calls)}`, file), ref: last.ref })
      this.#last.set(file, { ...last, ref })
    } else this.#record(`call-${String(this.#calls)}`, file, now, true)
    put(file, bytes)
  }

  end(): { store: Store; session: string } {
    this.#dsh.log(join(this.#home, 'project'), this.#messages)
    return { store: openDshRewind(this.#dsh.root, surroundings(this.#home)), session: dshSession }
  }

  #change(call: string, file: string): { anchor: number; call: string; file: string; time: number; parent?: string } {
    this.#calls += 1
    this.#clock.tick(1)
    const parent = existsSync(dirname(file)) ? { parent: realpathSync(dirname(file)) } : {}
    return { anchor: this.#seq, call, file, time: this.#clock.now, ...parent }
  }

  /** The side file has the mode of its source; only the record of a tool call says it too. */
  #record(call: string, file: string, now: Found | undefined, byTool: boolean): void {
    const mode = byTool && now !== undefined ? { mode: now.mode } : {}
    const ref = this.#dsh.bytes({ ...this.#change(call, file), before: now?.bytes ?? null, ...mode })
    if (now !== undefined) chmodSync(join(this.#dsh.folder(), ref.replace(/\.json$/, '.before')), now.mode)
    this.#last.set(file, { ref, bytes: now?.bytes ?? null })
  }
}

/** The agent in its terminal UI: a snapshot at each prompt, and once more for every file that a turn touches first (formats/qwen-code section 3). */
class QwenWriter implements Writer {
  readonly #home: string
  readonly #clock: TestClock
  readonly #session: QwenSession
  readonly #root: string
  readonly #last = new Map<string, { readonly record: QwenRecord; readonly version: number; readonly found: Found | undefined }>()
  #current: { promptId: string; timestamp: string; files: Record<string, QwenRecord> } | undefined
  #prompts = 0

  constructor(home: string, clock: TestClock) {
    this.#home = home
    this.#clock = clock
    this.#root = join(home, '.qwen')
    mkdirSync(this.#root)
    this.#session = new QwenSession({ root: this.#root, id: uuidOf('qwen-writer'), project: join(home, 'project'), start: clock.now })
  }

  prompt(): string {
    const timestamp = this.#clock.tick(1000)
    const promptId = this.#session.promptId(this.#prompts)
    this.#prompts += 1
    const files = Object.fromEntries([...this.#last.keys()].map((path) => [path, this.#capture(path)]))
    this.#session.user('go on')
    this.#current = { promptId, timestamp, files }
    this.#session.snapshots(this.#current)
    return promptId
  }

  edit(path: string, bytes: Buffer): void {
    const current = this.#current
    if (current === undefined) throw new Error('the agent needs a prompt before it edits')
    if (!Object.hasOwn(current.files, path)) {
      current.files = { ...current.files, ...Object.fromEntries([[path, this.#capture(path)]]) }
      this.#session.snapshots(current)
    }
    this.#session.assistant()
    put(join(this.#session.project, path), bytes)
  }

  end(): { store: Store; session: string } {
    this.#session.save()
    return { store: openQwenCode(this.#root, surroundings(this.#home)), session: this.#session.id }
  }

  #capture(path: string): QwenRecord {
    const last = this.#last.get(path)
    const found = find(join(this.#session.project, path))
    const isSame = found !== undefined && last?.found?.mode === found.mode && last.found.bytes.equals(found.bytes)
    if (isSame) return last.record
    const version = (last?.version ?? 0) + 1
    const backupFileName = found === undefined ? null : qwenName(join(this.#session.project, path), version)
    if (found !== undefined && backupFileName !== null) this.#session.backup(backupFileName, found.bytes, { mode: found.mode, mtime: this.#clock.now })
    const record = { backupFileName, version, backupTime: this.#clock.iso }
    this.#last.set(path, { record, version, found })
    return record
  }
}
