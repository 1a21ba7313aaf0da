import { isFields, type Fields } from '../../model/fields.js'
import { isAnswerMark, isEmptyMark, isFramed, isMessageMark, messageMark, startOfRange } from './log-marks.js'
import { CannotRepair, isRewind, Renumbering, withTarget } from './log-renumber.js'

/**
 * What old markers become: `message` is what later builds write (section 5.4), `turn` only gives them the number of the turn
 * that they stand in (section 5.3), for hosts that stay old.
 */
export type MarkerRepair = 'message' | 'turn'

export interface RepairedLog {
  /** Lines without line feeds, the header first; those that did not change are the same bytes. */
  readonly lines: readonly Buffer[]
  /** What was done, in words. */
  readonly reason: string
  /** The first event that has another number now. */
  readonly moved?: number
}

/** The newest log format that takes a message of a plugin as it is written here (section 5.1). */
const newestFormat = 3
const name = Buffer.from('dsh-rewind')

/** What can be done to a log, in words for one and for several. */
const changes = {
  turn: ['marker given its turn', 'markers given their turn'],
  message: ['marker made a message', 'markers made messages'],
  text: ['empty marker given its text', 'empty markers given their text'],
  argument: ['argument of a command mended', 'arguments of commands mended'],
} as const
type Change = keyof typeof changes

/**
 * Repairs the markers of a log: those that look like an answer become messages of the plugin, the steps that were made for them
 * go and later events are counted anew, empty ones get their placeholder, and commands name the message that they went to.
 * Doing it twice is doing it once. `undefined` when there is nothing to do.
 * @param lines without line feeds, the header first
 */
export function repairLog(lines: readonly Buffer[], repair: MarkerRepair): RepairedLog | { readonly refusal: string } | undefined {
  if (!lines.some((line) => line.includes(name))) return undefined
  try {
    const work = new Work(lines)
    if (repair === 'turn') work.turns()
    else work.messages()
    return work.result()
  } catch (error) {
    if (error instanceof CannotRepair) return { refusal: error.message }
    throw error
  }
}

interface Entry {
  readonly line: Buffer
  readonly before: Fields
  event: Fields
}

class Work {
  readonly #header: { readonly line: Buffer; readonly fields: Fields }
  #entries: Entry[]
  readonly #done = new Map<Change, number>()
  #moved: number | undefined

