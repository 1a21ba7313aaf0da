import type { Store } from '../../formats/format.js'
import { quietReason } from '../../model/expiry.js'
import type { Finding } from '../../model/finding.js'
import type { PlanItem, Report } from '../../model/report.js'
import type { SessionReading, SessionRef } from '../../model/session.js'
import type { RemoveAction, ReplaceAction } from '../../plan/action.js'
import type { ApplyResult } from '../../plan/apply.js'
import { errorItem } from '../../plan/outcome.js'
import { liveSessions } from '../removal/live.js'
import { selectSessions } from '../select.js'
import { contentsOf, doubtAbout, itemsOf, lookAt, newestFile } from '../session-size.js'
import { planConversations, repairConversations } from './conversations.js'
import { noLinks, planLinks, unlinkAll, type LinkPlan } from './links.js'
import type { MigrateContext, MigrateOptions } from './options.js'
import { isOfMoved, itemsFor, type Planned } from './planned.js'
import { firstDifference, resolutionsOf } from './resolutions.js'
import { MigrationRun } from './run.js'
import { stageFile, sweepStaged } from './stage.js'
import { moveState, planState, type StatePlan } from './states.js'

/**
 * Brings sessions to the newest generation that their agent reads, or to the place that their project was moved to, and keeps a
 * state of our own of checkpoints that stand in a transcript alone. Without `apply` nothing is written. With it the new files
 * are published first; originals go to the trash only after the result was read back and every path is the same at every
 * checkpoint, else the new files are taken back; markers of rewinds in conversations are read back likewise. Backups that forks
 * share with their source, where the agent writes into backups, get a file each. Doing it twice is doing it once. Hold the store's
 * lock.
 * @throws UsageError, NoMatchError for sessions that cannot be found; what `applyPlan` throws
 */
export async function migrate(store: Store, options: MigrateOptions, context: MigrateContext): Promise<Report> {
  return new Migrate(store, options, context).run()
}

class Migrate {
  readonly #store: Store
  readonly #options: MigrateOptions
  readonly #context: MigrateContext
  readonly #run: MigrationRun
  readonly #findings: Finding[] = []
  readonly #items: PlanItem[] = []
  #storeSessions = 0
  /** Sessions of the project that moved, wherever they are by now. */
  #matched = 0

  constructor(store: Store, options: MigrateOptions, context: MigrateContext) {
    this.#store = store
    this.#options = options
    this.#context = context
    this.#run = new MigrationRun(context)
  }

