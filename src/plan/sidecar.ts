import { chownSync, existsSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isNoSpace } from '../fs/atomic-write.js'
import { statusOf } from '../fs/identity.js'
import { acquireLock } from '../fs/lock.js'
import type { HeldLock, LockOptions } from '../fs/lock.js'
import { FenceError, NoSpaceError, systemErrorCode } from '../model/errors.js'
import type { FileActs } from './file-acts.js'
import { Acts } from './file-acts.js'
import { FolderTimes } from './folder-times.js'

/** Where a store and our own folder are. `Store` and `Plan` both have these. */
export interface StorePlace {
  /** Real path of the root. */
  readonly root: string
  readonly sidecar: string
}

/** Bytes kept aside so that a run on a full disk can still write its lock, its journal and the folders of its trash. */
export const reserveBytes = 256 * 1024

const readme = `This folder belongs to rewind-admin: its lock, journals, seals and trash for the store beside it.
What was removed from the store waits in trash/ and comes back with: rewind-admin trash restore <run>
`

/** Our own folder beside a store: its places, and how it is made (design section 4, promise 10). */
export class Sidecar {
  readonly root: string
  readonly path: string
  /** User and group that what we make belongs to, when it is not the user who runs this. */
  readonly owner: { readonly uid: number; readonly gid: number } | undefined
  readonly acts: FileActs

  constructor(place: StorePlace, acts: FileActs = new Acts().direct) {
    this.root = place.root
    this.path = place.sidecar
    this.acts = acts
    this.owner = otherOwner(place.root)
  }

  get lock(): string {
    return join(this.path, 'lock')
  }

  get trash(): string {
    return join(this.path, 'trash')
  }

  get journals(): string {
    return join(this.path, 'journals')
  }

  /** Files made for a `replace` action, until they are published. */
  get staging(): string {
    return join(this.path, 'staging')
  }

  get reserve(): string {
    return join(this.path, 'reserve')
  }

  exists(): boolean {
    return existsSync(this.path)
  }

  /**
   * Makes the folder and what it needs, 0700, and leaves the time of the folder above as it was.
   * @throws NoSpaceError when there is no room for a folder; FenceError when something else stands there or the place is read-only
   */
  prepare(): void {
    try {
      const times = new FolderTimes()
      if (!this.exists()) times.before(dirname(this.path))
      for (const folder of [dirname(this.path), this.path]) if (folder !== this.root) this.#ensure(folder)
      times.after(dirname(this.path))
      for (const folder of [this.trash, this.journals]) this.makeFolder(folder)
      this.#writeReadme()
      times.putBack()
    } catch (error) {
      throw this.explain(error)
    }
  }

  /** Makes a folder of ours if it is not there. @throws FenceError when something else stands there; system errors */
  makeFolder(folder: string): void {
    this.#ensure(folder)
  }

  /** Writes a new file of ours, readable by its owner only. @throws system errors; what was written of it is removed */
  writeFile(path: string, text: string): void {
    try {
      this.acts.create(path, Buffer.from(text))
      this.own(path)
    } catch (error) {
      if (systemErrorCode(error) !== 'EEXIST') this.#forget(path)
      throw error
    }
  }

  /** Gives a path of ours to the owner of the store. */
  own(path: string): void {
    if (this.owner !== undefined) chownSync(path, this.owner.uid, this.owner.gid)
  }

  /** Gives the bytes kept aside back to the disk. Returns whether there were any. */
  releaseReserve(): boolean {
    return this.#forget(this.reserve)
  }

  /** Puts bytes aside for a day when the disk is full. Not being able to is no error: then there is no reserve. */
  fillReserve(): void {
    if (statusOf(this.reserve)?.size === BigInt(reserveBytes)) return
    this.#forget(this.reserve)
    try {
      // Not zeroes: a file system that stores runs of zeroes as nothing would keep nothing aside.
      writeFileSync(this.reserve, Buffer.alloc(reserveBytes, 'rewind-admin reserve\n'), { flag: 'wx', mode: 0o600 })
      this.own(this.reserve)
    } catch {
      this.#forget(this.reserve)
    }
  }

