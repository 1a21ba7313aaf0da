import { lstatSync, mkdirSync, rmdirSync, type Stats } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { SessionCopy } from '../../formats/format.js'
import { AnchoredFolder } from '../../fs/anchored-folder.js'
import { sameBytes } from '../../fs/content.js'
import { publishFile, publishFolder } from '../../fs/publish.js'
import { syncFolder } from '../../fs/sync-folder.js'
import { FenceError } from '../../model/errors.js'
import { takeBack } from './prove.js'

/** What became of the files of a copy, relative to the session. */
export interface Published {
  /** In the target already, with the same bytes. */
  readonly present: number
  /** In the target already with other bytes: both stay. */
  readonly differing: readonly string[]
}

/**
 * Gives a finished copy its place: by one rename where nothing is there, else file by file in the order of the plan, its markers
 * last. Nothing is overwritten. When it fails, what was published is taken away again.
 */
export class CopyPublisher {
  readonly #staged: string
  readonly #final: string
  readonly #paths: readonly string[]
  readonly #undo: (() => void)[] = []
  readonly #differing: string[] = []
  #present = 0

  constructor(staged: string, final: string, { copies, files }: SessionCopy) {
    this.#staged = staged
    this.#final = final
    const rest = copies.filter(({ path }) => path.includes('/')).map(({ path }) => path)
    const markers = copies.filter(({ path }) => !path.includes('/')).map(({ path }) => path)
    this.#paths = [...rest, ...files.map(({ path }) => path), ...markers]
  }

  /** @throws FenceError when something in the way is no folder; system errors */
  publish(): Published {
    if (publishFolder(this.#staged, this.#final)) {
      syncFolder(dirname(this.#final))
      return { present: 0, differing: [] }
    }
    try {
      for (const path of this.#paths) this.#file(path)
      return { present: this.#present, differing: this.#differing }
    } catch (error) {
      for (const undo of this.#undo.reverse()) undo()
      throw error
    }
  }

  #file(path: string): void {
    const from = join(this.#staged, path)
    const to = join(this.#final, path)
    this.#folder(dirname(to))
    const there = lstatSync(to, { throwIfNoEntry: false })
    if (there === undefined) {
      const made = lstatSync(from)
      publishFile(from, to)
      this.#undo.push(() => { takeBack(to, made) })
      syncFolder(dirname(to))
    } else if (isSame(from, to, there)) this.#present += 1
    else this.#differing.push(path)
  }

  #folder(path: string): void {
    const there = lstatSync(path, { throwIfNoEntry: false })
    if (there?.isDirectory() === true) return
    if (there !== undefined) throw new FenceError(`${path} is no folder; nothing was made in it`)
    mkdirSync(path, { mode: lstatSync(join(this.#staged, basename(path))).mode & 0o7777 })
    this.#undo.push(() => { rmdirSync(path) })
  }
}

function isSame(from: string, to: string, there: Stats): boolean {
  const { size } = lstatSync(from)
  if (!there.isFile() || there.size !== size) return false
  const folder = AnchoredFolder.open(dirname(to))
  try {
    return sameBytes(from, folder, basename(to), { offset: 0, size })
  } finally {
    folder.close()
  }
}
