import type { Store } from '../../formats/format.js'
import { ExitCode, worstExit } from '../../model/exit-code.js'
import type { ErrorItem, KeptItem } from '../../model/report.js'
import type { Action } from '../../plan/action.js'
import { applyPlan, type ApplyResult } from '../../plan/apply.js'
import { restoreFromTrash } from '../../plan/restore.js'
import { newRunId, partRunId } from '../../plan/run-id.js'
import { notLive } from '../removal/live.js'
import { planFor } from '../removal/removal.js'
import type { MigrateContext } from './options.js'

/** What is done in one part of a run. */
interface PartOptions {
  /** Sessions of the store, for the brake. */
  readonly storeSessions: number
  readonly noTrash?: boolean
}

/** One run of `migrate`: its parts are applied, and taken back, one by one, and what came of them is gathered. */
export class MigrationRun {
  readonly id: string
  /** Hex digits, new for each run: for the names of staged files. */
  readonly token: string
  readonly kept: KeptItem[] = []
  readonly errors: ErrorItem[] = []
  readonly #context: MigrateContext
  readonly #codes: ExitCode[] = []

  constructor(context: MigrateContext) {
    this.#context = context
    this.token = context.token
    // Room for the digits of its parts.
    this.id = newRunId(context.now, context.token.slice(0, 8))
  }

  get exitCode(): ExitCode {
    return worstExit([...this.#codes, this.errors.length > 0 ? ExitCode.partial : ExitCode.done])
  }

  /** @throws what `applyPlan` throws */
  async apply(store: Store, actions: readonly Action[], part: number, { storeSessions, noTrash = false }: PartOptions): Promise<ApplyResult> {
    const { now, signal, machine } = this.#context
    const plan = planFor(store, 'migrate', now, { storeSessions, actions, kept: [] })
    const result = await applyPlan(plan, {
      now,
      runId: partRunId(this.id, part),
      noTrash,
      stillAllowed: notLive(store, machine, now),
      ...(signal === undefined ? {} : { signal }),
    })
    this.kept.push(...result.kept)
    this.errors.push(...result.errors)
    this.#codes.push(result.exitCode)
    return result
  }

  /** Takes back what a part did to a session. */
  async takeBack(store: Store, session: string, part: number): Promise<void> {
    const result = await restoreFromTrash(store, partRunId(this.id, part), { session })
    this.errors.push(...result.errors)
  }
}
