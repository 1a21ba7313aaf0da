import type { Machine, MigrationRequest } from '../../formats/format.js'

export interface MigrateOptions {
  /** Session ids or unique prefixes; none means all. */
  readonly sessions?: readonly string[]
  /** A project that was moved: absolute paths. */
  readonly move?: MigrationRequest['move']
  /** What old markers of rewinds become in conversations; see `Store.conversationRepairs`. `message` unless told otherwise. */
  readonly markers?: 'message' | 'turn'
  readonly apply?: boolean
  /** A session that changed within so many milliseconds is left alone. */
  readonly quietPeriodMs: number
}

/** What migrate needs of the machine; everything is passed in. */
export interface MigrateContext {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly machine: Machine
  /** Hex digits, new for each run. */
  readonly token: string
  readonly signal?: AbortSignal
  progress?(done: number, total: number): void
}
