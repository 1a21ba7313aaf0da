import type { ExitCode } from './exit-code.js'
import type { Finding } from './finding.js'

/** One thing that a command would do, or did. `bytes` are those that really become free, counted by inode. */
export interface PlanItem {
  readonly action: string
  readonly path: string
  readonly session?: string
  readonly bytes: number
  readonly reason: string
}

/** One session that was left alone, and why. */
export interface KeptItem {
  readonly session: string
  readonly reason: string
}

/** One item that failed. The run went on. */
export interface ErrorItem {
  readonly code: string
  readonly path?: string
  readonly message: string
}

/** A value that survives JSON. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json | undefined }

/**
 * What an operation hands to a reporter: the same for every command. `extra` holds the fields that only one command
 * has (`sessions`, `checkpoints`, `changes`, `skipped`, `failed`, `linked`, …).
 */
export interface Report {
  readonly command: string
  /** The roots worked on, as real paths. */
  readonly roots: readonly string[]
  readonly applied: boolean
  readonly runId?: string
  readonly summary: Readonly<Record<string, Json>>
  readonly findings: readonly Finding[]
  readonly plan: readonly PlanItem[]
  readonly kept: readonly KeptItem[]
  readonly errors: readonly ErrorItem[]
  readonly exitCode: ExitCode
  readonly extra?: Readonly<Record<string, Json>>
  /** The command line that mends what was found; the last line of a text report. */
  readonly next?: string
}

/** The lists of a report in which there is nothing to list. */
export const noItems = { findings: [], plan: [], kept: [], errors: [] } as const satisfies Pick<Report, 'findings' | 'plan' | 'kept' | 'errors'>
