import {
  closeSync,
  existsSync,
  fchownSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
  readdirSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isNoSpace, writeWhole } from '../fs/atomic-write.js'
import { syncFolder } from '../fs/sync-folder.js'
import { systemErrorCode } from '../model/errors.js'
import type { Action } from './action.js'
import { planSchemaVersion } from './action.js'
import { isRunId } from './run-id.js'
import { parseAction, refuseNewer } from './schema.js'
import type { Sidecar } from './sidecar.js'

/** How a run takes things away: into the trash; into the trash and then for good; for good where they stand. */
export type Method = 'trash' | 'remove' | 'remove-in-place'

export interface JournalHeader {
  readonly runId: string
  readonly command: string
  readonly root: string
  readonly method: Method
  /** ISO 8601. */
  readonly startedAt: string
}

/** Name of the folder in the trash and time in nanoseconds since 1970 of a folder that a run may change. */
export type FolderTime = readonly [path: string, mtimeNs: string]

const ending = '.jsonl'
const chunkBytes = 256 * 1024

/**
 * What a run is about to do, one JSON line each: `header`, one `action` per action with the name of its folder in the trash,
 * `begin`. Up to here it is fsynced, and its folder too, before the first act. Then `started` and `done` per action and `finished`.
 * These are written at once but not synced: an act is a rename or an unlink, and looking at both places tells whether it was
 * done. A journal without `begin` is one of a run that had not begun, or that had no room to say more (R106): the names in the
 * trash then say it alone.
 */
export class Journal {
  #fd: number | undefined
  #whole: boolean

  private constructor(fd: number, whole: boolean) {
    this.#fd = fd
    this.#whole = whole
  }

  /** True when the journal holds the whole plan; false when there was no room for it. */
  get whole(): boolean {
    return this.#whole
  }

  /**
   * Writes the plan down. On a full disk the reserve is given back; when that is not enough, the empty journal marks the run.
   * @throws system errors: ENOSPC when not even an empty file can be made; EEXIST when the run id is taken
   */
  static begin(
    sidecar: Sidecar,
    header: JournalHeader,
    actions: Iterable<{ readonly action: Action; readonly slot: string }>,
    folders: readonly FolderTime[],
  ): Journal {
    const path = journalPath(sidecar, header.runId)
    const fd = sidecar.withRoom(() => openSync(path, 'ax', 0o600))
    if (sidecar.owner !== undefined) fchownSync(fd, sidecar.owner.uid, sidecar.owner.gid)
    try {
      sidecar.withRoom(() => {
        ftruncateSync(fd, 0)
        writeLines(fd, planLines(header, actions, folders))
        fsyncSync(fd)
      })
    } catch (error) {
      if (!isNoSpace(error)) {
        closeSync(fd)
        throw error
      }
      ftruncateSync(fd, 0)
      return new Journal(fd, false)
    }
    syncFolder(dirname(path))
    return new Journal(fd, true)
  }

  started(slot: string): void {
    this.#line({ t: 'started', slot })
  }

  done(slot: string, outcome: 'done' | 'kept' | 'failed'): void {
    this.#line({ t: 'done', slot, outcome })
  }

  /** Says that nothing of the run is left to complete, and closes. */
  finish(now: number): void {
    this.#whole = true
    this.#line({ t: 'finished', at: new Date(now).toISOString() })
    this.close()
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
  }

