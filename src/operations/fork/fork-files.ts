import { chmodSync, closeSync, fsyncSync, lstatSync, mkdirSync, openSync, rmSync, rmdirSync, type Stats } from 'node:fs'
import { basename, dirname, join, relative as relativePath } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import type { ForkRequest } from '../../formats/conversation.js'
import type { Store } from '../../formats/format.js'
import { AnchoredFolder } from '../../fs/anchored-folder.js'
import { isNoSpace, writeWhole } from '../../fs/atomic-write.js'
import { flush, type Written } from '../../fs/flush.js'
import { Transfer } from '../../fs/link-or-copy.js'
import { publishFile, publishFolder, sweepTemporary, temporaryNameOf } from '../../fs/publish.js'
import { insideRoot, joinSafe } from '../../fs/safe-path.js'
import { syncFolder } from '../../fs/sync-folder.js'
import { FenceError, NoSpaceError, systemErrorCode } from '../../model/errors.js'
import { membersOf, type SessionRef } from '../../model/session.js'
import type { Lacking } from './choose.js'
import type { ForkContext, ForkOptions } from './options.js'
import { assertCopied, assertPlain, assertSame, changedWhilePublished, isReadable, isSameNode, readabilityCheck, takeBack } from './prove.js'
import { freeBytesOf, ownLike } from './place.js'

/** Bytes that a fork leaves free for others on the file system. */
const spaceMargin = 1024 * 1024
/** Files made between two looks at whether the run was stopped. */
const filesPerTurn = 256

/** What is made of a fork on the disk: beside its place first, then published, and taken away again when anything fails. */
export class ForkFiles {
  readonly counts = { linked: 0, copied: 0, bytesCopied: 0 }
  readonly swept: string[] = []
  readonly #store: Store
  readonly #source: SessionRef
  readonly #newId: string
  readonly #options: ForkOptions
  readonly #context: ForkContext
  readonly #stagedFolder: string
  readonly #finalFolder: string
  /** Where a session has a folder of its own: all of it is made in one folder, and published at once. */
  readonly #whole: { readonly staged: string; readonly final: string } | undefined
  readonly #taken: string[] = []
  #transcript: { readonly staged: string; readonly final: string } | undefined
  /** How to take back what was published, the newest first. */
  readonly #undo: (() => void)[] = []

  constructor(store: Store, source: SessionRef, newId: string, options: ForkOptions, context: ForkContext) {
    this.#store = store
    this.#source = source
    this.#newId = newId
    this.#options = options
    this.#context = context
    this.#finalFolder = joinSafe(store.root, store.backupFolder(newId))
    const own = store.conversations?.ownFolder?.(newId)
    this.#whole = own === undefined ? undefined : { staged: join(store.root, temporaryNameOf(context)), final: joinSafe(store.root, own) }
    this.#stagedFolder = this.#whole === undefined ? join(dirname(this.#finalFolder), temporaryNameOf(context)) : join(this.#whole.staged, basename(this.#finalFolder))
  }

