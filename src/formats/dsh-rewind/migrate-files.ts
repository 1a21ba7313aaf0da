import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { readPlain } from '../../fs/blocks.js'
import { LockedError } from '../../model/errors.js'
import type { MigratedFile } from '../format.js'

/** A record or journal of more bytes than this is not read. */
const sourceLimit = 256 * 1024 * 1024

/**
 * A file that is made from another one of the store, with its modification time and permission bits: the plugin's age sweep
 * goes by the newest time, and a migration is no use (formats/dsh-rewind sections 2.8 and 4.1).
 * @param root the root of the store
 * @param source what it is made from, relative to the root
 * @param path where it is published, relative to the root
 * @param make its bytes, from those of the source
 * @throws system errors. Its `write` throws LockedError when the source changed meanwhile.
 */
export function madeFrom(root: string, source: string, path: string, make: (bytes: Buffer) => Buffer): MigratedFile {
  const place = join(root, source)
  const before = lstatSync(place, { bigint: true })
  return {
    path,
    mode: Number(before.mode) & 0o777,
    mtimeMs: Number(before.mtimeNs / 1_000_000n),
    write: (take) => {
      const bytes = readPlain(place, sourceLimit)
      const now = lstatSync(place, { bigint: true })
      if (bytes === undefined || now.ino !== before.ino || now.size !== before.size || now.mtimeNs !== before.mtimeNs) {
        throw new LockedError(`${place} changed while it was read; it was left as it was`, { hint: 'run again when the session is quiet' })
      }
      take(make(bytes))
    },
  }
}

/** A small file with given text. @param mtimeMs modification time, milliseconds since 1970 */
export function madeOf(path: string, text: string, mode: number, mtimeMs: number): MigratedFile {
  return { path, mode, mtimeMs, write: (take) => { take(Buffer.from(text, 'utf8')) } }
}
