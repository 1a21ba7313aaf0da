import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../../formats/format.js'
import { UsageError } from '../../model/errors.js'
import { ExitCode } from '../../model/exit-code.js'
import { isAtLeast, type Finding } from '../../model/finding.js'
import { proofWords, type BrokenBackup, type Rebuild } from '../../model/repair-plan.js'
import type { ErrorItem, KeptItem, PlanItem, Report } from '../../model/report.js'
import { isConversation, type SessionRef } from '../../model/session.js'
import { planSchemaVersion, type Action } from '../../plan/action.js'
import { applyPlan } from '../../plan/apply.js'
import { errorItem } from '../../plan/outcome.js'
import { newRunId } from '../../plan/run-id.js'
import { liveSessions } from '../removal/live.js'
import { SealStore } from '../seals.js'
import { selectSessions } from '../select.js'
import { ForkComparison } from '../verify/steps/forks.js'
import { ForkedCopies } from './forked-copies.js'
import { defaultQuietMs, type RepairContext, type RepairOptions } from './options.js'
import { BackupPlanner } from './plan-backups.js'
import { stageRebuild } from './rebuild.js'
import { planRecords, recordAction, type RecordPlan } from './records.js'
import { brokenIn, lostWithFolder, surveySession } from './survey.js'
import { planUnlinking, stageUnlinking, type UnlinkPlan } from './unlink.js'
import { mendingWords, planMending, stageMending, type MendPlan } from './transcripts.js'

/**
 * Rebuilds the backups of a store that verify finds broken, from proof only: the same backup in a forked session that agrees
 * with its seal, a text of the transcript, the working file or a git object (formats/claude-code section 9; R34). With
 * `transcripts` it mends transcripts instead, with `unlink` it takes hard links apart. Without `apply` nothing is written anywhere. What is replaced goes to the
 * trash. What cannot be proven stays a finding, and then the exit code is 1. With `apply`, hold the store's lock.
 *
 * A rebuilt backup has the mode of the forked copy it was taken from, else that of the nearest version of the same path, else
 * 0600; one that replaces a plain file keeps the mode of that. Its time is that of the copy, else the one recorded for it.
 * @throws UsageError or NoMatchError for sessions that cannot be found; what `applyPlan` throws
 */
export async function repair(store: Store, options: RepairOptions, context: RepairContext): Promise<Report> {
  const run = new Repair(store, options, context)
  if (options.unlink === true) return run.unlink()
  return options.transcripts === true ? run.transcripts() : run.backups()
}

class Repair {
  readonly #store: Store
  readonly #options: RepairOptions
  readonly #context: RepairContext
  readonly #all: readonly SessionRef[]
  readonly #selected: readonly SessionRef[]
  readonly #findings: Finding[] = []
  readonly #kept: KeptItem[] = []
  readonly #errors: ErrorItem[] = []

  constructor(store: Store, options: RepairOptions, context: RepairContext) {
    this.#store = store
    this.#options = options
    this.#context = context
    this.#all = store.inventory().sessions
    this.#selected = selectSessions(this.#all, options.sessions).filter(isConversation)
  }

