import { hash } from 'node:crypto'

/** Runs a program and returns what it wrote to its standard output; rejects when it fails. Times are milliseconds. */
export type ExecFile = (
  file: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly maxBuffer: number; readonly timeout: number },
) => Promise<Buffer>

/** Objects of one size that are read at most, and the largest that is. */
const mostObjects = 200
const largestObject = 64 * 1024 * 1024
const listLimit = 256 * 1024 * 1024
const patience = 60_000

/** Bytes that are looked for. */
export interface WantedObject {
  readonly sha256: string
  /** Bytes. */
  readonly size: number
}

/**
 * Looks in the git repository of a folder for objects whose content has the wanted digests. Empty when the folder is no
 * work tree, there is no git, or anything else fails: then there is no proof. Reads no more than a bounded number of objects.
 * @returns digest to the object's name
 */
export async function findGitObjects(exec: ExecFile, folder: string, wanted: readonly WantedObject[]): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  const sizes = new Map<number, Set<string>>()
  for (const { sha256, size } of wanted) {
    if (size <= largestObject) sizes.set(size, (sizes.get(size) ?? new Set()).add(sha256))
  }
  if (sizes.size === 0) return found
  try {
    const inside = await git(exec, folder, ['rev-parse', '--is-inside-work-tree'], 1024)
    if (inside.toString('latin1').trim() !== 'true') return found
    const list = await git(exec, folder, ['cat-file', '--batch-all-objects', '--unordered', '--batch-check=%(objectname) %(objecttype) %(objectsize)'], listLimit)
    for (const [size, objects] of blobsBySize(list, sizes)) {
      for (const object of objects.slice(0, mostObjects)) {
        const left = [...(sizes.get(size) ?? [])].filter((sha256) => !found.has(sha256))
        if (left.length === 0) break
        const digest = hash('sha256', await readGitObject(exec, folder, object), 'hex')
        if (left.includes(digest)) found.set(digest, object)
      }
    }
  } catch {
    // Without git there is no proof from git.
  }
  return found
}

/** The content of an object. @throws what running git throws */
export async function readGitObject(exec: ExecFile, folder: string, object: string): Promise<Buffer> {
  return git(exec, folder, ['cat-file', 'blob', object], largestObject + 1)
}

function git(exec: ExecFile, folder: string, args: readonly string[], maxBuffer: number): Promise<Buffer> {
  return exec('git', ['-c', 'core.fsmonitor=false', ...args], { cwd: folder, maxBuffer, timeout: patience })
}

function blobsBySize(list: Buffer, sizes: ReadonlyMap<number, unknown>): Map<number, string[]> {
  const blobs = new Map<number, string[]>()
  for (let start = 0; start < list.length; ) {
    const feed = list.indexOf(0x0a, start)
    const end = feed === -1 ? list.length : feed
    const [object = '', type, digits] = list.toString('latin1', start, end).split(' ')
    start = end + 1
    const size = Number(digits)
    if (type !== 'blob' || !sizes.has(size) || !/^[0-9a-f]{40,64}$/.test(object)) continue
    const known = blobs.get(size)
    if (known === undefined) blobs.set(size, [object])
    else known.push(object)
  }
  return blobs
}