  #line(value: object): void {
    if (this.#fd === undefined || !this.#whole) return
    try {
      writeWhole(this.#fd, Buffer.from(`${JSON.stringify(value)}\n`))
    } catch (error) {
      if (!isNoSpace(error)) throw error
      // May be lost: see above. A line cut in its middle must not swallow the next one, so there is none.
      this.#whole = false
    }
  }
}

function* planLines(
  header: JournalHeader,
  actions: Iterable<{ readonly action: Action; readonly slot: string }>,
  folders: readonly FolderTime[],
): Generator<string> {
  yield JSON.stringify({ t: 'header', schemaVersion: planSchemaVersion, ...header })
  for (const { action, slot } of actions) yield JSON.stringify({ t: 'action', slot, action })
  yield JSON.stringify({ t: 'begin', folders })
}

function writeLines(fd: number, lines: Iterable<string>): void {
  let waiting: Buffer[] = []
  let length = 0
  for (const line of lines) {
    const bytes = Buffer.from(`${line}\n`)
    waiting.push(bytes)
    length += bytes.length
    if (length < chunkBytes) continue
    writeWhole(fd, Buffer.concat(waiting))
    waiting = []
    length = 0
  }
  writeWhole(fd, Buffer.concat(waiting))
}

export function journalPath(sidecar: Sidecar, runId: string): string {
  return join(sidecar.journals, `${runId}${ending}`)
}

/** What an earlier run wrote down. Lines that are cut or damaged are passed over. */
export interface JournalReading {
  readonly header: JournalHeader | undefined
  /** The run had begun: something may be half done. */
  readonly begun: boolean
  readonly folders: readonly FolderTime[]
  /** The action whose folder in the trash has this name. Parsed when asked for: a journal may hold very many. */
  readonly action: (slot: string) => Action | undefined
}

/** The runs that have a journal, the oldest first. */
export function journalledRuns(sidecar: Sidecar): string[] {
  let names: string[]
  try {
    names = readdirSync(sidecar.journals)
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return []
    throw error
  }
  const runs = names.filter((name) => name.endsWith(ending)).map((name) => basename(name, ending))
  return runs.filter(isRunId).sort()
}

/** True when the journal ends with `finished`, or is not there. Only its end is read. */
export function isFinished(sidecar: Sidecar, runId: string): boolean {
  const path = journalPath(sidecar, runId)
  if (!existsSync(path)) return true
  const fd = openSync(path, 'r')
  try {
    const size = statSync(path).size
    const tail = Buffer.alloc(Math.min(size, 256))
    readSync(fd, tail, 0, tail.length, size - tail.length)
    return /(?:^|\n)\{"t":"finished"[^\n]*\}\n$/.test(tail.toString('latin1'))
  } finally {
    closeSync(fd)
  }
}

/** Appends `finished` to the journal of a run that was completed or rolled back; where there is no room for it, the journal goes. */
export function closeJournal(sidecar: Sidecar, runId: string, now: number): void {
  const path = journalPath(sidecar, runId)
  if (!existsSync(path)) return
  const fd = openSync(path, 'a')
  try {
    // The line before may be cut.
    writeWhole(fd, Buffer.from(`\n${JSON.stringify({ t: 'finished', at: new Date(now).toISOString() })}\n`))
  } catch (error) {
    if (!isNoSpace(error)) throw error
    sidecar.acts.unlink(path)
  } finally {
    closeSync(fd)
  }
}

/**
 * Reads the journal of a run. A missing one reads as one that had not begun.
 * @throws NewerFormatError when a newer version of ours wrote it
 */
export function readJournal(sidecar: Sidecar, runId: string): JournalReading {
  const path = journalPath(sidecar, runId)
  let bytes = Buffer.alloc(0)
  try {
    bytes = readFileSync(path)
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw error
  }
  const actions = new Map<string, readonly [from: number, to: number]>()
  let header: JournalHeader | undefined
  let folders: FolderTime[] | undefined
  for (let from = 0; from < bytes.length; ) {
    const end = bytes.indexOf(10, from)
    const to = end < 0 ? bytes.length : end
    const slot = /^\{"t":"action","slot":"([^"\\]+)"/.exec(bytes.toString('latin1', from, Math.min(to, from + 300)))?.[1]
    if (slot !== undefined) actions.set(slot, [from, to])
    else {
      const value = parseLine(bytes.subarray(from, to))
      refuseNewer(value, path)
      if (value?.t === 'header') header = value as unknown as JournalHeader
      if (value?.t === 'begin' && Array.isArray(value.folders)) folders = value.folders.filter(isFolderTime)
    }
    from = to + 1
  }
  return {
    header,
    begun: folders !== undefined,
    folders: folders ?? [],
    action: (slot) => {
      const range = actions.get(slot)
      return range === undefined ? undefined : parseAction(parseLine(bytes.subarray(...range))?.action)
    },
  }
}

function isFolderTime(value: unknown): value is FolderTime {
  return Array.isArray(value) && typeof value[0] === 'string' && typeof value[1] === 'string' && /^[0-9]{1,24}$/.test(value[1])
}

function parseLine(bytes: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
