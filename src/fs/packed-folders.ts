import type { ProbedEntry, ProbedFolder } from './probe.js'
import type { Writable } from '../model/writable.js'

/**
 * Folders on their way between threads: the texts and numbers of all entries together are handed over far faster than
 * objects. Texts are joined by slashes, which stand in none of them.
 */
export interface PackedFolders {
  readonly paths: readonly string[]
  readonly names: string
  readonly stamps: string
  readonly inodes: string
  readonly digests: string
  /** For each folder its mode and how many entries it has, then for each entry size, mode, time, links and flags. */
  readonly numbers: Float64Array
  /** What is not as usual, by threes: position of the entry, node, error. */
  readonly odd: readonly (string | number)[]
  /** Position of the folder and error by turns. */
  readonly errors: readonly (string | number)[]
}

const numbersOfEntry = 5
const replacedFlag = 1
const deferredFlag = 2

export function packFolders(folders: readonly ProbedFolder[]): PackedFolders {
  const entries = folders.flatMap((folder) => folder.entries)
  const numbers = new Float64Array(2 * folders.length + numbersOfEntry * entries.length)
  let at = 0
  for (const folder of folders) {
    numbers[at++] = folder.mode
    numbers[at++] = folder.entries.length
    for (const { size, mode, mtimeMs, links, replaced, deferred } of folder.entries) {
      numbers[at++] = size
      numbers[at++] = mode
      numbers[at++] = mtimeMs
      numbers[at++] = links
      numbers[at++] = (replaced === true ? replacedFlag : 0) | (deferred === true ? deferredFlag : 0)
    }
  }
  return {
    paths: folders.map(({ path }) => path),
    names: entries.map(({ name }) => name).join('/'),
    stamps: entries.map(({ stamp }) => stamp).join('/'),
    inodes: entries.map(({ inode }) => inode).join('/'),
    digests: entries.map(({ digest }) => digest ?? '').join('/'),
    numbers,
    odd: entries.flatMap(({ node, error }, index) => (node === 'file' && error === undefined ? [] : [index, node, error ?? ''])),
    errors: folders.flatMap(({ error }, index) => (error === undefined ? [] : [index, error])),
  }
}

export function unpackFolders(packed: PackedFolders): ProbedFolder[] {
  const { paths, numbers, errors } = packed
  const entries = unpackEntries(packed)
  let at = 0
  let first = 0
  return paths.map((path, index) => {
    const mode = numbers[at] ?? 0
    const count = numbers[at + 1] ?? 0
    at += 2 + count * numbersOfEntry
    const own = entries.slice(first, first + count)
    first += count
    const failed = errors.indexOf(index)
    return failed === -1 ? { path, mode, entries: own } : { path, mode, entries: own, error: String(errors[failed + 1]) }
  })
}

function unpackEntries({ names, stamps, inodes, digests, numbers, odd }: PackedFolders): ProbedEntry[] {
  const [name, stamp, inode, digest] = [names, stamps, inodes, digests].map((text) => text.split('/'))
  const entries: Writable<ProbedEntry>[] = []
  let at = 0
  while (at < numbers.length) {
    const last = entries.length + (numbers[at + 1] ?? 0)
    at += 2
    for (let index = entries.length; index < last; index += 1) {
      const flags = numbers[at + 4] ?? 0
      const entry: Writable<ProbedEntry> = {
        name: name?.[index] ?? '',
        node: 'file',
        size: numbers[at] ?? 0,
        mode: numbers[at + 1] ?? 0,
        inode: inode?.[index] ?? '',
        stamp: stamp?.[index] ?? '',
        mtimeMs: numbers[at + 2] ?? 0,
        links: numbers[at + 3] ?? 0,
      }
      const bytes = digest?.[index] ?? ''
      if (bytes !== '') {
        entry.digest = bytes
        entry.replaced = (flags & replacedFlag) !== 0
      }
      if ((flags & deferredFlag) !== 0) entry.deferred = true
      entries.push(entry)
      at += numbersOfEntry
    }
  }
  for (let index = 0; index < odd.length; index += 3) {
    const entry = entries[Number(odd[index])]
    if (entry === undefined) continue
    entry.node = String(odd[index + 1])
    if (odd[index + 2] !== '') entry.error = String(odd[index + 2])
  }
  return entries
}
