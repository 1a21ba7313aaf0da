import { existsSync, lstatSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AnchoredFolder } from '../../fs/anchored-folder.js'
import { readJsonObject } from '../../fs/read-small.js'
import { joinSafe } from '../../fs/safe-path.js'
import { syncFolder } from '../../fs/sync-folder.js'
import { FenceError, NewerFormatError, RewindAdminError, systemErrorCode } from '../../model/errors.js'
import { parsePoint, temporaryPrefix, type RedoPoint } from './redo-point.js'

/** Redo points kept of one session; the oldest goes first. */
const stackDepth = 50

const pointLimit = 256 * 1024 * 1024
const finishedMark = 'finished'
const replacedName = 'replaced'

/**
 * The redo points of one session: `<sidecar>/redo/<session>/<n>/`, the highest number the newest. Whoever changes it
 * holds the store's lock.
 */
export class RedoStack {
  readonly folder: string

  /** @throws FenceError when the session's id is not the name of a folder */
  constructor(sidecar: string, session: string) {
    if (session.includes('/')) throw new FenceError(`refused the session ${JSON.stringify(session)}: its id is not a name`)
    this.folder = joinSafe(join(sidecar, 'redo'), session)
  }

  /** Numbers of the points, oldest first. */
  numbers(): number[] {
    if (!existsSync(this.folder)) return []
    return readdirSync(this.folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && /^[1-9][0-9]{0,14}$/.test(entry.name))
      .map((entry) => Number(entry.name))
      .sort((a, b) => a - b)
  }

  pathOf(number: number): string {
    return join(this.folder, String(number))
  }

  /**
   * What a point says.
   * @throws NewerFormatError when a newer version of ours wrote it
   * @throws FenceError when it cannot be read
   */
  read(number: number): RedoPoint {
    return readPoint(this.pathOf(number))
  }

  /** Makes an empty, private folder for a point that is not in the stack yet; `token` tells it from others. */
  prepare(token: string): string {
    makePrivate(this.folder)
    const path = join(this.folder, `.new-${token}`)
    mkdirSync(path, { mode: 0o700 })
    return path
  }

  /** Puts a prepared point on the stack and takes the oldest ones off it. Returns its number. */
  push(prepared: string): number {
    const numbers = this.numbers()
    const number = (numbers.at(-1) ?? 0) + 1
    renameSync(prepared, this.pathOf(number))
    syncFolder(this.folder)
    for (const old of numbers.slice(0, Math.max(0, numbers.length + 1 - stackDepth))) this.drop(old)
    return number
  }

  /** Notes that the rewind of a point came to its end. */
  finish(number: number): void {
    writeFileSync(join(this.pathOf(number), finishedMark), '', { mode: 0o600 })
  }

  drop(number: number): void {
    rmSync(this.pathOf(number), { recursive: true, force: true })
  }

  /** Keeps what a redo wrote over until the next redo. */
  keepReplaced(prepared: string): void {
    const kept = join(this.folder, replacedName)
    rmSync(kept, { recursive: true, force: true })
    renameSync(prepared, kept)
    syncFolder(this.folder)
  }

  /** Clears up after a run that was killed: points that never came to be, and temporary files beside their targets. */
  sweep(): void {
    if (!existsSync(this.folder)) return
    const numbers = this.numbers()
    const newest = numbers.at(-1)
    if (newest !== undefined && !existsSync(join(this.pathOf(newest), finishedMark))) removeTemporaries(this.pathOf(newest))
    for (const name of readdirSync(this.folder).filter((each) => each.startsWith('.new-'))) {
      const path = join(this.folder, name)
      removeTemporaries(path)
      rmSync(path, { recursive: true, force: true })
    }
  }
}

/** What the point in a folder says; throws as `RedoStack.read`. */
export function readPoint(folder: string): RedoPoint {
  const file = readJsonObject(join(folder, 'point.json'), { follow: false, limit: pointLimit })
  const unread = { reason: file.kind === 'unusable' ? file.reason : 'point.json is missing' }
  const parsed = file.kind === 'object' ? parsePoint(file.value) : unread
  if ('point' in parsed) return parsed.point
  if ('newer' in parsed) {
    throw new NewerFormatError(`${folder} was written by a newer version of rewind-admin`, { hint: 'update rewind-admin' })
  }
  throw new FenceError(`the redo point ${folder} cannot be used: ${parsed.reason}`, {
    hint: 'remove that folder to get at the point before it',
  })
}

/** Temporary files are taken away only where the point says that its run worked, and only by their exact name. */
function removeTemporaries(point: string): void {
  let read: RedoPoint
  try {
    read = readPoint(point)
  } catch (error) {
    // Killed before point.json was written: no temporary file was made yet.
    if (error instanceof RewindAdminError) return
    throw error
  }
  const prefix = temporaryPrefix(read.token)
  const folders = new Set(read.entries.flatMap((entry) => (entry.state === 'skipped' ? [] : [entry.folder])))
  for (const path of folders) {
    try {
      const folder = AnchoredFolder.open(path)
      try {
        for (const name of readdirSync(folder.at('.')).filter((each) => each.startsWith(prefix))) {
          if (lstatSync(folder.at(name)).isFile()) rmSync(folder.at(name))
        }
      } finally {
        folder.close()
      }
    } catch (error) {
      // A folder that is gone or became a link holds nothing of ours.
      if (!(error instanceof FenceError) && systemErrorCode(error) === undefined) throw error
    }
  }
}

/** Makes a folder and those above it, each 0700, and makes sure that none of them is a link. */
function makePrivate(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  AnchoredFolder.open(path).close()
}
