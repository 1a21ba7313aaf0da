import { appendFileSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { attachmentLine, modelLine, requestLines, toolResult, type Generation, type Line, type Scene, type ToolCall } from './agent-lines.js'
import { Identities, type TestClock } from './identity.js'
import { setTime } from './store.js'

interface TranscriptOptions {
  readonly path: string
  readonly generation: Generation
  readonly session: string
  readonly project: string
  readonly clock: TestClock
  readonly seed: string
}

/** The transcript of a simulated session: the chain of messages, and the order in which lines land in the file. */
export class AgentTranscript {
  readonly path: string
  generation: Generation
  turn = 0
  readonly #options: TranscriptOptions
  readonly #ids: Identities
  /** Messages so far, as a fork copies them. */
  readonly #messages: Line[] = []
  #parent: string | null = null
  #promptId = ''
  #held: Line | undefined
  #isTurnOpen = false

  constructor(options: TranscriptOptions) {
    this.path = options.path
    this.generation = options.generation
    this.#options = options
    this.#ids = new Identities(options.seed)
  }

  get scene(): Scene {
    const { session, project, clock } = this.#options
    const [ids, parent, promptId] = [this.#ids, this.#parent, this.#promptId]
    return { generation: this.generation, session, project, clock, ids, parent, turn: this.turn, promptId }
  }

  /** Ends the turn before and begins the next; returns the id of its user message. */
  startTurn(): string {
    this.finishTurn()
    const id = this.#ids.next()
    this.#promptId = this.#ids.next()
    this.turn += 1
    this.#isTurnOpen = true
    return id
  }

  /** The model's last word in a turn. */
  finishTurn(): void {
    if (!this.#isTurnOpen) return
    this.#isTurnOpen = false
    if (this.generation === 'G4') this.append(...requestLines(this.scene))
    this.say(modelLine(this.scene, this.#ids.next()))
  }

  end(): void {
    this.finishTurn()
    this.flush()
    if (this.generation !== 'G4') return
    this.append({ type: 'last-prompt', lastPrompt: '…', leafUuid: this.#parent, sessionId: this.#options.session })
  }

  /** Takes over the conversation of another session: folded snapshots first, then its messages under the new id. */
  continueFrom(other: AgentTranscript, folded: readonly Line[]): void {
    const sessionId = this.#options.session
    this.#parent = other.#parent
    this.turn = other.turn
    this.#messages.push(...other.#messages.map((line) => ({ ...line, sessionId })))
    if (this.generation === 'G4') this.append({ type: 'mode', mode: 'normal', sessionId }, { type: 'atis-latch', atis: '', sessionId })
    this.append(...folded, ...this.#messages)
  }

  /** A message of the model with a tool call. */
  call(name: string, input: Line): { readonly call: ToolCall; readonly assistant: string } {
    const assistant = this.#ids.next()
    const call = { id: `toolu_${assistant.slice(0, 8)}`, name, input }
    if (this.generation === 'G4') this.append(...requestLines(this.scene))
    this.say(modelLine(this.scene, assistant, call))
    return { call, assistant }
  }

  result(call: ToolCall, result: Line, assistant: string): void {
    this.say(toolResult(this.scene, this.#ids.next(), call, result, assistant))
    if (this.generation === 'G4') this.attach('total_tokens_reminder')
  }

  /** The Read tool, which clients want before an edit. */
  read(file: string, text: string): void {
    const { call, assistant } = this.call('Read', { file_path: file })
    const count = text.split('\n').length
    const seen = { filePath: file, content: text, numLines: count, startLine: 1, totalLines: count }
    this.result(call, { type: 'text', file: seen }, assistant)
  }

  attach(kind: string): void {
    this.say(attachmentLine(this.scene, this.#ids.next(), kind))
  }

  /** Keeps a line back until `flush`; `drop` loses it and says whether there was one. */
  hold(line: Line): void {
    this.#held = line
  }

  flush(): void {
    const line = this.#held
    this.#held = undefined
    if (line !== undefined) this.append(line)
  }

  drop(): boolean {
    const had = this.#held !== undefined
    this.#held = undefined
    this.#isTurnOpen = false
    return had
  }

  /** Appends a message and makes it the parent of the next. */
  say(line: Line): void {
    this.#messages.push(line)
    this.#parent = String(line.uuid)
    this.append(line)
  }

  append(...lines: readonly Line[]): void {
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 })
    appendFileSync(this.path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''), { mode: 0o600 })
    setTime(this.path, this.#options.clock.now)
  }
}
