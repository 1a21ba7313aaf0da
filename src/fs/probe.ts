import { hash, createHash } from 'node:crypto'
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readSync, type Dirent, type Stats } from 'node:fs'
import { systemErrorCode } from '../model/errors.js'
import { nodeWord, openPlain } from './blocks.js'
import type { Writable } from '../model/writable.js'

/** Files above this many bytes are not digested with their folder but as a job of their own. */
const largeFile = 8 * 1024 * 1024
const readSize = 128 * 1024

/** One entry of a folder: what it is, and the digest of its bytes when that was asked for. */
export interface ProbedEntry {
  readonly name: string
  /** `file`, or what else it is in words ("a symbolic link"). */
  readonly node: 'file' | (string & {})
  readonly size: number
  /** Permission bits and the special bits above them. */
  readonly mode: number
  /** Device and inode of a file with several links, else empty. */
  readonly inode: string
  readonly ino: number
  /** Modification time in milliseconds with fractions. */
  readonly mtimeMs: number
  readonly links: number
  /** sha256 in hex. */
  readonly digest?: string
  /** True when the bytes hold EF BF BD, the trace of a lossy decoding; only with a digest. */
  readonly replaced?: boolean
  /** True when the file is too large to be digested with its folder. */
  readonly deferred?: boolean
  /** System error code when the entry could not be read. */
  readonly error?: string
}

/** A folder that was looked into. */
export interface ProbedFolder {
  readonly path: string
  /** Permission bits of the folder. */
  readonly mode: number
  readonly entries: readonly ProbedEntry[]
  /** System error code when the folder could not be listed. */
  readonly error?: string
}

/** What to do with a folder: digest its files, or look at metadata only and open none. */
export interface ProbeJob {
  readonly path: string
  readonly digest: 'all' | 'none'
  /** Folders that are looked into in place of the path; the names of their entries get a prefix. */
  readonly parts?: readonly { readonly path: string; readonly prefix: string }[]
}

let shared: Buffer | undefined

/** Looks at the entries of one folder with synchronous reads into a reused buffer. Follows nothing, waits on nothing. */
export function probeFolder(job: ProbeJob): ProbedFolder {
  if (job.parts === undefined) return probeOne(job)
  const whole = probeOne({ path: job.path, digest: 'none' })
  if (whole.error !== undefined) return { ...whole, entries: [] }
  const parts = job.parts.map(({ path, prefix }) => ({ prefix, folder: probeOne({ path, digest: job.digest }) }))
  const error = parts.find(({ folder }) => folder.error !== undefined)?.folder.error
  const entries = parts.flatMap(({ prefix, folder }) => folder.entries.map((entry) => ({ ...entry, name: prefix + entry.name })))
  return { path: job.path, mode: whole.mode, entries, ...(error === undefined ? {} : { error }) }
}

function probeOne(job: ProbeJob): ProbedFolder {
  let mode = 0
  let entries: Dirent[]
  try {
    const folder = lstatSync(job.path)
    if (!folder.isDirectory()) return { path: job.path, mode: 0, entries: [], error: 'ENOTDIR' }
    mode = folder.mode & 0o7777
    entries = readdirSync(job.path, { withFileTypes: true })
  } catch (error) {
    return { path: job.path, mode, entries: [], error: systemErrorCode(error) ?? 'UNKNOWN' }
  }
  const probed = entries.map((entry): ProbedEntry => {
    if (!entry.isFile()) return outOfPlace(job.path, entry)
    return job.digest === 'all' ? probeContent(job.path, entry.name) : probeMetadata(job.path, entry.name)
  })
  return { path: job.path, mode, entries: probed.sort((a, b) => (a.name < b.name ? -1 : 1)) }
}

/** True for a file that is not digested with its folder. */
export function isLarge({ size }: { readonly size: number }): boolean {
  return size > largeFile
}

/** Digest of one file, or the system error code that kept it from being read. */
export interface FileDigest {
  readonly digest?: string
  readonly replaced?: boolean
  readonly error?: string
}

/** As `digestFile`, with the error as a value. */
export function tryDigest(path: string): FileDigest {
  try {
    return digestFile(path)
  } catch (error) {
    return { error: systemErrorCode(error) ?? 'UNKNOWN' }
  }
}

