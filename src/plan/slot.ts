import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { foldersAbove } from '../fs/safe-path.js'
import { systemErrorCode } from '../model/errors.js'
import type { Sidecar } from './sidecar.js'

const longestName = 200

/**
 * The name of a session's folder in the trash: the session id where it is a plain name, else escaped; never one with a dot, so
 * that the endings below cannot be part of it.
 */
export function slotName(session: string, nth = 0): string {
  const plain = encodeURIComponent(session).replaceAll('.', '%2E').replaceAll('~', '%7E').replaceAll('*', '%2A')
  const name = plain.length <= longestName ? plain : createHash('sha256').update(session).digest('hex')
  return nth === 0 ? name : `${name}~${String(nth + 1)}`
}

/** The session that a folder in the trash was named for, when no receipt says it. */
export function sessionOfSlot(name: string): string {
  try {
    return decodeURIComponent(name.replace(/~[0-9]+$/, ''))
  } catch {
    return name
  }
}

/** The state of a folder in the trash is in its name, so that it holds even when nothing could be written (R106). */
export const unfinishedEnding = '.part'
/** It is being removed for good. */
export const goneEnding = '.gone'

/**
 * The folder in the trash for one action of one run: `receipt.json`, and under `files` everything that was moved, each at the
 * relative path it had. While it is being filled its name ends in `.part`; one rename makes it whole.
 */
export class Slot {
  readonly name: string
  readonly final: string
  readonly #sidecar: Sidecar
  readonly #made = new Set<string>()
  #folder: string

  constructor(sidecar: Sidecar, runId: string, name: string, folder?: string) {
    this.#sidecar = sidecar
    this.name = name
    this.final = join(sidecar.trash, runId, name)
    this.#folder = folder ?? `${this.final}${unfinishedEnding}`
  }

  /** Where it is now. */
  get folder(): string {
    return this.#folder
  }

  get receipt(): string {
    return join(this.#folder, 'receipt.json')
  }

  get files(): string {
    return join(this.#folder, 'files')
  }

  /** Makes the folder. @throws system errors */
  open(): void {
    this.#make(this.#folder)
  }

  /** The place in the trash for a relative path; the folders above it are made. @throws system errors */
  placeFor(relative: string): string {
    this.#make(this.files)
    for (const folder of foldersAbove(relative)) this.#make(join(this.files, folder))
    return join(this.files, relative)
  }

  /** The place in the trash of a relative path. */
  at(relative: string): string {
    return join(this.files, relative)
  }

  /** Makes it whole, with one rename. @throws system errors */
  commit(): void {
    if (this.#folder === this.final) return
    this.#sidecar.acts.rename(this.#folder, this.final)
    this.#folder = this.final
  }

  /** Marks it as being removed for good, with one rename. @throws system errors */
  condemn(): void {
    const gone = `${this.final}${goneEnding}`
    this.#sidecar.acts.rename(this.#folder, gone)
    this.#folder = gone
  }

  /** Removes the folder with its receipt, provided that no file is left in it. Returns whether it is gone. */
  discard(): boolean {
    const { acts } = this.#sidecar
    if (!removeEmptyFolders(this.files, acts)) return false
    for (const act of [() => { acts.unlink(this.receipt) }, () => { acts.rmdir(this.#folder) }]) {
      try {
        act()
      } catch (error) {
        if (systemErrorCode(error) !== 'ENOENT') return false
      }
    }
    this.#made.clear()
    return true
  }

  #make(folder: string): void {
    if (this.#made.has(folder)) return
    try {
      this.#sidecar.withRoom(() => { this.#sidecar.acts.mkdir(folder, 0o700) })
      this.#sidecar.own(folder)
    } catch (error) {
      if (systemErrorCode(error) !== 'EEXIST') throw error
    }
    this.#made.add(folder)
  }
}

/** Removes a folder and the folders in it as long as they hold no file. Returns whether it is gone. */
function removeEmptyFolders(folder: string, acts: { rmdir(path: string): void }): boolean {
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (!entry.isDirectory() || !removeEmptyFolders(join(folder, entry.name), acts)) return false
    }
    acts.rmdir(folder)
    return true
  } catch (error) {
    return systemErrorCode(error) === 'ENOENT'
  }
}
