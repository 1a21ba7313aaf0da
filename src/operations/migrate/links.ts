import type { Store } from '../../formats/format.js'
import type { KeptItem, PlanItem } from '../../model/report.js'
import type { SessionRef } from '../../model/session.js'
import type { ReplaceAction } from '../../plan/action.js'
import { errorItem } from '../../plan/outcome.js'
import { planUnlinking, stageUnlinking, type UnlinkPlan } from '../repair/unlink.js'
import type { MigrationRun } from './run.js'
import { sweepStaged } from './stage.js'

/** Backups that forks share with their source by hard link, and those of them that are left so. */
export interface LinkPlan {
  readonly plans: readonly UnlinkPlan[]
  readonly items: readonly PlanItem[]
  readonly kept: readonly KeptItem[]
}

/** Nothing to be done about links. */
export const noLinks: LinkPlan = { plans: [], items: [], kept: [] }

/**
 * What turns the hard-linked forks of older versions of an agent that writes into backups into copies (formats/qwen-code section
 * 7): as soon as one of the sessions that share a file is selected, and none of them is left alone. Reads only.
 * @param selected ids of sessions
 * @param leftAlone why a session is left alone, if it is
 */
export function planLinks(store: Store, sessions: readonly SessionRef[], selected: ReadonlySet<string>, leftAlone: (ref: SessionRef) => string | undefined): LinkPlan {
  if (store.linksAreSafe) return noLinks
  const refs = new Map(sessions.map((ref) => [ref.id, ref]))
  const reasons = new Map<string, string | undefined>()
  const reasonFor = (id: string): string | undefined => {
    const ref = refs.get(id)
    if (!reasons.has(id)) reasons.set(id, ref === undefined ? undefined : leftAlone(ref))
    return reasons.get(id)
  }
  const plans: UnlinkPlan[] = []
  const kept = new Map<string, KeptItem>()
  for (const plan of planUnlinking(store, sessions)) {
    if (!plan.sharers.some((id) => selected.has(id))) continue
    const holder = plan.sharers.find((id) => reasonFor(id) !== undefined)
    if (holder === undefined) plans.push(plan)
    else kept.set(plan.session, { session: plan.session, reason: `its backups are shared by hard link, but left alone: session ${holder}: ${String(reasonFor(holder))}` })
  }
  const items = plans.map(({ session, path, old, reason }): PlanItem => ({ action: 'unlink', path, session, bytes: old.identity.size, reason }))
  return { plans, items, kept: [...kept.values()] }
}

/**
 * Gives each of them a file of its own. The old files stay with the forks: they must not go to the trash, where they would be one
 * more name. A file that cannot be made is an error, and the others go on.
 */
export async function unlinkAll(store: Store, { plans }: LinkPlan, run: MigrationRun, { part, storeSessions }: { readonly part: number; readonly storeSessions: number }): Promise<void> {
  const staged = plans.map((_, index) => `unlink-${run.token}-${String(index)}`)
  try {
    const actions = plans.flatMap((plan, index): ReplaceAction[] => {
      try {
        return [stageUnlinking(store, plan, staged[index] ?? '')]
      } catch (error) {
        run.errors.push(errorItem(error, plan.path))
        return []
      }
    })
    await run.apply(store, actions, part, { storeSessions, noTrash: true })
  } finally {
    sweepStaged(store, staged)
  }
}
