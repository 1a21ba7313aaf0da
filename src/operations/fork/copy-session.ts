import { chmodSync, closeSync, fsyncSync, lstatSync, mkdirSync, openSync, rmSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import type { Copying, SessionCopy, Store } from '../../formats/format.js'
import { AnchoredFolder } from '../../fs/anchored-folder.js'
import { isNoSpace, writeWhole } from '../../fs/atomic-write.js'
import { flush, type Written } from '../../fs/flush.js'
import { Transfer } from '../../fs/link-or-copy.js'
import { sweepTemporary, temporaryNameOf } from '../../fs/publish.js'
import { joinSafe, parentOf } from '../../fs/safe-path.js'
import { FenceError, NewerFormatError, NoSpaceError, UsageError } from '../../model/errors.js'
import { ExitCode } from '../../model/exit-code.js'
import { finding, type Finding } from '../../model/finding.js'
import type { Report } from '../../model/report.js'
import type { SessionReading, SessionRef } from '../../model/session.js'
import type { ForkContext, ForkOptions } from './options.js'
import { assertCopied } from './prove.js'
import { CopyPublisher, type Published } from './publish-copy.js'
import { findDeparture } from './records.js'

/**
 * Gives a session whose conversation the agent forks itself copies of what the source keeps beside its own: records, backups and
 * markers, with their modes and times (design promise 7). Made beside its place, compared with the source, and published whole; what the
 * target has already stays. Hold the store's lock.
 * @throws as `fork`
 */
export async function copySession(store: Store, copying: Copying, source: SessionRef, newId: string, options: ForkOptions, context: ForkContext): Promise<Report> {
  if (!copying.isSessionId(newId)) throw new UsageError(`${JSON.stringify(newId)} cannot be the id of a session`, { hint: 'give it as the agent names the folder of the session' })
  const reading = readKnown(store, source, context.now)
  const target = store.inventory().sessions.find(({ id }) => id === newId)
  if (target !== undefined) readKnown(store, target, context.now)
  const plan = copying.plan(source, newId, options.at)
  const name = temporaryNameOf(context)
  const staged = join(store.root, name)
  const swept = sweepTemporary(store.root, context, (pid) => context.processExists(pid), context.now)
  try {
    const copied = await new CopyStage(join(store.root, store.backupFolder(source.id)), staged, plan, options, context).make()
    compare(store, name, reading, plan, context.now)
    const published = new CopyPublisher(staged, joinSafe(store.root, store.backupFolder(newId)), plan).publish()
    return report(store, source.id, newId, plan, { copied, published, swept: swept.length })
  } catch (error) {
    if (!isNoSpace(error)) throw error
    throw new NoSpaceError(`no space left for session ${newId}; what was made of it was taken away again`, { hint: 'free some space, then run again', cause: error })
  } finally {
    rmSync(staged, { recursive: true, force: true })
  }
}

function readKnown(store: Store, session: SessionRef, now: number): SessionReading {
  const reading = store.read(session, { now })
  const newer = reading.findings.find(({ id }) => id === 'newer-format')
  if (newer !== undefined) throw new NewerFormatError(`session ${session.id}: ${newer.message}; nothing was made`, { hint: 'update rewind-admin' })
  return reading
}

/** Where no record had to be written anew, every checkpoint of the copy says what that of the source says. */
function compare(store: Store, name: string, source: SessionReading, plan: SessionCopy, now: number): void {
  if (plan.files.length > 0) return
  const departure = findDeparture(source.history, store.read({ id: name, members: [] }, { now }).history, plan.left === 0)
  if (departure === undefined || departure.path === '') return
  const { checkpoint, path } = departure
  throw new FenceError(`checkpoint ${checkpoint} of the copy says another thing of ${path} than the source; nothing was made`, { hint: 'run again when the session is quiet' })
}

/** Makes the copy in a folder of its own. */
class CopyStage {
  readonly #source: string
  readonly #staged: string
  readonly #plan: SessionCopy
  readonly #context: ForkContext
  readonly #transfer: Transfer
  readonly #written: Written[] = []
  #bytes = 0

  constructor(source: string, staged: string, plan: SessionCopy, options: ForkOptions, context: ForkContext) {
    this.#source = source
    this.#staged = staged
    this.#plan = plan
    this.#context = context
    this.#transfer = new Transfer({ method: options.method === 'copy' ? 'copy' : 'reflink', acts: context.acts })
  }

  /** Returns how many files and bytes were copied. */
  make(): Promise<{ readonly files: number; readonly bytes: number }> {
    mkdirSync(this.#staged, { mode: 0o700 })
    const byFolder = new Map<string, string[]>()
    for (const { path } of this.#plan.copies) byFolder.set(parentOf(path), [...(byFolder.get(parentOf(path)) ?? []), path.slice(path.lastIndexOf('/') + 1)])
    for (const { path } of this.#plan.files) if (!byFolder.has(parentOf(path))) byFolder.set(parentOf(path), [])
    let done = 0
    for (const [folder, names] of byFolder) {
      this.#context.signal?.throwIfAborted()
      this.#folder(folder, names)
      done += names.length
      this.#context.progress?.(done, this.#plan.copies.length)
    }
    const whole = lstatSync(this.#source)
    chmodSync(this.#staged, whole.mode & 0o7777)
    utimesSync(this.#staged, whole.atime, whole.mtime)
    flush(this.#written, this.#context.syncFileSystem)
    return Promise.resolve({ files: this.#plan.copies.length + this.#plan.files.length, bytes: this.#bytes })
  }

  #folder(folder: string, names: readonly string[]): void {
    const path = folder === '' ? this.#staged : join(this.#staged, folder)
    if (folder !== '') mkdirSync(path, { mode: 0o700 })
    const from = AnchoredFolder.open(folder === '' ? this.#source : join(this.#source, folder))
    const to = AnchoredFolder.open(path)
    try {
      for (const name of names) {
        this.#transfer.take(from.at(name), to.at(name), `${String(from.device)}:${String(to.device)}`)
        this.#bytes += assertCopied(from, to, name)
        this.#written.push({ path: join(path, name), folder: path, device: to.device, isFolder: false })
      }
      for (const file of this.#plan.files) if (parentOf(file.path) === folder) this.#write(to, file.path.slice(folder.length + 1), file.bytes, from)
    } finally {
      from.close()
      to.close()
    }
    if (folder === '') return
    const like = lstatSync(join(this.#source, folder))
    chmodSync(path, like.mode & 0o7777)
    utimesSync(path, like.atime, like.mtime)
  }

  /** A file that is not a copy has the time of its folder in the source, so that the copy does not look younger. */
  #write(folder: AnchoredFolder, name: string, bytes: Buffer, from: AnchoredFolder): void {
    const like = lstatSync(from.at('.'))
    const fd = openSync(folder.at(name), 'wx', 0o644)
    try {
      writeWhole(fd, bytes)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    utimesSync(folder.at(name), like.atime, like.mtime)
    this.#bytes += bytes.length
  }
}

interface Done {
  readonly copied: { readonly files: number; readonly bytes: number }
  readonly published: Published
  readonly swept: number
}

function report(store: Store, source: string, target: string, plan: SessionCopy, { copied, published, swept }: Done): Report {
  const findings = published.differing.map(
    (path): Finding => finding('fork-differs', `differs from the same file in session ${source}; both were left as they are`, { session: target, path: `${store.backupFolder(target)}/${path}` }),
  )
  const made = copied.files - published.present - published.differing.length
  return {
    command: 'fork',
    roots: [store.root],
    applied: made > 0,
    summary: {
      source,
      target,
      transcript: 'made by the agent',
      checkpoints: plan.checkpoints,
      left: plan.left,
      linked: 0,
      copied: made,
      bytesCopied: copied.bytes,
      present: published.present,
      missing: 0,
      differing: published.differing.length,
      swept,
    },
    findings,
    plan: [],
    kept: [],
    errors: [],
    exitCode: findings.length > 0 ? ExitCode.findings : ExitCode.done,
    extra: { linked: 0, copied: made, present: published.present },
  }
}