/**
 * sha256 in hex of one plain file, and whether its bytes hold a replacement character. Throws the system error, or
 * `NotRegularError` for anything but a plain file.
 */
export function digestFile(path: string): { digest: string; replaced: boolean } {
  const fd = openPlain(path)
  try {
    const { size } = fstatSync(fd)
    return digestOpen(fd, size)
  } finally {
    closeSync(fd)
  }
}

function probeContent(folder: string, name: string): ProbedEntry {
  const path = `${folder}/${name}`
  let fd: number
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    const code = systemErrorCode(error) ?? 'UNKNOWN'
    return { ...probeMetadata(folder, name), error: code }
  }
  try {
    const stats = fstatSync(fd)
    // Fields are set one by one: spreading would give every entry a shape of its own, which is slow ever after.
    const entry: Writable<ProbedEntry> = described(name, stats)
    if (entry.node !== 'file') return entry
    if (isLarge(stats)) entry.deferred = true
    else {
      const { digest, replaced } = digestOpen(fd, entry.size)
      entry.digest = digest
      entry.replaced = replaced
    }
    return entry
  } catch (error) {
    return { ...probeMetadata(folder, name), error: systemErrorCode(error) ?? 'UNKNOWN' }
  } finally {
    closeSync(fd)
  }
}

function probeMetadata(folder: string, name: string): ProbedEntry {
  try {
    return described(name, lstatSync(`${folder}/${name}`))
  } catch (error) {
    return { ...unknown(name, 'file'), error: systemErrorCode(error) ?? 'UNKNOWN' }
  }
}

function outOfPlace(folder: string, entry: Dirent): ProbedEntry {
  const found = probeMetadata(folder, entry.name)
  return found.error === undefined ? found : unknown(entry.name, nodeWord(entry))
}

// Numbers instead of big integers: half the cost, and times keep a quarter of a microsecond.
function described(name: string, stats: Stats): ProbedEntry {
  return {
    name,
    node: stats.isFile() ? 'file' : nodeWord(stats),
    size: stats.size,
    mode: stats.mode & 0o7777,
    inode: stats.nlink > 1 ? `${String(stats.dev)}:${String(stats.ino)}` : '',
    ino: stats.ino,
    mtimeMs: stats.mtimeMs,
    links: stats.nlink,
  }
}

/** Inode, modification time and size of a file as one word: equal words mean that nobody wrote to it in between. */
export function stampOf({ ino, mtimeMs, size }: { readonly ino: number; readonly mtimeMs: number; readonly size: number }): string {
  return `${String(ino)}-${String(mtimeMs)}-${String(size)}`
}

function unknown(name: string, node: string): ProbedEntry {
  return { name, node, size: 0, mode: 0, inode: '', ino: 0, mtimeMs: 0, links: 0 }
}

const replacement = Buffer.from([0xef, 0xbf, 0xbd])

function digestOpen(fd: number, size: number): { digest: string; replaced: boolean } {
  shared ??= Buffer.allocUnsafeSlow(readSize)
  const buffer = shared
  if (size < buffer.length) {
    // One read, asked for one byte too many: an answer of exactly the size is the whole file. A shorter one may go on.
    const count = readSync(fd, buffer, 0, size + 1, null)
    if (count === size) {
      const bytes = buffer.subarray(0, count)
      return { digest: hash('sha256', bytes, 'hex'), replaced: bytes.includes(replacement) }
    }
    return digestRest(fd, buffer, count)
  }
  return digestRest(fd, buffer, readSync(fd, buffer, 0, buffer.length, null))
}

/** A replacement character is looked for only in the first block of a large file: a hint, not proof. */
function digestRest(fd: number, buffer: Buffer, first: number): { digest: string; replaced: boolean } {
  const replaced = buffer.subarray(0, first).includes(replacement)
  const digest = createHash('sha256')
  let count = first
  while (count > 0) {
    digest.update(buffer.subarray(0, count))
    count = readSync(fd, buffer, 0, buffer.length, null)
  }
  return { digest: digest.digest('hex'), replaced }
}
