import { writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { SharedUse, Store } from '../../formats/format.js'
import { identityOf, statusOf } from '../../fs/identity.js'
import { ExitCode, worstExit } from '../../model/exit-code.js'
import type { ErrorItem, Json, PlanItem } from '../../model/report.js'
import type { ReplaceAction } from '../../plan/action.js'
import type { ApplyResult } from '../../plan/apply.js'
import { planItem } from '../../plan/planned-item.js'
import { stagingPath } from '../../plan/sidecar.js'
import { planFor, type Removal } from '../removal/removal.js'

/** How often files that others write to are tried. */
const attempts = 8

/** What a report says of the shared files, changed or not (R29, R32). */
export function sharedSummary(uses: readonly SharedUse[]): Json {
  return uses.map(({ path, what, count, keys, refusal }) => ({ path, what, count, keys, ...(refusal === undefined ? {} : { refusal }) }))
}

/** What would be cut out of them. */
export function sharedItems(uses: readonly SharedUse[]): PlanItem[] {
  return uses.flatMap((use) => {
    if (use.rest === undefined) return []
    return [{ action: 'replace', path: use.path, bytes: Math.max(0, use.size - use.rest.length), reason: reasonOf(use) }]
  })
}

/** Files that name the project and must not be rewritten. */
export function sharedErrors(uses: readonly SharedUse[]): ErrorItem[] {
  return uses.flatMap(({ path, rest, refusal }) => {
    if (rest !== undefined) return []
    return [{ code: 'LEFT_ALONE', path, message: `${path} was left as it is: ${refusal ?? 'it cannot be rewritten'}` }]
  })
}

export interface RewriteOptions {
  /** Milliseconds since 1970. */
  readonly now: number
  /** Hex digits, new for each call. */
  token(): string
  /** Carries a removal out under a run id of its own. */
  apply(removal: Removal): Promise<ApplyResult>
}

/**
 * Cuts the lines and keys of projects out of the shared files (R29): each new file is made beside our other files and swapped
 * in by `applyPlan`, which compares once more just before and carries over what was appended meanwhile. A file that was written
 * to in between is read again and tried anew. Hold the store's lock.
 * @returns what was done on top of `before`
 */
export async function rewriteShared(
  store: Store,
  matches: (project: string) => boolean,
  before: ApplyResult,
  options: RewriteOptions,
): Promise<ApplyResult> {
  let result = before
  for (let attempt = 1; ; attempt += 1) {
    const uses = store.shared?.(matches) ?? []
    const open = uses.filter((use) => use.rest !== undefined)
    if (open.length === 0) return withErrors(result, sharedErrors(uses))
    if (attempt > attempts) return withErrors(result, open.map(busyError))
    const actions = open.flatMap((use) => stage(store, use, options.token()) ?? [])
    if (actions.length === 0) continue
    const plan = planFor(store, 'purge', options.now, { storeSessions: 0, actions, kept: [] })
    const next = await options.apply({ plan, findings: [], errors: [], summary: {}, firstActivity: new Map() })
    // What is kept here was written to meanwhile: the next round takes it.
    result = {
      ...result,
      done: [...result.done, ...next.done],
      bytes: result.bytes + next.bytes,
      notes: [...result.notes, ...next.notes],
      interrupted: result.interrupted || next.interrupted,
      errors: [...result.errors, ...next.errors],
      exitCode: worstExit([result.exitCode, next.exitCode]),
    }
    if (next.errors.length > 0 || next.interrupted) return result
  }
}

function stage(store: Store, use: SharedUse, name: string): ReplaceAction | undefined {
  const folder = use.beside === true ? dirname(store.root) : store.root
  const old = planItem(folder, { kind: 'leftover', path: use.path })?.item
  // Written to since it was read: the next try reads it again.
  if (use.rest === undefined || old?.type !== 'file' || old.identity.size !== use.size || old.identity.mtimeNs !== use.mtimeNs) return undefined
  const path = stagingPath(store, name)
  writeFileSync(path, use.rest, { flag: 'wx', mode: 0o600, flush: true })
  const made = statusOf(path)
  if (made === undefined) return undefined
  return {
    kind: 'replace',
    path: use.path,
    ...(use.beside === true ? { beside: true } : {}),
    old,
    staged: name,
    stagedIdentity: identityOf(made),
    ...(use.appendOnly ? { appendOnly: true } : {}),
    reason: reasonOf(use),
    bytes: Math.max(0, old.identity.size - use.rest.length),
  }
}

function reasonOf(use: SharedUse): string {
  return `${String(use.count)} ${use.what}${use.count === 1 ? '' : 's'} of the project`
}

function busyError({ path, count, what }: SharedUse): ErrorItem {
  const message = `${path} was written to each time it was to be replaced; ${String(count)} ${what}s of the project stay in it; run again`
  return { code: 'BUSY', path, message }
}

function withErrors(result: ApplyResult, errors: readonly ErrorItem[]): ApplyResult {
  if (errors.length === 0) return result
  return { ...result, errors: [...result.errors, ...errors], exitCode: worstExit([result.exitCode, ExitCode.partial]) }
}
