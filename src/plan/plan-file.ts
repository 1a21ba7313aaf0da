import { readFileSync } from 'node:fs'
import { atomicWrite } from '../fs/atomic-write.js'
import { statusOf } from '../fs/identity.js'
import { parentOf } from '../fs/safe-path.js'
import { joinSafe } from '../fs/safe-path.js'
import { FenceError, UsageError, systemErrorCode } from '../model/errors.js'
import type { SessionRef } from '../model/session.js'
import type { Plan } from './action.js'
import { parsePlan } from './schema.js'
import type { StorePlace } from './sidecar.js'

/**
 * Writes a plan for `apply <file>` (`--plan-out`), readable by its owner only: it names sessions and projects.
 * @param token hex digits, new for each call
 * @throws NoSpaceError when the disk is full; system errors otherwise
 */
export function writePlan(path: string, plan: Plan, token: string): void {
  atomicWrite(path, Buffer.from(`${JSON.stringify(plan, undefined, 2)}\n`), { mode: 0o600, token })
}

/**
 * Reads a plan back.
 * @throws UsageError when the file cannot be read or is no plan; NewerFormatError when a newer version of ours wrote it
 */
export function readPlan(path: string): Plan {
  let value: unknown
  try {
    value = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    const why = systemErrorCode(error) ?? 'it is not JSON'
    throw new UsageError(`the plan ${path} cannot be read (${why}); nothing was changed`, { cause: error })
  }
  return parsePlan(value, path)
}

/** What a plan from a file may touch. */
export interface PlanBounds {
  readonly place: StorePlace
  readonly sessions: Iterable<SessionRef>
  /** Shared files of the agent that a plan may replace, relative to the root, or the name of one beside it. */
  readonly shared?: readonly string[]
  /** Paths in the folder of a project that belong to no single session and that a plan may take. */
  projectFiles?(folder: string): readonly string[]
}

/**
 * Makes sure that a plan from a file is for this store and touches nothing but what belongs to the sessions it names. Plans made
 * in this process come from the inventory anyway; a file may have been edited by anybody.
 * @throws FenceError naming the first thing that does not belong
 */
export function assertWithin(plan: Plan, bounds: PlanBounds): void {
  if (plan.root !== bounds.place.root || plan.sidecar !== bounds.place.sidecar) {
    throw refused(`the plan is for the store ${plan.root} with ${plan.sidecar}, not for ${bounds.place.root}`)
  }
  const known = new Map([...bounds.sessions].map((ref) => [ref.id, ref.members]))
  for (const action of plan.actions) {
    const members = action.session === undefined ? undefined : known.get(action.session)
    if (action.kind === 'replace' && (action.beside === true || members === undefined)) {
      if (bounds.shared?.includes(action.path) === true) continue
      throw refused(`the plan replaces ${action.path}, which is no shared file of the agent`)
    }
    const paths = action.kind === 'replace' ? [action.path] : action.items.map((item) => item.path)
    const belongs = (path: string): boolean =>
      (members ?? []).some((member) => path === member.path || (member.folder && path.startsWith(`${member.path}/`))) ||
      bounds.projectFiles?.(parentOf(path)).includes(path) === true
    // What is gone, with its session or alone, is nothing to remove: the act finds nothing and says so.
    const stranger = paths.find((path) => !belongs(path) && statusOf(joinSafe(plan.root, path)) !== undefined)
    if (stranger !== undefined) throw refused(`the plan touches ${stranger}, which does not belong to session ${action.session ?? ''}`)
  }
}

function refused(what: string): FenceError {
  return new FenceError(`${what}; nothing was changed`, { hint: 'make the plan again with --plan-out' })
}
