import type { SyncFileSystem } from '../../fs/flush.js'
import type { TransferActs, TransferMethod } from '../../fs/link-or-copy.js'

export interface ForkOptions {
  /** Cuts the conversation before this message: its id, or a unique prefix. Only for a target without transcript. */
  readonly at?: string
  /** How backups get into the target. Unless told otherwise they are linked where that is safe, and copied elsewhere. */
  readonly method?: TransferMethod
  /** Also backups of the source that the target does not name. */
  readonly all?: boolean
}

/** What a fork needs of the machine; everything is passed in. */
export interface ForkContext {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly pid: number
  /** Hex digits, new for each run. */
  readonly token: string
  processExists(pid: number): boolean
  /** Stand in for single acts, to inject faults. */
  readonly acts?: Partial<TransferActs>
  /** Bytes free for the user on the file system of a folder; `undefined` when nobody can tell. */
  readonly freeBytes?: (folder: string) => number | undefined
  /** Makes writing thousands of files durable in one go; without it each is synced. */
  readonly syncFileSystem?: SyncFileSystem
  /** When aborted, what was made is taken away and the reason is thrown. */
  readonly signal?: AbortSignal
  progress?(done: number, total: number): void
}
