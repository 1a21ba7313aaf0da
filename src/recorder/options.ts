import { mkdirSync, realpathSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { isSessionName, sidecarOf } from '../formats/pi-candy-undo/layout.js'
import type { ProcessTable } from '../fs/lock.js'
import { UsageError, systemErrorCode } from '../model/errors.js'
import type { ExcludeOptions } from './exclude.js'

/** Files above this many bytes are not recorded unless told otherwise, as dsh-rewind does it. */
export const defaultMaxFileBytes = 8 * 1024 * 1024

/** Milliseconds that one act waits for the lock of the store unless told otherwise. */
export const defaultWaitMs = 5_000

export interface RecorderOptions extends ExcludeOptions {
  /** Folder of the store; made when it is not there. */
  readonly root: string
  /** One name that can be a folder; ids of Claude Code and of pi are such. */
  readonly sessionId: string
  /** Folder that the session was started in, absolute. A session that has recorded one keeps it. */
  readonly cwd: string
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** A new random UUID. */
  readonly uuid: () => string
  /** Who records: for the lock that is shared with the maintenance commands. */
  readonly process: { readonly pid: number; readonly host: string; readonly table: ProcessTable; readonly command?: string }
  /** How long one act waits for the lock at most, in milliseconds; 5 s. */
  readonly waitMs?: number
  /** Ends every wait for the lock when it is aborted: what cannot be recorded at once is then noted as a gap. */
  readonly signal?: AbortSignal
  /** Opens a session also when it is read-only: each call throws then, and what it could not record is noted as a gap. */
  readonly evenIfReadOnly?: boolean
  /** Larger files are not recorded, and a gap says so; 8 MiB, 0 for no limit. */
  readonly maxFileBytes?: number
  /** Every message gets a snapshot of its own, also when no tracked file changed. */
  readonly everyTurn?: boolean
}

/** Where a session is recorded: real paths. */
export interface RecorderPlace {
  readonly root: string
  readonly sidecar: string
  readonly cwd: string
}

/**
 * Checks the options and makes the root.
 * @throws UsageError for an id that cannot be a folder, and for a working folder that is none
 */
export function placeOf({ root, sessionId, cwd }: RecorderOptions): RecorderPlace {
  if (!isSessionName(sessionId)) throw new UsageError(`${JSON.stringify(sessionId)} cannot be the id of a session: it is no name of a folder; nothing was recorded`)
  if (!isAbsolute(cwd)) throw new UsageError(`the working folder ${cwd} is not absolute; nothing was recorded`)
  mkdirSync(root, { recursive: true, mode: 0o700 })
  const real = realpathSync(root)
  return { root: real, sidecar: sidecarOf(real), cwd: realFolder(cwd) }
}

function realFolder(cwd: string): string {
  try {
    return realpathSync(cwd)
  } catch (error) {
    throw new UsageError(`the working folder ${cwd} cannot be used (${systemErrorCode(error) ?? 'unknown error'}); nothing was recorded`, { cause: error })
  }
}
