import { closeSync, fstatSync, lstatSync, readSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { openPlain } from '../../fs/blocks.js'
import { isFields, textOf } from '../../model/fields.js'
import { systemErrorCode } from '../../model/errors.js'
import type { SharedUse } from '../format.js'
import { membersAt, withoutMembers } from '../../fs/json-members.js'

const historyName = 'history.jsonl'
const globalName = '.claude.json'
const sizeLimit = 512 * 1024 * 1024
const lineFeed = 0x0a

/** What is left of a file, and what was found in it. */
export interface Rest {
  readonly rest: Buffer
  readonly count: number
  readonly keys: readonly string[]
}

/**
 * Lines of the prompt history and keys of the global file that belong to the projects for which `matches` is true (R29,
 * R32). The global file stands in the root, or beside a root named `.claude` (formats/claude-code section 1). Files without
 * a match are left out. Nothing is written.
 */
export function findSharedUses(root: string, matches: (project: string) => boolean): SharedUse[] {
  const uses = [
    look(root, { path: historyName }, 'line', (bytes) => withoutHistoryLines(bytes, matches)),
    look(root, { path: globalName }, 'key', (bytes) => withoutProjectKeys(bytes, matches)),
  ]
  if (basename(root) === '.claude') {
    uses.push(look(dirname(root), { path: globalName, beside: true }, 'key', (bytes) => withoutProjectKeys(bytes, matches)))
  }
  return uses.filter((use) => use !== undefined)
}

/** Drops whole lines and keeps the bytes of all others; a line that cannot be read is kept. */
export function withoutHistoryLines(bytes: Buffer, matches: (project: string) => boolean): Rest {
  const parts: Buffer[] = []
  let count = 0
  let keptFrom = 0
  for (let start = 0; start < bytes.length; ) {
    const feed = bytes.indexOf(lineFeed, start)
    const end = feed === -1 ? bytes.length : feed + 1
    if (lineMatches(bytes.subarray(start, end), matches)) {
      count += 1
      parts.push(bytes.subarray(keptFrom, start))
      keptFrom = end
    }
    start = end
  }
  parts.push(bytes.subarray(keptFrom))
  return { rest: Buffer.concat(parts), count, keys: [] }
}

/**
 * Cuts the keys out of `projects` and keeps every other byte. `undefined` when the bytes are no JSON object, or what is
 * left would not be the same object without these keys: then nobody touches it.
 */
export function withoutProjectKeys(bytes: Buffer, matches: (project: string) => boolean): Rest | undefined {
  const before = parse(bytes)
  if (!isFields(before)) return undefined
  const { projects } = before
  if (!isFields(projects)) return { rest: bytes, count: 0, keys: [] }
  const keys = Object.keys(projects).filter(matches)
  const dropped = new Set(keys)
  const top = membersAt(bytes, bytes.indexOf('{'))
  const section = top.filter(({ key }) => key === 'projects')
  const [only] = section
  if (only === undefined || section.length > 1) return undefined
  const rest = withoutMembers(bytes, membersAt(bytes, only.value), (key) => dropped.has(key))
  const expected = { ...before, projects: Object.fromEntries(Object.entries(projects).filter(([key]) => !dropped.has(key))) }
  return isDeepStrictEqual(parse(rest), expected) ? { rest, count: keys.length, keys } : undefined
}

function lineMatches(line: Buffer, matches: (project: string) => boolean): boolean {
  const value = parse(line)
  const project = isFields(value) ? textOf(value.project) : undefined
  return project !== undefined && matches(project)
}

function look(
  folder: string,
  place: Pick<SharedUse, 'path' | 'beside'>,
  what: SharedUse['what'],
  cut: (bytes: Buffer) => Rest | undefined,
): SharedUse | undefined {
  const path = join(folder, place.path)
  const read = readPlain(path)
  if (read === undefined) return undefined
  const common = { ...place, what, appendOnly: what === 'line', size: 'bytes' in read ? read.bytes.length : 0, mtimeNs: read.mtimeNs }
  if ('reason' in read) return { ...common, count: 0, keys: [], refusal: read.reason }
  const rest = cut(read.bytes)
  if (rest === undefined) return { ...common, count: 0, keys: [], refusal: `${place.path} cannot be taken apart safely` }
  if (rest.count === 0) return undefined
  const lock = `${path}.lock`
  if (lstatSync(lock, { throwIfNoEntry: false }) !== undefined) {
    return { ...common, count: rest.count, keys: rest.keys, refusal: `the agent holds ${place.path}.lock` }
  }
  return { ...common, ...rest }
}

type Read = { readonly bytes: Buffer; readonly mtimeNs: string } | { readonly reason: string; readonly mtimeNs: string }

function readPlain(path: string): Read | undefined {
  let fd: number
  try {
    fd = openPlain(path)
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    return { reason: code === 'NOT_REGULAR' ? `${path} is not a plain file` : `${path} cannot be read (${code ?? String(error)})`, mtimeNs: '0' }
  }
  try {
    const { size, mtimeNs } = fstatSync(fd, { bigint: true })
    if (size > BigInt(sizeLimit)) return { reason: `${path} is too large to be rewritten`, mtimeNs: mtimeNs.toString() }
    const bytes = Buffer.alloc(Number(size))
    let length = 0
    while (length < bytes.length) {
      const count = readSync(fd, bytes, length, bytes.length - length, length)
      if (count === 0) break
      length += count
    }
    return { bytes: bytes.subarray(0, length), mtimeNs: mtimeNs.toString() }
  } finally {
    closeSync(fd)
  }
}

function parse(bytes: Buffer): unknown {
  try {
    const text = bytes.toString('utf8')
    return JSON.parse(text.startsWith('\uFEFF') ? text.slice(1) : text)
  } catch {
    return undefined
  }
}
