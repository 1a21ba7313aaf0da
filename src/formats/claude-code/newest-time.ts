const needle = Buffer.from('Z"')
const template = 'dddd-dd-ddTdd:dd:dd.ddd'
const digits = Array.from(template).map((letter) => letter === 'd')
const separators = Array.from(template).map((letter) => letter.charCodeAt(0))
const key = Buffer.from('"timestamp":"')

/**
 * The largest `"timestamp":"<ISO 8601, UTC>"` in a stream of bytes, at any depth of a record, kept apart from those in
 * the future of `now` (R03, R08). Timestamps are compared as bytes, because in this form their order is that of time.
 */
export class NewestTime {
  readonly #now: Buffer
  readonly #best = Buffer.alloc(template.length)
  #future = ''

  /** `now` in milliseconds since 1970. */
  constructor(now: number) {
    this.#now = Buffer.from(new Date(now).toISOString().slice(0, template.length))
  }

  scan(view: Buffer): void {
    let at = view.indexOf(needle)
    while (at !== -1) {
      // With milliseconds the text is 23 bytes long, without 19.
      const start = view[at - 24] === 0x22 ? at - 23 : at - 19
      if (view[start - 1] === 0x22 && view[start - 4] === 0x70) this.#take(view, start, at)
      at = view.indexOf(needle, at + 2)
    }
  }

  /** Milliseconds since 1970, or `undefined` when there was none up to now. */
  get past(): number | undefined {
    return this.#best[0] === 0 ? undefined : milliseconds(this.#best.toString('latin1'))
  }

  /** The largest one after now, or `undefined`. */
  get future(): number | undefined {
    return this.#future === '' ? undefined : milliseconds(this.#future)
  }

  #take(view: Buffer, start: number, end: number): void {
    const length = end - start
    const differs = firstDifference(view, start, length, this.#best)
    if (differs === length || (view[start + differs] ?? 0) < (this.#best[differs] ?? 0)) return
    // What is equal to the best so far has the right shape; only the rest needs a look.
    if (!isTimestamp(view, start, differs, length) || !hasKey(view, start)) return
    const past = firstDifference(view, start, length, this.#now)
    if (past === length || (view[start + past] ?? 0) < (this.#now[past] ?? 0)) {
      for (let index = differs; index < length; index += 1) this.#best[index] = view[start + index] ?? 0
      if (length < template.length) this.#best.write('.000', length)
      return
    }
    const text = view.toString('latin1', start, end)
    if (text > this.#future && milliseconds(text) !== undefined) this.#future = text
  }
}

function firstDifference(view: Buffer, start: number, length: number, other: Buffer): number {
  let index = 0
  while (index < length && view[start + index] === other[index]) index += 1
  return index
}

function isTimestamp(view: Buffer, start: number, from: number, length: number): boolean {
  for (let index = from; index < length; index += 1) {
    const byte = view[start + index] ?? 0
    if (digits[index] === true ? byte < 0x30 || byte > 0x39 : byte !== separators[index]) return false
  }
  // A time that cannot be would hide all those before it.
  return (
    twoDigits(view, start + 5) <= 12 &&
    twoDigits(view, start + 8) <= 31 &&
    twoDigits(view, start + 11) <= 23 &&
    twoDigits(view, start + 14) <= 59 &&
    twoDigits(view, start + 17) <= 59
  )
}

function twoDigits(view: Buffer, at: number): number {
  return ((view[at] ?? 0) - 0x30) * 10 + (view[at + 1] ?? 0) - 0x30
}

function hasKey(view: Buffer, start: number): boolean {
  const at = start - key.length
  for (let index = 0; index < key.length; index += 1) {
    if (view[at + index] !== key[index]) return false
  }
  return true
}

function milliseconds(text: string): number | undefined {
  const value = Date.parse(`${text}Z`)
  return Number.isNaN(value) ? undefined : value
}