  constructor(lines: readonly Buffer[]) {
    const [header = Buffer.alloc(0), ...events] = lines
    this.#header = { line: header, fields: parsed(header, 1) }
    this.#entries = events.map((line, index) => {
      const event = parsed(line, index + 2)
      return { line, before: event, event }
    })
  }

  /** Repair 1: the turn of a marker without a step of its own is the last that began before it. */
  turns(): void {
    let last: number | undefined
    for (const [index, entry] of this.#entries.entries()) {
      const { type, data } = entry.event
      if (type === 'turn/start' && isFields(data) && typeof data.turn === 'number') last = Math.max(last ?? data.turn, data.turn)
      if (last === undefined || !isFields(data) || data.turn === last || !isAnswerMark(entry.event) || this.#isFramedAt(index)) continue
      this.#change(entry, { ...entry.event, data: { ...data, turn: last } }, 'turn')
    }
  }

  /** Repair 2. */
  messages(): void {
    const framed = this.#entries.filter((entry, index) => isAnswerMark(entry.event) && this.#isFramedAt(index))
    const dropped = new Set(framed.flatMap((entry) => this.#around(entry)))
    for (const entry of this.#entries) {
      if (isAnswerMark(entry.event)) this.#change(entry, messageMark(entry.event), 'message')
      else if (isEmptyMark(entry.event)) this.#change(entry, messageMark(entry.event), 'text')
    }
    if (dropped.size > 0) this.#drop(dropped)
    if (this.#version <= newestFormat) this.#arguments()
  }

  result(): RepairedLog | undefined {
    if (this.#done.size === 0) return undefined
    if (this.#version > newestFormat) throw new CannotRepair(`its format ${String(this.#header.fields.version)} is not known to take such a marker`)
    const lines = this.#entries.map(({ line, before, event }, index) => (event === before ? line : rewritten(line, before, event, index + 2)))
    const reason = [...this.#done].map(([what, count]) => `${String(count)} ${changes[what][count === 1 ? 0 : 1]}`).join(', ')
    return { lines: [this.#header.line, ...lines], reason, ...(this.#moved === undefined ? {} : { moved: this.#moved }) }
  }

  get #version(): number {
    const { version } = this.#header.fields
    return typeof version === 'number' ? version : Number.POSITIVE_INFINITY
  }

  #isFramedAt(index: number): boolean {
    const mark = this.#entries[index]
    return mark !== undefined && isFramed(this.#entries[index - 1]?.event, mark.event, this.#entries[index + 1]?.event)
  }

  #around(mark: Entry): Entry[] {
    const index = this.#entries.indexOf(mark)
    return [this.#entries[index - 1], this.#entries[index + 1]].filter((entry) => entry !== undefined)
  }

  /** Takes events out, and counts those behind them anew. */
  #drop(dropped: ReadonlySet<Entry>): void {
    const odd = this.#entries.findIndex(({ event }, index) => event.seq !== index)
    if (odd !== -1) throw new CannotRepair(`its events are not counted one by one (line ${String(odd + 2)})`)
    const seqs = this.#entries.flatMap((entry, index) => (dropped.has(entry) ? [index] : []))
    const [first = 0] = seqs
    const { seedLength } = this.#header.fields
    if (typeof seedLength === 'number' && first < seedLength) throw new CannotRepair('what would be counted anew belongs to the session that it was forked from')
    const numbers = new Renumbering(seqs)
    this.#entries = this.#entries.filter((entry) => !dropped.has(entry))
    for (const entry of this.#entries) {
      const after = numbers.event(entry.event)
      if (JSON.stringify(after) !== JSON.stringify(entry.event)) entry.event = after
    }
    this.#moved = first
  }

  /** A command that made a marker names the message that the range of the marker begins with. */
  #arguments(): void {
    const marks = new Map(this.#entries.flatMap(({ event }) => (isMessageMark(event) ? [[event.seq, startOfRange(event)] as const] : [])))
    const starts = new Map(
      this.#entries.flatMap(({ event: { type, data } }) => {
        const start = type === 'command/done' && isFields(data) ? marks.get(data.sourceEventSeq) : undefined
        return start === undefined || !isFields(data) ? [] : [[data.commandId, start] as const]
      }),
    )
    for (const entry of this.#entries) {
      const { type, data } = entry.event
      if (!isFields(data) || !isRewind(type, data)) continue
      const start = starts.get(data.commandId)
      const args = start === undefined ? data.args : withTarget(data.args, () => start)
      if (args !== data.args) this.#change(entry, { ...entry.event, data: { ...data, args } }, 'argument')
    }
  }

  #change(entry: Entry, event: Fields, what: Change): void {
    entry.event = event
    this.#done.set(what, (this.#done.get(what) ?? 0) + 1)
  }
}

function parsed(line: Buffer, number: number): Fields {
  try {
    const value: unknown = JSON.parse(line.toString('utf8'))
    if (isFields(value)) return value
  } catch {
    // Said below.
  }
  throw new CannotRepair(`line ${String(number)} of it is no event`)
}

/** A line is written anew only when nothing else of it would change. */
function rewritten(line: Buffer, before: Fields, after: Fields, number: number): Buffer {
  if (!Buffer.from(JSON.stringify(before)).equals(line)) throw new CannotRepair(`line ${String(number)} of it would not keep its other bytes`)
  return Buffer.from(JSON.stringify(after))
}
