import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { AgentBackups, originalText, snapshotLine, type AgentRecord, type Expected } from './agent-backups.js'
import { promptLine, queueLines, structuredPatch, type Generation, type Line } from './agent-lines.js'
import { AgentTranscript } from './agent-transcript.js'
import { TestClock, uuidOf } from './identity.js'
import { setTime } from './store.js'

export type { AgentRecord, Expected } from './agent-backups.js'
export type { Generation } from './agent-lines.js'

export interface AgentOptions {
  /** The store's root, `~/.claude`. */
  readonly root: string
  /** Existing folder the session starts in, by its real path. */
  readonly project: string
  readonly generation: Generation
  readonly sessionId?: string
  readonly clock?: TestClock
  /** Ids are made from it; two agents need two seeds (the default is the session id). */
  readonly seed?: string
}

/**
 * A Claude Code client reduced to what it leaves on disk: it edits files of a real project folder and writes transcript
 * and backups by formats/claude-code sections 2, 3, 5, 8 and 9. It remembers contents by itself, so `expected` is
 * independent of the backups.
 */
export class SimulatedAgent {
  readonly session: string
  readonly root: string
  readonly project: string
  readonly clock: TestClock
  readonly #backups: AgentBackups
  readonly #transcript: AgentTranscript

  constructor(options: AgentOptions) {
    this.session = options.sessionId ?? uuidOf(`session/${options.seed ?? options.generation}`)
    this.root = options.root
    this.project = options.project
    this.clock = options.clock ?? new TestClock()
    this.#transcript = new AgentTranscript({
      path: join(this.root, 'projects', this.slug, `${this.session}.jsonl`),
      generation: options.generation,
      session: this.session,
      project: this.project,
      clock: this.clock,
      seed: options.seed ?? this.session,
    })
    this.#backups = new AgentBackups(this.backups, this.project, this.clock)
  }

  get generation(): Generation {
    return this.#transcript.generation
  }

  get slug(): string {
    return this.project.replace(/[^A-Za-z0-9]/g, '-')
  }

  get transcript(): string {
    return this.#transcript.path
  }

  get backups(): string {
    return join(this.root, 'file-history', this.session)
  }

  /** Ids of every checkpoint, oldest first. */
  get checkpoints(): string[] {
    return this.#backups.checkpoints.map((checkpoint) => checkpoint.id)
  }

  /** Backups that were removed because no kept checkpoint names them (G3 and later). */
  get evicted(): ReadonlySet<string> {
    return this.#backups.evicted
  }

  /** Name of the backup of a path at a version. */
  backupName(path: string, version: number): string {
    return this.#backups.name(path, version)
  }

  /** The records of one checkpoint, by tracked path. */
  records(checkpoint: string): ReadonlyMap<string, AgentRecord> {
    return this.#backups.find(checkpoint).files
  }

  /** What a rewind to a checkpoint makes of every tracked path (absolute): its own record, else its version 1. */
  expected(checkpoint: string): Map<string, Expected> {
    return this.#backups.expected(checkpoint)
  }

  /** Continues the session with another client. */
  resumeAs(generation: Generation): void {
    this.#transcript.finishTurn()
    this.#transcript.generation = generation
  }

  /**
   * A message of the user's: opens a checkpoint and returns its id. `late` holds the snapshot line back until after the
   * next user line, or an edit (formats/claude-code section 2, "out of order"); G1 writes it before the user line anyway.
   */
  prompt(text: string, options: { readonly late?: boolean } = {}): string {
    const { generation } = this
    const transcript = this.#transcript
    const id = transcript.startTurn()
    const checkpoint = this.#backups.open(id, generation)
    const snapshot = snapshotLine(checkpoint, id, false)
    const queue = queueLines(transcript.scene)
    if (generation === 'G1') transcript.append(...(transcript.turn === 1 ? [snapshot, ...queue] : [...queue, snapshot]))
    else transcript.append(...queue)
    transcript.say(promptLine(transcript.scene, id, text))
    transcript.flush()
    if (generation === 'G4') transcript.attach('total_tokens_reminder')
    else if (generation !== 'G1' && transcript.turn === 1) transcript.attach('skill_listing')
    if (generation !== 'G1') {
      if (options.late === true) transcript.hold(snapshot)
      else transcript.append(snapshot)
    }
    if (generation === 'G3' || generation === 'G4') this.#backups.evict()
    return id
  }

  /** The Write tool. */
  write(path: string, content: Buffer | string): void {
    const file = resolve(this.project, path)
    const bytes = Buffer.from(content)
    const original = originalText(file)
    if (original !== null) this.#transcript.read(file, original)
    this.#use('Write', { file_path: file, content: bytes.toString('utf8') }, file, () => {
      this.#put(file, bytes)
      const written = bytes.toString('utf8')
      // Clients take an empty file for none here (corpus, scenario `modes`).
      const isNew = original === null || original === ''
      return {
        type: isNew ? 'create' : 'update',
        filePath: file,
        content: written,
        structuredPatch: isNew ? [] : structuredPatch(original, written),
        originalFile: isNew ? null : original,
        ...(this.generation === 'G1' ? {} : { userModified: false }),
      }
    })
  }

  /** The Edit tool: replaces the first occurrence. */
  edit(path: string, oldString: string, newString: string): void {
    const file = resolve(this.project, path)
    const original = originalText(file)
    if (original === null) throw new Error(`${file} does not exist: the Edit tool refuses`)
    const before = readFileSync(file)
    const at = before.indexOf(oldString)
    if (at < 0) throw new Error(`${file} does not hold ${oldString}: the Edit tool refuses`)
    this.#transcript.read(file, original)
    const call = { replace_all: false, file_path: file, old_string: oldString, new_string: newString }
    this.#use('Edit', call, file, () => {
      this.#put(file, Buffer.concat([before.subarray(0, at), Buffer.from(newString), before.subarray(at + Buffer.byteLength(oldString))]))
      const patch = structuredPatch(original, originalText(file) ?? '')
      return { filePath: file, oldString, newString, originalFile: original, structuredPatch: patch, userModified: false, replaceAll: false }
    })
  }

  /** Somebody else changes a file; nothing is recorded before the next message. */
  external(path: string, content: Buffer | string): void {
    this.#put(resolve(this.project, path), Buffer.from(content))
  }

  /** Somebody else removes a file or a folder. */
  remove(path: string): void {
    rmSync(resolve(this.project, path), { recursive: true })
  }

  /** Somebody else changes a mode. */
  chmod(path: string, mode: number): void {
    chmodSync(resolve(this.project, path), mode)
  }

  /** Resumes into a new id (section 8): folded snapshots and copied messages, every backup hard-linked. */
  fork(sessionId: string): SimulatedAgent {
    this.#transcript.end()
    const { root, project, clock, generation } = this
    const forked = new SimulatedAgent({ root, project, generation, sessionId, clock })
    this.#backups.copyTo(forked.#backups)
    const folded = forked.#backups.checkpoints.map((each) => snapshotLine(each, each.id, false))
    forked.#transcript.continueFrom(this.#transcript, folded)
    return forked
  }

  /** The client exits in peace. */
  end(): void {
    this.#transcript.end()
    if (this.generation === 'G4') this.#transcript.append({ type: 'cost-state', sessionId: this.session, totalCostUSD: 0 })
  }

  /** The client dies in the middle of a turn: a snapshot held back is lost, its backups stay. Nothing may follow. */
  crash(): void {
    if (this.#transcript.drop()) this.#backups.checkpoints.pop()
  }

  /** A tool that edits a file: call, tracking, act, result. */
  #use(name: string, input: Line, file: string, act: () => Line): void {
    const { call, assistant } = this.#transcript.call(name, input)
    this.#track(file, assistant)
    this.#transcript.result(call, act(), assistant)
  }

  #track(file: string, assistant: string): void {
    const tracked = this.#backups.track(file, this.generation)
    if (tracked === undefined) return
    this.#transcript.flush()
    const { key, record, checkpoint } = tracked
    if (this.generation === 'G1' || this.generation === 'G2') {
      this.#transcript.append(snapshotLine(checkpoint, assistant, true))
      return
    }
    const [type, timestamp] = ['file-history-delta', record.backupTime]
    this.#transcript.append({ type, messageId: assistant, snapshotMessageId: checkpoint.id, trackingPath: key, backup: record, timestamp })
  }

  #put(file: string, bytes: Buffer): void {
    mkdirSync(dirname(file), { recursive: true })
    const isNew = !existsSync(file)
    writeFileSync(file, bytes)
    if (isNew) chmodSync(file, 0o644)
    setTime(file, this.clock.now)
  }
}
