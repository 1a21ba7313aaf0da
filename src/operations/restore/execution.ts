import { rmdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { AnchoredFolder } from '../../fs/anchored-folder.js'
import { flush, type Written } from '../../fs/flush.js'
import { discard, removeFile, renameOver, stageBeside, writeInPlace, type NewContent, type Way } from '../../fs/replace-file.js'
import { RewindAdminError, systemErrorCode } from '../../model/errors.js'
import type { PlannedPath, TargetPlace } from '../../model/restore-plan.js'
import type { BackupSource } from './backup-source.js'
import { FolderCursor } from './folder-cursor.js'
import { missingFolders, temporaryPrefix } from './redo-point.js'

/** One path that could not be done, with a system error code or one of ours. */
export interface PathFailure {
  readonly path: string
  readonly code: string
  readonly reason: string
}

export interface ExecutionOptions {
  /** Where the new bytes come from; not needed when nothing but deletes is done. */
  readonly source: BackupSource | undefined
  /** Hex digits, new for each run. */
  readonly token: string
  /** Goes on when a path fails. */
  readonly partial: boolean
}

/** A planned path that is known to change something, and where. */
export type Change = PlannedPath & { readonly place: TargetPlace }

/**
 * Changes a working tree in two phases: everything that can fail for want of space or rights happens beside the targets
 * (`stage`), and only then are names changed (`commit`). Unless `partial`, either stops at the first failure.
 */
export class Execution {
  /** Paths whose file may have changed, in the order in which they were worked on. */
  readonly touched: Change[] = []
  readonly failures: PathFailure[] = []
  readonly #options: ExecutionOptions
  readonly #staged = new Map<Change, { readonly name: string; readonly way: Way }>()
  readonly #made: string[] = []
  readonly #written: Written[] = []
  readonly #folders = new Map<string, Written>()
  #number = 0

  constructor(options: ExecutionOptions) {
    this.#options = options
  }

  /** Files that `stage` wrote and that still have to be flushed. */
  get written(): readonly Written[] {
    return this.#written
  }

  /** Makes missing folders and writes the temporary files. True when the commit may follow. */
  stage(changes: readonly Change[]): boolean {
    return this.#each(
      changes.filter((change) => change.decision.action === 'restore' && !change.late),
      (change, cursor) => {
        this.#stageOne(change, cursor)
      },
    )
  }

  /** Deletes, removes the folders in `emptied` that are empty, and renames. True when every change was made. */
  commit(changes: readonly Change[], emptied: readonly string[]): boolean {
    const failed = new Set(this.failures.map((failure) => failure.path))
    const left = changes.filter((change) => !failed.has(change.path))
    const deleted = this.#each(
      left.filter((change) => change.decision.action === 'delete'),
      (change, cursor) => {
        const folder = cursor.to(change.place.folder)
        removeFile(folder, change.place.name, change.node)
        this.touched.push(change)
        this.#note(folder)
      },
    )
    if (deleted) removeEmpty(emptied)
    const written =
      deleted &&
      this.#each(
        left.filter((change) => change.decision.action === 'restore'),
        (change, cursor) => {
          this.#commitOne(change, cursor)
        },
      )
    // The first folder takes the renames of all others to the disk with it; a sync of the whole file system costs more.
    flush([...this.#folders.values()], undefined)
    return written
  }

  /** Takes away every temporary file that is left, and the folders made for files that never came. */
  discard(): void {
    const cursor = new FolderCursor()
    try {
      for (const [change, { name, way }] of this.#staged) {
        if (way === 'rename') discardIn(cursor, change.place.folder, name)
      }
    } finally {
      cursor.close()
    }
    this.#staged.clear()
    removeEmpty(this.#made.toReversed())
  }

  #stageOne(change: Change, cursor: FolderCursor): void {
    const folder = this.#folderFor(change, cursor)
    this.#number += 1
    const name = `${temporaryPrefix(this.#options.token)}${String(this.#number)}`
    const way = stageBeside(folder, name, this.#contentOf(change), change.node)
    this.#staged.set(change, { name, way })
    if (way === 'rename') this.#written.push({ path: join(folder.path, name), folder: folder.path, device: folder.device, isFolder: false })
  }

  #commitOne(change: Change, cursor: FolderCursor): void {
    if (change.late) {
      this.#stageOne(change, cursor)
      flush(this.#written.splice(-1), undefined)
    }
    const staged = this.#staged.get(change)
    if (staged === undefined) return
    const folder = cursor.to(change.place.folder)
    const { name } = change.place
    if (staged.way === 'in-place') {
      // From the first byte on the old file is gone: what follows must put it back.
      this.touched.push(change)
      writeInPlace(folder, name, this.#contentOf(change), change.node)
    } else {
      renameOver(folder, name, staged.name, change.node)
      this.touched.push(change)
    }
    this.#staged.delete(change)
    this.#note(folder)
  }

  #folderFor(change: Change, cursor: FolderCursor): AnchoredFolder {
    const missing = missingFolders(change.place).filter((path) => !cursor.isAt(path))
    for (const path of missing) {
      const { folder, made } = cursor.to(dirname(path)).makeFolder(basename(path), 0o777)
      folder.close()
      if (made) this.#made.push(path)
      if (made) this.#note(cursor.to(dirname(path)))
    }
    return cursor.to(change.place.folder)
  }

  #contentOf({ decision }: Change): NewContent {
    const { source } = this.#options
    if (decision.action !== 'restore' || source === undefined) throw new Error('only a restored path has content')
    const { backup, offset, size, mode } = decision
    return { at: source.at(backup), stretch: { offset, size }, ...(mode === undefined ? {} : { mode }) }
  }

  /** Works on changes folder by folder. */
  #each(changes: readonly Change[], act: (change: Change, cursor: FolderCursor) => void): boolean {
    const cursor = new FolderCursor()
    try {
      for (const change of [...changes].sort((a, b) => compare(a.place.folder, b.place.folder))) {
        try {
          act(change, cursor)
        } catch (error) {
          this.failures.push(failureOf(change.path, error))
          if (!this.#options.partial) return false
        }
      }
      return true
    } finally {
      cursor.close()
    }
  }

  #note({ path, device }: AnchoredFolder): void {
    if (!this.#folders.has(path)) this.#folders.set(path, { path, folder: path, device, isFolder: true })
  }
}

function discardIn(cursor: FolderCursor, folder: string, name: string): void {
  try {
    discard(cursor.to(folder), name)
  } catch (error) {
    // The folder was moved away or replaced meanwhile: the file in it is out of reach, and what failed was said already.
    if (!isExpected(error)) throw error
  }
}

function isExpected(error: unknown): boolean {
  return error instanceof RewindAdminError || systemErrorCode(error) !== undefined
}

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

/** What an error says about a path. Errors that are neither ours nor the system's are thrown on. */
export function failureOf(path: string, error: unknown): PathFailure {
  const code = error instanceof RewindAdminError ? error.code : systemErrorCode(error)
  if (code === undefined || !(error instanceof Error)) throw error
  return { path, code, reason: error instanceof RewindAdminError ? error.message : `${code}: it was left as it was` }
}

/** Removes folders that are empty; others stay. */
function removeEmpty(folders: readonly string[]): void {
  for (const path of folders) {
    try {
      const parent = AnchoredFolder.open(dirname(path))
      try {
        rmdirSync(parent.at(basename(path)))
      } finally {
        parent.close()
      }
    } catch (error) {
      // Not empty, gone, or no longer a folder: it is not ours to remove.
      if (!isExpected(error)) throw error
    }
  }
}