  /** Does something that needs space, once more with the reserve given back. @throws what the last try threw */
  withRoom<T>(write: () => T): T {
    try {
      return write()
    } catch (error) {
      if (!isNoSpace(error) || !this.releaseReserve()) throw error
      return write()
    }
  }

  /** Turns a system error in our folder into one that says what it means for the store. */
  explain(error: unknown): unknown {
    const code = systemErrorCode(error)
    if (isNoSpace(error)) {
      return new NoSpaceError(`no space left for our own folder ${this.path}; nothing was moved`, {
        hint: 'free a few kilobytes, run "rewind-admin trash empty --apply", or remove for good with --no-trash',
        cause: error,
      })
    }
    if (code !== 'EROFS' && code !== 'EACCES' && code !== 'EPERM') return error
    return new FenceError(`our own folder ${this.path} cannot be written (${code}); nothing was moved`, {
      hint: 'run as the owner of the store, on a file system that is mounted for writing',
      cause: error,
    })
  }

  #ensure(folder: string): void {
    const there = statusOf(folder)
    if (there === undefined) {
      this.#makeNew(folder)
    } else if (!there.isDirectory()) {
      throw new FenceError(`${folder} is not a folder; nothing was moved`, { hint: `move ${folder} away, then run again` })
    } else if (folder.startsWith(this.path) && (there.mode & 0o077n) !== 0n) {
      this.acts.chmod(folder, 0o700)
    }
    if (folder === this.path && realpathSync.native(folder) !== folder) {
      throw new FenceError(`${folder} leads elsewhere through a link; nothing was moved`)
    }
  }

  #makeNew(folder: string): void {
    try {
      this.withRoom(() => {
        this.acts.mkdir(folder, 0o700)
      })
    } catch (error) {
      // Another run that begins at the same time was faster; what stands there is looked at like anything else.
      if (systemErrorCode(error) !== 'EEXIST' || statusOf(folder) === undefined) throw error
      this.#ensure(folder)
      return
    }
    this.own(folder)
  }

  #writeReadme(): void {
    const path = join(this.path, 'README')
    if (existsSync(path)) return
    try {
      this.writeFile(path, readme)
    } catch {
      // Only a courtesy: a full disk shows itself where it matters.
    }
  }

  #forget(path: string): boolean {
    try {
      this.acts.unlink(path)
      return true
    } catch {
      return false
    }
  }
}

/**
 * Takes the lock of a store, making the sidecar first.
 * @throws LockedError when another run holds it; NoSpaceError and FenceError when the sidecar cannot be made
 */
export async function lockStore(place: StorePlace, options: Omit<LockOptions, 'owner'>): Promise<HeldLock> {
  const sidecar = new Sidecar(place)
  sidecar.prepare()
  const owner = sidecar.owner
  return acquireLock(sidecar.lock, { ...options, ...(owner === undefined ? {} : { owner }) })
}

/** A privileged user who looks after the store of another one leaves what it makes to that one. */
function otherOwner(root: string): { uid: number; gid: number } | undefined {
  if (process.geteuid?.() !== 0) return undefined
  const status = statusOf(root)
  return status === undefined || status.uid === 0n ? undefined : { uid: Number(status.uid), gid: Number(status.gid) }
}

/**
 * Makes the `staging` folder and returns the path for a file in it. The caller writes the file, with the mode and times it shall have.
 * @throws NoSpaceError and FenceError when the sidecar cannot be made
 */
export function stagingPath(place: StorePlace, name: string): string {
  const sidecar = new Sidecar(place)
  sidecar.prepare()
  sidecar.makeFolder(sidecar.staging)
  return join(sidecar.staging, name)
}
