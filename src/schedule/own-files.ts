import { mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { atomicWrite } from '../fs/atomic-write.js'
import { listFolder } from '../fs/folder.js'
import { readSmallFile } from '../fs/read-small.js'
import { labelledEntries } from './entry.js'
import { SchedulerError } from './program.js'
import type { RenderedFile } from './scheduler.js'

const fileLimit = 1024 * 1024

/** What a file was before: its bytes, or that there was none. */
export type Before = ReadonlyMap<string, Buffer | undefined>

/** The text of a file that carries our label; `undefined` for one that is not there. @throws SchedulerError for any other file */
function ownText(path: string): string | undefined {
  const file = readSmallFile(path, { follow: false, limit: fileLimit })
  if (file.kind === 'missing') return undefined
  const text = file.kind === 'bytes' ? file.bytes.toString('utf8') : ''
  if (labelledEntries(text).length > 0) return text
  const reason = file.kind === 'unusable' ? file.reason : 'it was not written by rewind-admin'
  throw new SchedulerError(`${path} is in the way (${reason}) and was kept`, { hint: 'move it away, then run again' })
}

/** Our files in a folder by the shape of their names. Those without our label are not ours. */
export function ownFilesIn(folder: string, name: RegExp): { readonly name: string; readonly path: string; readonly text: string }[] {
  return listFolder(folder)
    .entries.filter((entry) => name.test(entry.name) && entry.isFile())
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`
      const file = readSmallFile(path, { follow: false, limit: fileLimit })
      const text = file.kind === 'bytes' ? file.bytes.toString('utf8') : ''
      return labelledEntries(text).length > 0 ? [{ name: entry.name, path, text }] : []
    })
}

/**
 * Puts files in place, each at once and whole, and removes others; every one of them must be ours or not there.
 * @returns what `takeBack` needs
 * @throws SchedulerError when one of them is not ours, and then nothing was written; system errors, and then all is taken back
 */
export function putInPlace(files: readonly RenderedFile[], gone: readonly string[], token: () => string): Before {
  const paths = [...files.map(({ path }) => path), ...gone]
  const before = new Map(paths.map((path) => [path, textBytes(ownText(path))]))
  try {
    for (const { path, text } of files) {
      mkdirSync(dirname(path), { recursive: true, mode: 0o755 })
      atomicWrite(path, Buffer.from(text), { mode: 0o644, token: token() })
    }
    for (const path of gone) rmSync(path, { force: true })
  } catch (error) {
    takeBack(before, token)
    throw error
  }
  return before
}

/** Makes files what they were. */
export function takeBack(before: Before, token: () => string): void {
  for (const [path, bytes] of before) {
    if (bytes === undefined) rmSync(path, { force: true })
    else atomicWrite(path, bytes, { mode: 0o644, token: token() })
  }
}

function textBytes(text: string | undefined): Buffer | undefined {
  return text === undefined ? undefined : Buffer.from(text)
}