  /** Removes what killed runs left where this one works (R87). */
  sweep(): void {
    const { pid, token, now } = this.#context
    const folders = this.#whole === undefined ? [this.#stagedFolder, join(this.#store.root, this.#transcriptPath())].map((path) => dirname(path)) : [this.#store.root]
    for (const folder of folders) {
      this.swept.push(...sweepTemporary(folder, { pid, token }, (other) => this.#context.processExists(other), now))
    }
  }

  /** Writes the transcript of the fork beside its place. Returns the session as it stands there, to be read and compared. */
  writeTranscript(request: ForkRequest): SessionRef {
    const relative = this.#transcriptPath()
    const transcripts = membersOf(this.#source, 'transcript')
    const [first] = transcripts
    const final = this.#whole === undefined ? insideRoot(this.#store.root, relative) : joinSafe(this.#store.root, relative)
    const original = first === undefined ? undefined : lstatSync(join(this.#store.root, first.path))
    if (final === undefined || original === undefined) throw new FenceError(`the folder for ${relative} is gone; nothing was made`)
    const folder = this.#whole?.staged ?? join(dirname(final), temporaryNameOf(this.#context))
    this.#assertSpace(dirname(folder), transcripts.reduce((sum, { path }) => sum + lstatSync(join(this.#store.root, path)).size, 0))
    const staged = join(folder, basename(final))
    this.#transcript = { staged, final }
    this.#withSpace(() => {
      mkdirSync(folder, { mode: 0o700 })
      const fd = openSync(staged, 'wx', 0o600)
      try {
        this.#store.conversations?.forkTranscript(this.#source, request, (bytes) => { writeWhole(fd, bytes) })
        ownLike(staged, original)
        fsyncSync(fd)
      } finally {
        closeSync(fd)
      }
      chmodSync(staged, original.mode & 0o7777)
    })
    return { id: this.#newId, members: [{ kind: 'transcript', path: relativePath(this.#store.root, staged), folder: false }] }
  }

  /**
   * Gives the backups to a folder beside that of the target, and proves that they hold the same bytes. Returns those that
   * cannot be read: then the fork must not be published (R64).
   */
  async stage(names: readonly string[]): Promise<readonly Lacking[]> {
    if (names.length === 0) return []
    const sourcePath = join(this.#store.root, this.#store.backupFolder(this.#source.id))
    const source = AnchoredFolder.open(sourcePath)
    let staged: AnchoredFolder | undefined
    try {
      mkdirSync(this.#stagedFolder, { mode: 0o700 })
      staged = AnchoredFolder.open(this.#stagedFolder)
      const unreadable = await this.#transferAll(names, source, staged)
      const like = lstatSync(sourcePath)
      ownLike(this.#stagedFolder, like)
      chmodSync(this.#stagedFolder, like.mode & 0o7777)
      return unreadable
    } catch (error) {
      throw this.#explain(error)
    } finally {
      source.close()
      staged?.close()
    }
  }

  /** Publishes the backups, then the transcript. After an error nothing of them is left in the store. */
  publish(): void {
    try {
      if (this.#whole !== undefined) {
        this.#publishWhole(this.#whole)
        return
      }
      if (this.#taken.length > 0) this.#publishBackups()
      if (this.#transcript !== undefined) this.#publishTranscript(this.#transcript)
    } catch (error) {
      for (const undo of this.#undo.reverse()) undo()
      this.counts.linked = 0
      this.counts.copied = 0
      throw this.#explain(error)
    }
  }

  /** Takes away what is left beside the places. */
  close(): void {
    rmSync(this.#whole?.staged ?? this.#stagedFolder, { recursive: true, force: true })
    if (this.#transcript !== undefined) rmSync(dirname(this.#transcript.staged), { recursive: true, force: true })
  }

  async #transferAll(names: readonly string[], source: AnchoredFolder, staged: AnchoredFolder): Promise<Lacking[]> {
    const transfer = new Transfer({
      method: this.#options.method ?? (this.#store.linksAreSafe ? 'link' : 'reflink'),
      acts: this.#context.acts,
      beforeCopying: () => {
        this.#assertSpace(this.#stagedFolder, names.reduce((sum, name) => sum + lstatSync(source.at(name)).size, 0))
      },
    })
    const devices = `${String(source.device)}:${String(staged.device)}`
    const assertReadable = readabilityCheck(staged)
    const unreadable: Lacking[] = []
    const written: Written[] = []
    for (const [index, name] of names.entries()) {
      if (index % filesPerTurn === 0) await this.#rest(index, names.length)
      try {
        const how = transfer.take(source.at(name), staged.at(name), devices)
        if (how === 'linked') assertReadable(name)
        else {
          this.counts.bytesCopied += assertCopied(source, staged, name)
          written.push({ path: join(staged.path, name), folder: staged.path, device: staged.device, isFolder: false })
        }
        this.counts[how] += 1
        this.#taken.push(name)
      } catch (error) {
        const code = systemErrorCode(error)
        if ((code !== 'EACCES' && code !== 'EPERM') || isReadable(source, name)) throw error
        unreadable.push({ name, reason: code })
      }
    }
    flush([...written, { path: staged.path, folder: staged.path, device: staged.device, isFolder: true }], this.#context.syncFileSystem)
    assertPlain(staged, this.#taken)
    await this.#rest(names.length, names.length)
    return unreadable
  }

  /** Lets a signal be heard. */
  async #rest(done: number, total: number): Promise<void> {
    await turn()
    this.#context.signal?.throwIfAborted()
    this.#context.progress?.(done, total)
  }

  #publishBackups(): void {
    const parent = dirname(this.#finalFolder)
    const staged = lstatSync(this.#stagedFolder)
    if (publishFolder(this.#stagedFolder, this.#finalFolder)) {
      this.#undo.push(() => { this.#takeFolderBack(staged) })
      // The very folder in which every backup was proven.
      if (!isSameNode(lstatSync(this.#finalFolder), staged)) throw changedWhilePublished(this.#finalFolder)
      syncFolder(parent)
      return
    }
    const folder = AnchoredFolder.open(this.#finalFolder)
    try {
      for (const name of this.#taken) {
        const made = lstatSync(join(this.#stagedFolder, name))
        publishFile(join(this.#stagedFolder, name), folder.at(name))
        this.#undo.push(() => { takeBack(join(this.#finalFolder, name), made) })
        assertSame(folder, name, made)
      }
    } finally {
      folder.close()
    }
    syncFolder(this.#finalFolder)
  }

  #publishWhole({ staged, final }: { staged: string; final: string }): void {
    const like = lstatSync(join(this.#store.root, this.#store.conversations?.ownFolder?.(this.#source.id) ?? this.#source.id))
    ownLike(staged, like)
    chmodSync(staged, like.mode & 0o7777)
    flush([{ path: staged, folder: staged, device: lstatSync(staged).dev, isFolder: true }], this.#context.syncFileSystem)
    const made = lstatSync(staged)
    if (!publishFolder(staged, final)) throw new FenceError(`${final} appeared meanwhile and was left as it is; nothing was made`)
    if (!isSameNode(lstatSync(final), made)) throw changedWhilePublished(final)
    syncFolder(dirname(final))
  }

  /** What the agent put into the folder meanwhile stays, and the folder with it. */
  #takeFolderBack(staged: Stats): void {
    if (!isSameNode(lstatSync(this.#finalFolder), staged)) return
    for (const name of this.#taken) rmSync(join(this.#finalFolder, name), { force: true })
    try {
      rmdirSync(this.#finalFolder)
    } catch (error) {
      if (systemErrorCode(error) !== 'ENOTEMPTY') throw error
    }
  }

  #publishTranscript({ staged, final }: { staged: string; final: string }): void {
    const made = lstatSync(staged)
    if (insideRoot(this.#store.root, this.#transcriptPath()) === undefined) throw new FenceError(`the folder for ${final} is gone; nothing was made`)
    try {
      publishFile(staged, final)
    } catch (error) {
      if (systemErrorCode(error) !== 'EEXIST') throw error
      throw new FenceError(`${final} appeared meanwhile and was not overwritten; the backups were taken away again`, { hint: 'run again: it gets its backups then' })
    }
    this.#undo.push(() => { takeBack(final, made) })
    syncFolder(dirname(final))
  }

  #transcriptPath(): string {
    return this.#store.conversations?.transcriptPath(this.#source, this.#newId) ?? this.#newId
  }

  #assertSpace(folder: string, bytes: number): void {
    const free = (this.#context.freeBytes ?? freeBytesOf)(folder)
    if (free === undefined || free >= bytes + spaceMargin) return
    throw new NoSpaceError(`the fork needs ${String(bytes)} bytes in ${folder}, where ${String(free)} are free; nothing was made`, { hint: 'free some space, then run again' })
  }

  #withSpace(act: () => void): void {
    try {
      act()
    } catch (error) {
      throw this.#explain(error)
    }
  }

  #explain(error: unknown): unknown {
    if (!isNoSpace(error)) return error
    return new NoSpaceError(`no space left for session ${this.#newId}; what was made of it was taken away again`, { hint: 'free some space, then run again', cause: error })
  }
}
