import { createHash } from 'node:crypto'

/** A source of ids with the shape of a UUID that gives the same ids for the same seed. */
export class Identities {
  readonly #seed: string
  #count = 0

  constructor(seed: string) {
    this.#seed = seed
  }

  next(): string {
    this.#count += 1
    return uuidOf(`${this.#seed}/${String(this.#count)}`)
  }
}

/** The id with the shape of a version 4 UUID that stands for a text. */
export function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** A clock that stands still until it is told to move. Milliseconds since 1970. */
export class TestClock {
  #now: number

  constructor(start: number | string = '2026-11-01T09:00:00.000Z') {
    this.#now = typeof start === 'string' ? Date.parse(start) : start
  }

  get now(): number {
    return this.#now
  }

  /** Moves on and returns the new time as ISO 8601. */
  tick(milliseconds = 10): string {
    this.#now += milliseconds
    return this.iso
  }

  get iso(): string {
    return new Date(this.#now).toISOString()
  }
}
