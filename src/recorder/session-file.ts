import { closeSync, constants, copyFileSync, fsync, linkSync, lstatSync, mkdirSync, openSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { isNoSpace, writeWhole } from '../fs/atomic-write.js'
import { syncFolder } from '../fs/sync-folder.js'
import { backupFolderOf, backupStateName, stateName, statePathOf } from '../formats/pi-candy-undo/layout.js'
import { serialiseState, type State } from '../formats/pi-candy-undo/state.js'
import { readStateFile, stateTrouble } from '../formats/pi-candy-undo/state-file.js'
import { LockedError, NewerFormatError, NoSpaceError, systemErrorCode } from '../model/errors.js'
import { isBackupName } from '../model/names.js'

/** Which file it was that was read: another one, or one that was written to, must be read again. */
interface FileStamp {
  readonly ino: number
  readonly size: number
  readonly mtimeMs: number
}

/**
 * The state.json of one session: read once and then only when somebody else wrote it; written by a temporary file, fsync and
 * rename, with the one before kept as `.bak`. What cannot be read whole is never taken for an empty one (formats/pi-candy-undo
 * section 15, 1).
 */
export class SessionFile {
  readonly #root: string
  readonly #session: string
  readonly #suffix: () => string
  readonly #written = new WeakMap<object, string>()
  #read: { readonly stamp: FileStamp; readonly state: State } | undefined

  /** @param suffix end of the name of a temporary file, new for each: `<pid>-<8 hex digits>` */
  constructor(root: string, session: string, suffix: () => string) {
    this.#root = root
    this.#session = session
    this.#suffix = suffix
  }

  get folder(): string {
    return join(this.#root, this.#session)
  }

  get backups(): string {
    return join(this.#root, backupFolderOf(this.#session))
  }

  /**
   * The state as it is on the disk; `undefined` for a session that has nothing yet.
   * @throws LockedError when it is damaged, of another session, or lost while backups are there; NewerFormatError for a newer one. The session is
   *   read-only then, and nothing was changed
   */
  load(): State | undefined {
    return this.#load(true)
  }

  /**
   * The same for one who does not hold the lock. Backups without a state tell nothing then: the one who holds it may be about to
   * publish the first.
   */
  peek(): State | undefined {
    return this.#load(false)
  }

  #load(locked: boolean): State | undefined {
    const stamp = this.#stamp()
    if (stamp !== undefined && this.#read !== undefined && sameFile(stamp, this.#read.stamp)) return this.#read.state
    const file = readStateFile(this.#root, statePathOf(this.#session))
    if (file.kind === 'missing' && (!locked || !this.#holdsBackups())) return undefined
    const path = join(this.#root, statePathOf(this.#session))
    if (file.kind === 'read' && file.parsed.kind === 'newer') {
      throw new NewerFormatError(`${path} is of version ${String(file.parsed.version)}; nothing was recorded, and nothing of the session was changed`, {
        hint: 'update rewind-admin',
      })
    }
    const trouble = stateTrouble(file)
    if (trouble !== undefined || file.kind !== 'read' || file.parsed.kind !== 'state') {
      throw new LockedError(`session ${this.#session} is read-only: ${trouble ?? 'its state cannot be read'}; nothing was recorded`, {
        hint: `rewind-admin repair ${this.#session} --apply`,
      })
    }
    const { state } = file.parsed
    if (state.sessionId !== this.#session) {
      throw new LockedError(`session ${this.#session} is read-only: its state says that it is of session ${state.sessionId}; nothing was recorded`, {
        hint: `rewind-admin verify ${this.#session}`,
      })
    }
    if (stamp !== undefined && !file.changed) this.#read = { stamp, state }
    return state
  }

  /** Makes the folders of the session, for its owner only, and what lies above them. */
  prepare(): void {
    mkdirSync(this.backups, { recursive: true, mode: 0o700 })
  }

  /**
   * Publishes a state. The caller holds the lock and has just loaded the one that it is made from.
   * @param written open files that the state names: they are synced first
   * @throws NoSpaceError when the disk is full; system errors. The old state is as it was
   */
  async save(state: State, written: readonly number[] = []): Promise<void> {
    const path = join(this.folder, stateName)
    const temporary = `${path}.tmp-${this.#suffix()}`
    try {
      const fd = openSync(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600)
      try {
        writeWhole(fd, serialiseState(state, this.#written))
        await this.#flush(fd, written)
      } finally {
        closeSync(fd)
      }
      this.#keepPrevious(path)
      renameSync(temporary, path)
    } catch (error) {
      rmSync(temporary, { force: true })
      if (!isNoSpace(error)) throw error
      throw new NoSpaceError(`no space left to write ${path}; the state before is untouched`, { hint: 'free some space', cause: error })
    }
    syncFolder(this.folder)
    const stamp = this.#stamp()
    this.#read = stamp === undefined ? undefined : { stamp, state }
  }

  /** At once, so that a journaling file system commits once for all of them. */
  async #flush(fd: number, written: readonly number[]): Promise<void> {
    const folder = written.length === 0 ? undefined : openFolder(this.backups)
    try {
      const flushes = await Promise.allSettled([...written, fd].map((each) => flushFile(each)).concat(folder === undefined ? [] : [flushFile(folder).catch(() => undefined)]))
      for (const each of flushes) if (each.status === 'rejected') throw each.reason
    } finally {
      if (folder !== undefined) closeSync(folder)
    }
  }

  /** The state before stays under its own name: a link, so that there is a state.json at every moment. */
  #keepPrevious(path: string): void {
    const backup = join(this.folder, backupStateName)
    const temporary = `${path}.tmp-${this.#suffix()}`
    try {
      linkSync(path, temporary)
    } catch (error) {
      const code = systemErrorCode(error)
      if (code === 'ENOENT') return
      if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EOPNOTSUPP' && code !== 'ENOSYS' && code !== 'EMLINK') throw error
      copyFileSync(path, temporary, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
    }
    try {
      renameSync(temporary, backup)
      // Renaming onto another name of the same file does nothing, and leaves both.
      rmSync(temporary, { force: true })
    } catch (error) {
      rmSync(temporary, { force: true })
      throw error
    }
  }

  #stamp(): FileStamp | undefined {
    const status = lstatSync(join(this.folder, stateName), { throwIfNoEntry: false })
    return status === undefined ? undefined : { ino: status.ino, size: status.size, mtimeMs: status.mtimeMs }
  }

  #holdsBackups(): boolean {
    try {
      // A copy that waits for its name is none.
      return readdirSync(this.backups).some(isBackupName)
    } catch (error) {
      if (systemErrorCode(error) === 'ENOENT') return false
      throw error
    }
  }
}

const flushFile = promisify(fsync)

/** A folder to sync; `undefined` on systems that cannot open one. */
function openFolder(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY)
  } catch {
    return undefined
  }
}

function sameFile(a: FileStamp, b: FileStamp): boolean {
  return a.ino === b.ino && a.size === b.size && a.mtimeMs === b.mtimeMs
}
