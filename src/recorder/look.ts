import { lstatSync, type Stats } from 'node:fs'
import { nodeWord } from '../fs/blocks.js'
import { systemErrorCode } from '../model/errors.js'

/** What tells that a file was not written to since: sizes in bytes, times in milliseconds since 1970 with their fraction. */
export interface Stamp {
  readonly ino: number
  readonly size: number
  readonly mtimeMs: number
  readonly ctimeMs: number
  /** Permission bits. */
  readonly mode: number
}

/** What stands at a path that may be recorded. */
export type Look =
  | { readonly kind: 'absent' }
  | { readonly kind: 'file'; readonly stamp: Stamp }
  /** Nothing whose bytes are recorded, with the reason in words. */
  | { readonly kind: 'left-out'; readonly reason: string }
  | { readonly kind: 'too-big'; readonly reason: string }

/**
 * Looks at a path without following a link or opening anything. Links, files with several names, and what is no plain file
 * are left out: a restore could reach what lies elsewhere through them.
 * @param limit largest size in bytes that is recorded; 0 for no limit
 */
export function lookAt(path: string, limit: number): Look {
  let found: Stats | undefined
  try {
    found = lstatSync(path, { throwIfNoEntry: false })
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOTDIR') return { kind: 'absent' }
    return { kind: 'left-out', reason: `it could not be looked at (${code ?? 'unknown error'})` }
  }
  if (found === undefined) return { kind: 'absent' }
  if (!found.isFile()) return { kind: 'left-out', reason: `it was ${nodeWord(found)}` }
  if (found.nlink > 1) return { kind: 'left-out', reason: 'it had several names (hard links)' }
  if (limit > 0 && found.size > limit) return { kind: 'too-big', reason: tooBig(found.size, limit) }
  return { kind: 'file', stamp: stampOf(found) }
}

/** The words for a file above the limit; bytes. */
export function tooBig(size: number, limit: number): string {
  return `it had ${String(size)} bytes, more than the limit of ${String(limit)}`
}

export function stampOf(status: Stats): Stamp {
  return { ino: status.ino, size: status.size, mtimeMs: status.mtimeMs, ctimeMs: status.ctimeMs, mode: status.mode & 0o777 }
}

export function sameStamp(a: Stamp, b: Stamp): boolean {
  return a.ino === b.ino && a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs && a.mode === b.mode
}
