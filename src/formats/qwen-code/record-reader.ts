import { closeSync, readSync } from 'node:fs'
import { openPlain } from '../../fs/blocks.js'
import { LockedError } from '../../model/errors.js'
import type { Place } from './scan.js'

/** Reads single records of a transcript by their place. Close it when done. */
export class RecordReader {
  readonly #path: string
  readonly #fd: number

  /** @throws NotRegularError, or the system error when it cannot be opened */
  constructor(path: string) {
    this.#path = path
    this.#fd = openPlain(path)
  }

  /** The bytes of a record. @throws LockedError when the transcript became shorter */
  read({ offset, length }: Pick<Place, 'offset' | 'length'>): Buffer {
    const bytes = Buffer.allocUnsafe(length)
    for (let filled = 0; filled < length; ) {
      const count = readSync(this.#fd, bytes, filled, length - filled, offset + filled)
      if (count === 0) throw new LockedError(`${this.#path} became shorter while it was read`, { hint: 'run again when the session is quiet' })
      filled += count
    }
    return bytes
  }

  close(): void {
    closeSync(this.#fd)
  }
}