  async backups(): Promise<Report> {
    const rebuilds = await this.#planBackups()
    const records = this.#planRecords()
    const items = [
      ...records.map(({ session, file, proof }): PlanItem => ({ action: 'rebuild', path: file.path, session, bytes: file.bytes.length, reason: proof })),
      ...rebuilds.map((each): PlanItem => {
        const path = `${this.#store.backupFolder(each.session)}/${each.name}`
        return { action: 'rebuild', path, session: each.session, bytes: each.bytes, reason: proofWords(each.proof) }
      }),
    ]
    const refs = new Map(this.#all.map((ref) => [ref.id, ref]))
    const stage = async (each: Rebuild | RecordPlan, name: string): Promise<Action> => {
      if ('file' in each) return recordAction(this.#store, each)
      return stageRebuild(this.#store, refs.get(each.session) ?? { id: each.session, members: [] }, each, name, this.#context.execFile)
    }
    return this.#finish([...records, ...rebuilds], items, stage, { rebuildable: items.length, notProven: this.#findings.length })
  }

  #planRecords(): RecordPlan[] {
    const { now } = this.#context
    return this.#selected.flatMap((ref) => {
      const found = planRecords(this.#store, ref, { now, quietMs: this.#options.quietMs ?? defaultQuietMs })
      this.#findings.push(...found.findings)
      this.#kept.push(...found.kept)
      return found.plans.length > 0 && this.#isLive(ref.id) ? [] : found.plans
    })
  }

  async transcripts(): Promise<Report> {
    const { conversations } = this.#store
    if (conversations === undefined) throw new UsageError(`transcripts of the format ${this.#store.format} cannot be mended`)
    const plans: MendPlan[] = []
    for (const [index, session] of this.#selected.entries()) {
      this.#context.progress?.(index + 1, this.#selected.length)
      const found = planMending(this.#store, conversations, session, { now: this.#context.now, quietMs: this.#options.quietMs ?? defaultQuietMs })
      if (found.plans.length > 0 && this.#isLive(session.id)) continue
      plans.push(...found.plans)
      this.#kept.push(...found.kept)
    }
    const items = plans.map(({ session, path, mending, old }): PlanItem => ({ action: 'mend', path, session, bytes: old.identity.size, reason: mendingWords(mending) }))
    const stage = (plan: MendPlan, name: string): Promise<Action> => Promise.resolve(stageMending(this.#store, conversations, plan, name))
    return this.#finish(plans, items, stage, { mendable: plans.length })
  }

  /** Gives backups that are one file a file each. What was replaced does not go to the trash: there it would be one more name. */
  async unlink(): Promise<Report> {
    if (this.#store.linksAreSafe) throw new UsageError(`the agent of ${this.#store.format} never writes into a backup, so its links may stay`)
    const selected = new Set(this.#selected.map(({ id }) => id))
    const shared = planUnlinking(this.#store, this.#all).filter(({ sharers }) => sharers.some((id) => selected.has(id)))
    const live = new Set([...new Set(shared.flatMap(({ sharers }) => sharers))].filter((id) => this.#isLive(id)))
    const plans = shared.filter(({ sharers }) => !sharers.some((id) => live.has(id)))
    const items = plans.map(({ session, path, old, reason }): PlanItem => ({ action: 'unlink', path, session, bytes: old.identity.size, reason }))
    const stage = (plan: UnlinkPlan, name: string): Promise<Action> => Promise.resolve(stageUnlinking(this.#store, plan, name))
    return this.#finish(plans, items, stage, { linked: plans.length }, true)
  }

  async #planBackups(): Promise<Rebuild[]> {
    const seals = new SealStore(this.#store.sidecar)
    const broken = this.#findBroken(seals)
    const copies = new ForkedCopies(this.#store, this.#all, seals, this.#context.now)
    copies.want([...broken.values()].flatMap((each) => [...each.keys()]))
    const planner = new BackupPlanner(this.#store, seals, copies, this.#options, this.#context)
    const rebuilds: Rebuild[] = []
    for (const ref of this.#all) {
      const own = broken.get(ref.id)
      if (own === undefined) continue
      if (this.#isLive(ref.id)) continue
      this.#context.signal?.throwIfAborted()
      // Read again: the surveys of all sessions together may not fit into memory.
      const survey = surveySession(this.#store, ref, seals, undefined, this.#context.now)
      const plan = await planner.plan(survey, [...own.values()])
      rebuilds.push(...plan.rebuilds)
      this.#findings.push(...plan.findings)
    }
    return rebuilds
  }

  /** Broken backups by session and name. A session that is being written is left alone. */
  #findBroken(seals: SealStore): Map<string, Map<string, BrokenBackup>> {
    const forks = new ForkComparison()
    const broken = new Map<string, Map<string, BrokenBackup>>()
    const note = (each: BrokenBackup): void => {
      const own = broken.get(each.session) ?? new Map<string, BrokenBackup>()
      if (!own.has(each.name)) own.set(each.name, each)
      broken.set(each.session, own)
    }
    for (const [index, ref] of this.#selected.entries()) {
      this.#context.signal?.throwIfAborted()
      this.#context.progress?.(index + 1, this.#selected.length)
      const survey = surveySession(this.#store, ref, seals, forks, this.#context.now)
      if (survey.reading.busy) {
        this.#kept.push({ session: ref.id, reason: 'the transcript changed while it was read' })
        continue
      }
      for (const found of survey.findings) {
        const each = brokenIn(this.#store, survey.reading, found)
        if (each !== undefined) note(each)
        else if (found.id === 'backups-missing') lostWithFolder(this.#store, survey).forEach(note)
        else if (found.id === 'unreadable' || found.id === 'newer-format') this.#findings.push(found)
      }
    }
    return broken
  }

  /** Asks the registry of running sessions, each time anew; a session that is live is kept, with the reason. */
  #isLive(session: string): boolean {
    const reason = liveSessions(this.#store.live(this.#context.machine, this.#context.now)).get(session)
    if (reason !== undefined) this.#kept.push({ session, reason })
    return reason !== undefined
  }

  async #finish<T extends { readonly session: string }>(
    planned: readonly T[],
    items: readonly PlanItem[],
    stage: (each: T, name: string) => Promise<Action>,
    counts: Readonly<Record<string, number>>,
    noTrash = false,
  ): Promise<Report> {
    const applied = this.#options.apply === true
    const result = applied && planned.length > 0 ? await this.#apply(planned, items, stage, noTrash) : undefined
    const failing = this.#findings.some(({ severity }) => isAtLeast(severity, 'error'))
    const exitCode = this.#errors.length > 0 ? ExitCode.partial : failing ? ExitCode.findings : ExitCode.done
    return {
      command: 'repair',
      roots: [this.#store.root],
      applied,
      ...(result === undefined ? {} : { runId: result.runId }),
      summary: { sessions: this.#selected.length, ...counts, done: result?.done.length ?? 0 },
      findings: this.#findings,
      plan: result?.done ?? items,
      kept: this.#kept,
      errors: this.#errors,
      exitCode: result === undefined || result.exitCode === ExitCode.done ? exitCode : result.exitCode,
      ...(applied || items.length === 0 ? {} : { next: `rewind-admin repair${this.#options.transcripts === true ? ' --transcripts' : noTrash ? ' --unlink' : ''} --apply` }),
    }
  }

  async #apply<T extends { readonly session: string }>(
    planned: readonly T[],
    items: readonly PlanItem[],
    stage: (each: T, name: string) => Promise<Action>,
    noTrash: boolean,
  ): Promise<{ runId: string; done: PlanItem[]; exitCode: ExitCode }> {
    const { now, token, signal } = this.#context
    const actions: Action[] = []
    const staged: string[] = []
    try {
      for (const [index, each] of planned.entries()) {
        if (signal?.aborted === true) break
        if (this.#isLive(each.session)) continue
        const name = `repair-${token}-${String(index)}`
        try {
          staged.push(name)
          actions.push(await stage(each, name))
        } catch (error) {
          this.#errors.push(errorItem(error, items[index]?.path))
        }
      }
      const runId = newRunId(now, token)
      const { format, root, sidecar } = this.#store
      const plan = { schemaVersion: planSchemaVersion, format, root, sidecar, createdAt: now, command: 'repair', storeSessions: this.#all.length, actions, kept: [] } as const
      const result = await applyPlan(plan, { now, runId, noTrash, ...(signal === undefined ? {} : { signal }) })
      this.#kept.push(...result.kept)
      this.#errors.push(...result.errors)
      const byPath = new Map(items.map((item) => [item.path, item]))
      const done = result.done.map((item) => byPath.get(item.path) ?? item)
      return { runId, done, exitCode: result.exitCode }
    } finally {
      for (const name of staged) rmSync(join(this.#store.sidecar, 'staging', name), { force: true })
    }
  }
}
