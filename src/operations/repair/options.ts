import type { Machine } from '../../formats/format.js'
import type { ExecFile } from './git-objects.js'

export interface RepairOptions {
  /** Session ids or unique prefixes; none means all. */
  readonly sessions?: readonly string[]
  /** Does what the plan says. */
  readonly apply?: boolean
  /** Mends transcripts instead of rebuilding backups. */
  readonly transcripts?: boolean
  /** Gives every backup that two sessions share a file of its own, where the agent writes into backups. */
  readonly unlink?: boolean
  /** Also replaces a present backup from a strong proof, and takes line ends of a text for what they are where no other version tells. */
  readonly force?: boolean
  /** A transcript is left alone for so long after the last sign of life, in milliseconds; one hour unless told otherwise. */
  readonly quietMs?: number
}

/** What repair needs of the machine; everything is passed in. */
export interface RepairContext {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly machine: Machine
  /** Hex digits, new for each run. */
  readonly token: string
  /** Runs git; without it no proof is looked for there. */
  readonly execFile?: ExecFile
  readonly signal?: AbortSignal
  progress?(done: number, total: number): void
}

export const defaultQuietMs = 3_600_000
