import type { ErrorItem, KeptItem, PlanItem } from '../model/report.js'
import type { Action, Plan } from './action.js'
import { pathOf, subjectOf } from './action.js'
import type { ApplyOptions, ApplyResult } from './apply.js'
import type { Outcome } from './outcome.js'
import { errorItem, exitCodeFor } from './outcome.js'

/** Gathers what came of each action of a run. */
export class Outcomes {
  readonly #options: ApplyOptions
  readonly #done: PlanItem[] = []
  readonly #kept: KeptItem[] = []
  readonly #errors: ErrorItem[] = []
  readonly #notes: string[] = []

  constructor(options: ApplyOptions) {
    this.#options = options
  }

  add(action: Action, outcome: Outcome, index: number, total: number): void {
    const session = subjectOf(action)
    if (outcome.state === 'kept') this.#kept.push({ session, reason: outcome.reason })
    else if (outcome.state === 'failed') this.#errors.push(...outcome.errors)
    else {
      this.#notes.push(...outcome.notes)
      const reason = outcome.already ? `${action.reason}; it was gone already` : action.reason
      const named = action.session === undefined ? {} : { session: action.session }
      this.#done.push({ action: action.kind, path: pathOf(action), ...named, bytes: outcome.bytes, reason })
    }
    this.#options.onItem?.({ index, total, action, outcome })
  }

  /** Looks once more for bytes that came late. */
  check(late: readonly (() => void)[]): void {
    for (const look of late) {
      try {
        look()
      } catch (error) {
        this.#errors.push(errorItem(error))
      }
    }
  }

  result(plan: Plan, interrupted: boolean): ApplyResult {
    const bytes = this.#done.reduce((sum, item) => sum + item.bytes, 0)
    return {
      runId: this.#options.runId,
      done: this.#done,
      kept: [...plan.kept, ...this.#kept],
      errors: this.#errors,
      bytes,
      notes: this.#notes,
      interrupted,
      exitCode: exitCodeFor(this.#errors, this.#options.signal, interrupted),
    }
  }
}
