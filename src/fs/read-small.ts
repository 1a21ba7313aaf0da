import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, statSync } from 'node:fs'

import { systemErrorCode } from '../model/errors.js'
import { isFields } from '../model/fields.js'

export interface SmallFileOptions {
  /** Whether a link in place of the file is followed. Settings files are often links; nothing in a store is. */
  readonly follow: boolean
  /** Largest size in bytes that is read. */
  readonly limit: number
}

/** What stands at a path. `unusable` says in words why it cannot be read as a file. Times are milliseconds since 1970. */
export type SmallFile =
  | { readonly kind: 'missing' }
  | { readonly kind: 'unusable'; readonly reason: string }
  | { readonly kind: 'bytes'; readonly bytes: Buffer; readonly mtimeMs: number }

/** As `SmallFile`, parsed; `bytes` and `mtimeMs` come along when the file was read but is not a JSON object. */
export type JsonFile =
  | { readonly kind: 'missing' }
  | { readonly kind: 'unusable'; readonly reason: string; readonly bytes?: Buffer; readonly mtimeMs?: number }
  | { readonly kind: 'object'; readonly value: Readonly<Record<string, unknown>>; readonly mtimeMs: number }

// A path of another machine (a recorded project folder) may be too long or hold a NUL here: nothing stands there.
const missingCodes: readonly (string | undefined)[] = ['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ERR_INVALID_ARG_VALUE']

/**
 * Reads a small file whole. Never throws for what stands at the path, and never hangs: a pipe, a device or a folder is
 * refused before it is opened, and the open itself does not block.
 */
export function readSmallFile(path: string, options: SmallFileOptions): SmallFile {
  try {
    return readRegularFile(path, options)
  } catch (error) {
    const code = systemErrorCode(error)
    if (missingCodes.includes(code) && !isDanglingLink(path)) return { kind: 'missing' }
    return { kind: 'unusable', reason: reasonFor(code, error) }
  }
}

function readRegularFile(path: string, options: SmallFileOptions): SmallFile {
  const before = options.follow ? statSync(path) : lstatSync(path)
  if (before.isSymbolicLink()) return { kind: 'unusable', reason: 'it is a link' }
  if (before.isDirectory()) return { kind: 'unusable', reason: 'it is a folder' }
  if (!before.isFile()) return { kind: 'unusable', reason: 'it is not a regular file' }
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | (options.follow ? 0 : constants.O_NOFOLLOW)
  const handle = openSync(path, flags)
  try {
    const opened = fstatSync(handle)
    if (!opened.isFile()) return { kind: 'unusable', reason: 'it is not a regular file' }
    if (opened.size > options.limit) return { kind: 'unusable', reason: `it is larger than ${String(options.limit)} bytes` }
    const room = Buffer.alloc(options.limit < opened.size + 4096 ? options.limit + 1 : opened.size + 4096)
    let length = 0
    while (length < room.length) {
      const got = readSync(handle, room, length, room.length - length, null)
      if (got === 0) break
      length += got
    }
    if (length === room.length) return { kind: 'unusable', reason: 'it grew while it was read' }
    return { kind: 'bytes', bytes: room.subarray(0, length), mtimeMs: opened.mtimeMs }
  } finally {
    closeSync(handle)
  }
}

/**
 * Reads a file whose top level is a JSON object. A UTF-8 BOM is accepted. An empty file, bad UTF-8, bad JSON and any
 * other top level are `unusable`, each with its reason.
 */
export function readJsonObject(path: string, options: SmallFileOptions): JsonFile {
  const file = readSmallFile(path, options)
  if (file.kind !== 'bytes') return file
  const { bytes, mtimeMs } = file
  if (bytes.length === 0) return { kind: 'unusable', reason: 'it is empty (0 bytes)', bytes, mtimeMs }
  let value: unknown
  try {
    // The decoder takes a UTF-8 BOM away.
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    const reason = error instanceof SyntaxError ? 'it is not valid JSON' : 'it is not valid UTF-8'
    return { kind: 'unusable', reason, bytes, mtimeMs }
  }
  if (!isFields(value)) return { kind: 'unusable', reason: 'its top level is not a JSON object', bytes, mtimeMs }
  return { kind: 'object', value, mtimeMs }
}

function isDanglingLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink()
  } catch {
    return false
  }
}

function reasonFor(code: string | undefined, error: unknown): string {
  if (code === 'EACCES' || code === 'EPERM') return 'it cannot be read (no permission)'
  if (code === 'ELOOP') return 'it is a link that leads in a circle, or became one'
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'it is a link to something that is not there'
  return `it cannot be read (${code ?? (error instanceof Error ? error.message : 'unknown error')})`
}
