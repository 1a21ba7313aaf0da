import { lstatSync } from 'node:fs'
import { join, parse, resolve, sep } from 'node:path'
import { listFolder } from '../../fs/folder.js'
import { readSmallFile } from '../../fs/read-small.js'
import { NoStoreError, systemErrorCode, UsageError } from '../../model/errors.js'

/** One root of a fleet, as it was named: absolute, without a slash at the end. */
export interface FleetRoot {
  readonly path: string
  /** It was named one by one, so that it must be a store; what a pattern finds need not be one. */
  readonly named: boolean
  /** Why it is not worked on, if so. */
  readonly problem?: { readonly code: string; readonly message: string }
}

const listLimit = 16 * 1024 * 1024
const isPattern = /[*?[]/

/**
 * The roots that `--roots-from` names, sorted, each once: the lines of a file (`#` begins a comment), or what a pattern with `*`, `?`
 * and `[…]` finds, in which no name begins with a dot unless the pattern says so. A pattern follows links of root and of whoever
 * runs this, and no others; a match that cannot be looked at is handed back with the reason, and a home without such a folder is none.
 * @param cwd what relative paths and patterns mean
 * @throws UsageError for a file that cannot be read; NoStoreError when nothing is named
 */
export function fleetRoots(from: string, cwd: string): FleetRoot[] {
  const roots = isPattern.test(from) ? matching(resolve(cwd, from)) : listed(resolve(cwd, from), cwd)
  if (roots.length === 0) throw new NoStoreError(`--roots-from ${from} names no root`, { hint: "give a file with one root a line, or a pattern in quotes like '/home/*/.claude'" })
  return [...new Map(roots.map((root) => [root.path, root])).values()].sort((a, b) => (a.path < b.path ? -1 : 1))
}

function listed(file: string, cwd: string): FleetRoot[] {
  const read = readSmallFile(file, { follow: true, limit: listLimit })
  if (read.kind !== 'bytes') throw new UsageError(`--roots-from ${file}: ${read.kind === 'missing' ? 'it does not exist' : read.reason}`)
  const lines = read.bytes.toString('utf8').replace(/^\uFEFF/, '').split(/\r?\n/)
  return lines
    .map((line) => line.replace(/(^|\s)#.*$/, '').trim())
    .filter((line) => line !== '')
    .map((line) => ({ path: resolve(cwd, line), named: true }))
}

/** The names of the pattern are followed one after the other. */
function matching(pattern: string): FleetRoot[] {
  const { root } = parse(pattern)
  const names = pattern.slice(root.length).split(sep)
  const first = names.findIndex((name) => isPattern.test(name))
  let found: FleetRoot[] = [{ path: join(root, ...names.slice(0, first)), named: false }]
  for (const [at, name] of names.entries()) {
    if (at < first) continue
    const last = at === names.length - 1
    found = found.flatMap((parent) => (parent.problem === undefined ? below(parent.path, name, last) : [parent]))
  }
  return found
}

function below(folder: string, name: string, last: boolean): FleetRoot[] {
  if (!isPattern.test(name)) return lookedAt(join(folder, name), last)
  const { entries, error } = listFolder(folder)
  if (error === 'ENOTDIR') return []
  if (error !== undefined) return [unreadable(folder, error)]
  const wanted = expression(name)
  return entries.filter((entry) => wanted.test(entry.name)).flatMap((entry) => lookedAt(join(folder, entry.name), last))
}

/** The last name may be any link: where it leads is looked at when the home is opened. */
function lookedAt(path: string, last: boolean): FleetRoot[] {
  try {
    const stat = lstatSync(path)
    if (stat.isDirectory() || (last && stat.isSymbolicLink())) return [{ path, named: false }]
    if (!stat.isSymbolicLink()) return []
    // Whoever may write into a folder on the way could lead us anywhere.
    if (stat.uid === 0 || stat.uid === process.geteuid?.()) return [{ path, named: false }]
    return [{ path, named: false, problem: { code: 'FENCE', message: 'it is a link that another user made, and not followed' } }]
  } catch (error) {
    const code = systemErrorCode(error) ?? 'UNKNOWN'
    return code === 'ENOENT' || code === 'ENOTDIR' ? [] : [unreadable(path, code)]
  }
}

function unreadable(path: string, code: string): FleetRoot {
  return { path, named: false, problem: { code, message: `it cannot be looked at (${code})` } }
}

/** The names that one part of a pattern stands for. */
function expression(pattern: string): RegExp {
  try {
    return new RegExp(`^${pattern.startsWith('.') ? '' : String.raw`(?!\.)`}${sourceOf(pattern)}$`, 's')
  } catch (error) {
    throw new UsageError(`--roots-from: ${pattern} is no pattern`, { cause: error, hint: 'a pattern has *, ? and ranges like [a-m]' })
  }
}

function sourceOf(pattern: string): string {
  return pattern.replace(/\[!?[^\]]+\]|[\s\S]/g, (part) => {
    if (part === '*') return '.*'
    if (part === '?') return '.'
    if (part.length > 1) return `[${part.slice(1, -1).replace(/^!/, '^').replace(/[\\\]]/g, String.raw`\$&`)}]`
    return part.replace(/[.+^${}()|[\]\\]/g, String.raw`\$&`)
  })
}
