import { closeSync, fstatSync, lstatSync, readdirSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { openPlain } from '../fs/blocks.js'
import { digestOpen } from '../fs/content.js'
import { publishFile } from '../fs/publish.js'
import type { State } from '../formats/pi-candy-undo/state.js'
import { highestVersion, pathHashOf, versionsIn } from '../formats/pi-candy-undo/versions.js'
import { discardCopy, stageCopy, type CopyResult, type StagedCopy } from './copy.js'

/** A backup that a state may name now. */
interface Published {
  readonly name: string
  readonly version: number
}

/**
 * The backups of one session during one act under the lock. A name is given once: above every version that a record or a file
 * has. What lies there already is compared before it is taken (formats/pi-candy-undo section 15, 7 and 8).
 */
export class Backups {
  readonly #folder: string
  readonly #suffix: () => string
  readonly #made: string[] = []
  readonly #open: StagedCopy[] = []
  #onDisk: Map<string, number> | undefined

  constructor(folder: string, suffix: () => string) {
    this.#folder = folder
    this.#suffix = suffix
  }

  /** Files that were published, open, for syncing. */
  get written(): readonly number[] {
    return this.#open.map(({ fd }) => fd)
  }

  /** Copies a file to a temporary one beside the backups. Needs no lock. @throws system errors of writing */
  stage(source: string, key: string, limit: number): CopyResult {
    return stageCopy(source, join(this.#folder, `${pathHashOf(key)}@v1.tmp-${this.#suffix()}`), limit)
  }

  /**
   * Gives a copy its name, or drops it when the backup that has the next number holds the same bytes and mode.
   * @throws system errors; the copy is gone then
   */
  publish(copy: StagedCopy, key: string, state: State): Published {
    const prefix = pathHashOf(key)
    const recorded = highestVersion(state, key)
    const left = recorded + 1
    const highest = this.#highestOnDisk(prefix)
    if (highest === left && this.#holds(`${prefix}@v${String(left)}`, copy)) {
      discardCopy(copy)
      return { name: `${prefix}@v${String(left)}`, version: left }
    }
    const version = Math.max(recorded, highest) + 1
    const name = `${prefix}@v${String(version)}`
    try {
      publishFile(copy.path, join(this.#folder, name))
    } catch (error) {
      discardCopy(copy)
      throw error
    }
    this.#made.push(name)
    this.#open.push(copy)
    this.#onDisk?.set(prefix, version)
    return { name, version }
  }

  /** The next name of a path, for a record whose backup is never made. */
  nextName(key: string, state: State): Published {
    const prefix = pathHashOf(key)
    const version = Math.max(highestVersion(state, key), this.#highestOnDisk(prefix)) + 1
    this.#onDisk?.set(prefix, version)
    return { name: `${prefix}@v${String(version)}`, version }
  }

  /** sha256 of a backup in hex; `undefined` when no plain file of this size is there. */
  digest(name: string, size: number): string | undefined {
    const fd = this.#openPlain(name)
    if (fd === undefined) return undefined
    try {
      return fstatSync(fd).size === size ? digestOpen(fd, { offset: 0, size }) : undefined
    } finally {
      closeSync(fd)
    }
  }

  /** Permission bits of a backup; `undefined` when it is no plain file. */
  modeOf(name: string): number | undefined {
    const found = lstatSync(join(this.#folder, name), { throwIfNoEntry: false })
    return found?.isFile() === true ? found.mode & 0o777 : undefined
  }

  /** Ends the act. What was published for a state that could not be written is taken back. */
  close(saved: boolean): void {
    for (const { fd } of this.#open.splice(0)) closeSync(fd)
    if (!saved) for (const name of this.#made.splice(0)) unlinkSync(join(this.#folder, name))
  }

  #holds(name: string, copy: StagedCopy): boolean {
    const fd = this.#openPlain(name)
    if (fd === undefined) return false
    try {
      const found = fstatSync(fd)
      return found.size === copy.stamp.size && (found.mode & 0o777) === copy.stamp.mode && digestOpen(fd, { offset: 0, size: found.size }) === copy.sha256
    } finally {
      closeSync(fd)
    }
  }

  #openPlain(name: string): number | undefined {
    try {
      return openPlain(join(this.#folder, name))
    } catch {
      return undefined
    }
  }

  #highestOnDisk(prefix: string): number {
    this.#onDisk ??= versionsIn(readdirSync(this.#folder))
    return this.#onDisk.get(prefix) ?? 0
  }
}
