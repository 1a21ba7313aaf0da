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

/** One thing in the folder of an action. */
export interface SlotContent {
  /** Absolute path of it in the trash. */
  readonly place: string
  /** The relative path that it had, or of a folder that holds such paths. */
  readonly path: string
}

/** The state of a folder in the trash is in its name, so that it holds even when nothing could be written (R106). */
export const unfinishedEnding = '.part'
/** It is being removed for good. */
export const goneEnding = '.gone'

const receiptName = 'receipt.json'
const nestedName = 'files'
const separator = '%2F'
/** Names are kept to what the strictest file systems take, those that encrypt names. Bytes. */
const longestFlatName = 143

/**
 * The one name that stands for a relative path in the trash, `%` and `/` escaped; `undefined` for a path that has no folder or whose name
 * would be too long. It always holds `%2F`, which tells it from our own names.
 */
export function flatName(relative: string): string | undefined {
  if (!relative.includes('/')) return undefined
  const name = relative.replaceAll('%', '%25').replaceAll('/', separator)
  return Buffer.byteLength(name) <= longestFlatName ? name : undefined
}

/** The relative path that a name in the trash stands for; `undefined` for a name of our own. */
export function pathOfFlatName(name: string): string | undefined {
  return name.includes(separator) ? name.replaceAll(separator, '/').replaceAll('%25', '%') : undefined
}

/**
 * The folder in the trash for one action of one run: `receipt.json` and everything that was moved, each under a name that says the
 * relative path it had (`flatName`): making folders is the dearest part of a removal. What has no such name lies under `files` at
 * the relative path itself. While the folder is being filled its name ends in `.part`; one rename makes it whole.
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
    return join(this.#folder, receiptName)
  }

  /** Makes the folder. @throws system errors */
  open(): void {
    this.#make(this.#folder)
  }

  /** The place in the trash for a relative path; the folders above it are made. @throws system errors */
  placeFor(relative: string): string {
    if (flatName(relative) === undefined) {
      this.#make(this.#nested)
      for (const folder of foldersAbove(relative)) this.#make(join(this.#nested, folder))
    }
    return this.at(relative)
  }

  /** The place in the trash of a relative path. */
  at(relative: string): string {
    const flat = flatName(relative)
    return flat === undefined ? join(this.#nested, relative) : join(this.#folder, flat)
  }

  /** What lies in it, by the names alone, backups before the transcripts of a format that sorts so. @throws system errors */
  contents(): SlotContent[] {
    const flat = namesIn(this.#folder).flatMap((name): SlotContent[] => {
      const path = pathOfFlatName(name)
      return path === undefined ? [] : [{ place: join(this.#folder, name), path }]
    })
    const nested = namesIn(this.#nested).map((name): SlotContent => ({ place: join(this.#nested, name), path: name }))
    return [...flat, ...nested]
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
    if (holdsMoved(this.#folder) || !removeEmptyFolders(this.#nested, acts)) return false
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

  get #nested(): string {
    return join(this.#folder, nestedName)
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

function holdsMoved(folder: string): boolean {
  try {
    return namesIn(folder).some((name) => name !== receiptName && name !== nestedName)
  } catch {
    return true
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort()
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return []
    throw error
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