  async run(): Promise<Report> {
    const { sessions } = this.#store.inventory()
    this.#storeSessions = sessions.length
    const selected = selectSessions(sessions, this.#options.sessions)
    const live = liveSessions(this.#store.live(this.#context.machine, this.#context.now))
    const states: StatePlan[] = []
    const planned: Planned[] = []
    for (const [index, ref] of selected.entries()) {
      this.#context.signal?.throwIfAborted()
      this.#context.progress?.(index + 1, selected.length)
      const reading = this.#store.read(ref, { now: this.#context.now })
      const state = planState(this.#store, ref, reading)
      if (state !== undefined) states.push(state)
      const found = this.#planOne(ref, reading, live)
      if (found !== undefined) planned.push(found)
    }
    const links = this.#planLinks(sessions, selected, live)
    for (const { item } of states) this.#items.push(item)
    for (const { ref, migration } of planned) this.#items.push(...itemsFor(ref, migration))
    this.#items.push(...links.items)
    const talks = planConversations(this.#store, this.#options, this.#context.now)
    this.#items.push(...talks.items)
    this.#findings.push(...talks.findings)
    this.#run.kept.push(...talks.kept)
    if (this.#options.apply === true) {
      for (const state of states) this.#writeState(state)
      if (planned.length > 0) await this.#carryOut(planned)
      if (links.plans.length > 0) await unlinkAll(this.#store, links, this.#run, { part: 3, storeSessions: this.#storeSessions })
      await repairConversations(this.#store, talks.repairs, this.#run, { part: 4, storeSessions: this.#storeSessions })
    }
    return this.#report({ sessions: selected.length, states: states.length, migrations: planned.length, linked: links.plans.length, conversations: talks.repairs.length })
  }

  #planOne(ref: SessionRef, reading: SessionReading, live: ReadonlyMap<string, string>): Planned | undefined {
    const { now } = this.#context
    const { move } = this.#options
    const migration = this.#store.migrate?.(ref, reading, { now, ...(move === undefined ? {} : { move }) })
    if (move !== undefined && (migration !== undefined || isOfMoved(reading, move))) this.#matched += 1
    if (migration === undefined) return undefined
    if ('refusal' in migration) {
      this.#run.kept.push({ session: ref.id, reason: migration.refusal })
      return undefined
    }
    this.#findings.push(...(migration.findings ?? []))
    if (migration.files.length === 0 && migration.drop.length === 0) return undefined
    const reason = this.#reasonToKeep(ref, reading, live)
    if (reason !== undefined) {
      this.#run.kept.push({ session: ref.id, reason: `${migration.reason}, but left alone: ${reason}` })
      return undefined
    }
    return { ref, migration, before: resolutionsOf(this.#store, reading) }
  }

  #reasonToKeep(ref: SessionRef, reading: SessionReading, live: ReadonlyMap<string, string>): string | undefined {
    const said = live.get(ref.id) ?? doubtAbout(reading)
    if (said !== undefined) return said
    const { quietPeriodMs } = this.#options
    const newest = Math.max(newestFile(this.#store, contentsOf(this.#store, ref).own), reading.lastRecorded ?? 0)
    return quietReason(newest, this.#context.now, quietPeriodMs)
  }

  #planLinks(sessions: readonly SessionRef[], selected: readonly SessionRef[], live: ReadonlyMap<string, string>): LinkPlan {
    if (this.#options.move !== undefined) return noLinks
    const read = (ref: SessionRef): SessionReading => this.#store.read(ref, { now: this.#context.now, history: false })
    const links = planLinks(this.#store, sessions, new Set(selected.map(({ id }) => id)), (ref) => this.#reasonToKeep(ref, read(ref), live))
    this.#run.kept.push(...links.kept)
    return links
  }

  #writeState(state: StatePlan): void {
    try {
      state.write()
    } catch (error) {
      this.#run.errors.push(errorItem(error, state.item.path))
    }
  }

  async #carryOut(planned: readonly Planned[]): Promise<void> {
    const staged: string[] = []
    try {
      const first = await this.#publish(planned, staged)
      const whole = await this.#takeBackUnfinished(planned, first)
      const proven = await this.#readBack(whole)
      await this.#drop(proven)
    } finally {
      sweepStaged(this.#store, staged)
    }
  }

  async #publish(planned: readonly Planned[], staged: string[]): Promise<ApplyResult> {
    const actions: ReplaceAction[] = []
    for (const { ref, migration } of planned) {
      const own: ReplaceAction[] = []
      try {
        for (const file of migration.files) {
          const name = `migrate-${this.#run.token}-${String(staged.length)}`
          staged.push(name)
          own.push(stageFile(this.#store, file, { session: ref.id, name, reason: migration.reason }))
        }
        actions.push(...own)
      } catch (error) {
        this.#run.errors.push(errorItem(error, ref.id))
      }
    }
    return this.#apply(actions, 1)
  }

  /** A session of which not every file could be published is as it was before. Returns the others. */
  async #takeBackUnfinished(planned: readonly Planned[], result: ApplyResult): Promise<Planned[]> {
    const done = new Set(result.done.map(({ path }) => path))
    const whole: Planned[] = []
    for (const each of planned) {
      const published = each.migration.files.filter(({ path }) => done.has(path)).length
      if (published === each.migration.files.length) whole.push(each)
      else if (published > 0) await this.#run.takeBack(this.#store, each.ref.id, 1)
    }
    return whole
  }

  async #readBack(published: readonly Planned[]): Promise<Planned[]> {
    const refs = new Map(this.#store.inventory().sessions.map((ref) => [ref.id, ref]))
    const proven: Planned[] = []
    for (const each of published) {
      const dropped = new Set(each.migration.drop.map(({ path }) => path))
      const ref = refs.get(each.ref.id)
      const rest = { id: each.ref.id, members: ref?.members.filter(({ path }) => !dropped.has(path)) ?? [] }
      const after = resolutionsOf(this.#store, this.#store.read(rest, { now: this.#context.now }))
      const difference = firstDifference(each.before, after, each.migration.newKey ?? ((key) => key))
      if (difference === undefined) {
        proven.push(each)
        if (this.#options.move !== undefined) moveState(this.#store, each.ref.id, this.#options.move)
      } else {
        const message = `session ${each.ref.id} would not be what it was: ${difference}; the new files were taken back`
        this.#run.errors.push({ code: 'NOT_PROVEN', path: each.migration.files[0]?.path ?? each.ref.id, message })
        await this.#run.takeBack(this.#store, each.ref.id, 1)
      }
    }
    return proven
  }

  async #drop(proven: readonly Planned[]): Promise<void> {
    const actions = proven.flatMap(({ ref, migration }): RemoveAction[] => {
      const looked = lookAt(this.#store, migration.drop)
      if ('error' in looked) {
        this.#run.errors.push(looked.error)
        return []
      }
      if (looked.planned.length === 0) return []
      const emptied = migration.emptied === undefined ? {} : { emptied: migration.emptied }
      return [{ kind: 'trash-backups', session: ref.id, reason: migration.reason, bytes: 0, items: itemsOf(looked.planned), ...emptied }]
    })
    await this.#apply(actions, 2)
  }

  #apply(actions: readonly (ReplaceAction | RemoveAction)[], part: number): Promise<ApplyResult> {
    return this.#run.apply(this.#store, actions, part, { storeSessions: this.#storeSessions })
  }

  #report(counts: Readonly<Record<'sessions' | 'states' | 'migrations' | 'linked' | 'conversations', number>>): Report {
    const { conversations, ...others } = counts
    const applied = this.#options.apply === true
    return {
      command: 'migrate',
      roots: [this.#store.root],
      applied,
      ...(applied && counts.migrations + counts.linked + conversations > 0 ? { runId: this.#run.id } : {}),
      summary: {
        ...others,
        ...(this.#store.conversationRepairs === undefined ? {} : { conversations }),
        ...(this.#options.move === undefined ? {} : { matched: this.#matched }),
        kept: this.#run.kept.length,
      },
      findings: this.#findings,
      plan: this.#items,
      kept: this.#run.kept,
      errors: this.#run.errors,
      exitCode: this.#run.exitCode,
    }
  }
}
