import { dirname, join } from 'node:path'
import type { ConversationRepair, Store } from '../../formats/format.js'
import { durationText } from '../../model/expiry.js'
import type { Finding } from '../../model/finding.js'
import type { KeptItem, PlanItem } from '../../model/report.js'
import type { ReplaceAction } from '../../plan/action.js'
import { errorItem } from '../../plan/outcome.js'
import { selectSessions } from '../select.js'
import type { MigrateOptions } from './options.js'
import type { MigrationRun } from './run.js'
import { stageFile, sweepStaged } from './stage.js'

/** The conversations that are repaired, those that are left, and why. */
interface PlannedConversations {
  readonly repairs: readonly ConversationRepair[]
  readonly items: readonly PlanItem[]
  readonly findings: readonly Finding[]
  readonly kept: readonly KeptItem[]
}

/** What would be done to the conversations of a store; nothing when a project moves, which is another matter. */
export function planConversations(store: Store, options: MigrateOptions, now: number): PlannedConversations {
  const { quietPeriodMs, move, markers, sessions } = options
  if (move !== undefined || store.conversationRepairs === undefined) return { repairs: [], items: [], findings: [], kept: [] }
  const found = store.conversationRepairs(markers ?? 'message')
  const asked = sessions === undefined || sessions.length === 0 ? undefined : new Set(selectSessions(store.inventory().sessions, sessions).map(({ id }) => id))
  const isAsked = ({ session }: { readonly session?: string }): boolean => asked === undefined || (session !== undefined && asked.has(session))
  const wanted = found.repairs.filter(isAsked)
  const young = wanted.filter(({ lastWritten }) => now - lastWritten <= quietPeriodMs)
  const repairs = wanted.filter((repair) => !young.includes(repair))
  return {
    repairs,
    findings: found.findings.filter(isAsked),
    items: repairs.map(({ session, file, reason }) => ({ action: 'write', path: join(dirname(store.root), file.path), session, bytes: 0, reason })),
    kept: young.map(({ session, reason }) => ({ session, reason: `${reason}, but left alone: its conversation changed within the quiet period of ${durationText(quietPeriodMs)}` })),
  }
}

/** Publishes repaired conversations; the old ones go to the trash. What is not right when it is read back is taken back. */
export async function repairConversations(
  store: Store,
  repairs: readonly ConversationRepair[],
  run: MigrationRun,
  { part, storeSessions }: { readonly part: number; readonly storeSessions: number },
): Promise<void> {
  const staged: string[] = []
  try {
    const actions = repairs.flatMap(({ session, file, reason }): ReplaceAction[] => {
      const name = `migrate-${run.token}-log-${String(staged.length)}`
      staged.push(name)
      try {
        return [stageFile(store, file, { session, name, reason, beside: true })]
      } catch (error) {
        run.errors.push(errorItem(error, file.path))
        return []
      }
    })
    const done = new Set((await run.apply(store, actions, part, { storeSessions })).done.map(({ path }) => path))
    for (const repair of repairs) {
      const { session, file } = repair
      const trouble = done.has(file.path) ? repair.check() : undefined
      if (trouble === undefined) continue
      run.errors.push({ code: 'NOT_PROVEN', path: join(dirname(store.root), file.path), message: `${trouble}; the conversation was put back as it was` })
      await run.takeBack(store, session, part)
    }
  } finally {
    sweepStaged(store, staged)
  }
}
