import { readLines, type LineSink } from '../fs/blocks.js'
import { LockedError } from '../model/errors.js'
import type { MigrationRequest } from './format.js'

const quote = 0x22
const slash = 0x2f
const backslash = 0x5c

type Move = NonNullable<MigrationRequest['move']>

/** Whether every path in a line counts, not its `cwd` alone; `line` is a part of a larger buffer. */
export type IsHistory = (line: Buffer) => boolean

/**
 * Hands over a transcript in which a project's folder has another name (R45): in history lines every path at or below `from`,
 * in all others the `cwd` alone. What is told of the past (tool results, prompts) keeps its bytes, and so does every line that
 * needs no change.
 * @throws LockedError when the transcript changes meanwhile; system errors
 */
export function writeMoved(path: string, move: Move, isHistory: IsHistory, write: (bytes: Buffer) => void): void {
  const { changed } = readLines(path, new Mover(move, isHistory, write))
  if (changed) throw new LockedError(`${path} changed while it was read; it was left as it was`, { hint: 'run again when the session is quiet' })
}

class Mover implements LineSink {
  readonly #isHistory: IsHistory
  readonly #write: (bytes: Buffer) => void
  /** As JSON holds them, without the quotes. */
  readonly #from: Buffer
  readonly #to: Buffer

  constructor({ from, to }: Move, isHistory: IsHistory, write: (bytes: Buffer) => void) {
    this.#isHistory = isHistory
    this.#write = write
    this.#from = Buffer.from(JSON.stringify(from).slice(1, -1))
    this.#to = Buffer.from(JSON.stringify(to).slice(1, -1))
  }

  lines(buffer: Buffer, length: number): void {
    const view = buffer.subarray(0, length)
    let written = 0
    let end = -1
    let history = false
    for (let at = view.indexOf(this.#from); at !== -1; at = view.indexOf(this.#from, at + 1)) {
      if (at > end) {
        const feed = view.indexOf(0x0a, at)
        end = feed === -1 ? length : feed
        history = this.#isHistory(view.subarray(view.lastIndexOf(0x0a, at) + 1, end))
      }
      if (!this.#isWhole(view, at) || !(history || isWorkingFolder(view, at))) continue
      this.#write(view.subarray(written, at))
      this.#write(this.#to)
      written = at + this.#from.length
    }
    if (written < length) this.#write(view.subarray(written, length))
  }

  oversized(): void {
    throw new LockedError('the transcript has a line that is too long to be read whole; it was left as it was')
  }

  /** True where a string begins with the folder and goes on with the next name, or ends: never for a neighbour's name. */
  #isWhole(view: Buffer, at: number): boolean {
    const after = view[at + this.#from.length]
    if (view[at - 1] !== quote || view[at - 2] === backslash) return false
    return after === quote || after === slash || after === backslash
  }
}

/** True when the string that begins at `at` is the value of an unescaped `cwd`. */
function isWorkingFolder(view: Buffer, at: number): boolean {
  return /"cwd"\s{0,4}:\s{0,4}"$/.test(view.toString('latin1', Math.max(0, at - 16), at)) && view[at - 1] === quote
}
