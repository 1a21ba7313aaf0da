import { join } from 'node:path'
import type { SessionMerge, Store } from '../../formats/format.js'
import { statusOf } from '../../fs/identity.js'
import { insideRoot } from '../../fs/safe-path.js'
import { quietReason } from '../../model/expiry.js'
import type { PlanItem, Report } from '../../model/report.js'
import type { SessionRef } from '../../model/session.js'
import type { Action, PlannedItem, ReplaceAction } from '../../plan/action.js'
import { setFolderTime } from '../../plan/folder-times.js'
import { errorItem } from '../../plan/outcome.js'
import { liveSessions } from '../removal/live.js'
import { selectSessions } from '../select.js'
import { contentsOf, doubtAbout, itemsOf, lookAt, newestFile } from '../session-size.js'
import type { MigrateContext, MigrateOptions } from './options.js'
import { firstDifference, resolutionsOf, type Resolutions } from './resolutions.js'
import { MigrationRun } from './run.js'
import { stageFile, sweepStaged } from './stage.js'

/**
 * Brings the sessions of another root of the same agent into the one that the agent uses now. Without `apply` nothing is
 * written. A session goes to the trash of its old root only when every path is, at every checkpoint, what both roots together
 * said, down to the bytes. Where both roots have the same name with other bytes, both stay as they are. Doing it twice is
 * doing it once, and a run that was cut off is finished by the next. Hold the locks of both stores.
 * @throws NoMatchError, UsageError for sessions that cannot be found; what `applyPlan` throws
 */
export async function mergeRoots(to: Store, from: Store, options: MigrateOptions, context: MigrateContext): Promise<Report> {
  return new Merge(to, from, options, context).run()
}

interface Planned {
  readonly ref: SessionRef
  readonly merge: SessionMerge
  readonly expected: Resolutions
  /** What goes to the trash of the old root. */
  readonly old: readonly PlannedItem[]
}

class Merge {
  readonly #to: Store
  readonly #from: Store
  readonly #options: MigrateOptions
  readonly #context: MigrateContext
  readonly #run: MigrationRun
  readonly #reason: string
  readonly #items: PlanItem[] = []

  constructor(to: Store, from: Store, options: MigrateOptions, context: MigrateContext) {
    this.#to = to
    this.#from = from
    this.#options = options
    this.#context = context
    this.#run = new MigrationRun(context)
    this.#reason = `merged from ${from.root} into ${to.root}`
  }

  async run(): Promise<Report> {
    const { signal } = this.#context
    const selected = selectSessions(this.#from.inventory().sessions, this.#options.sessions)
    const planned = selected.flatMap((ref, index): Planned[] => {
      signal?.throwIfAborted()
      this.#context.progress?.(index + 1, selected.length)
      const one = this.#plan(ref)
      return one === undefined ? [] : [one]
    })
    for (const { ref, merge, old } of planned) {
      for (const { path } of merge.files) this.#items.push({ action: 'write', path, session: ref.id, bytes: 0, reason: this.#reason })
      for (const { path } of old) this.#items.push({ action: 'trash', path: join(this.#from.root, path), session: ref.id, bytes: 0, reason: this.#reason })
    }
    if (this.#options.apply === true && planned.length > 0) await this.#carryOut(planned)
    return this.#report(selected.length, planned.length)
  }

  #report(sessions: number, merged: number): Report {
    const applied = this.#options.apply === true
    return {
      command: 'migrate',
      roots: [this.#to.root, this.#from.root],
      applied,
      ...(applied && merged > 0 ? { runId: this.#run.id } : {}),
      summary: { sessions, merged, kept: this.#run.kept.length },
      findings: [],
      plan: this.#items,
      kept: this.#run.kept,
      errors: this.#run.errors,
      exitCode: this.#run.exitCode,
    }
  }

  #plan(ref: SessionRef): Planned | undefined {
    const merge = this.#to.merge?.(this.#from.root, ref, { now: this.#context.now })
    if (merge === undefined) return undefined
    const reason = 'refusal' in merge ? merge.refusal : (this.#reasonToWait(this.#from, ref) ?? this.#reasonToWait(this.#to, ref))
    if ('refusal' in merge || reason !== undefined) {
      this.#run.kept.push({ session: ref.id, reason: `it stays in both roots: ${reason ?? ''}` })
      return undefined
    }
    const looked = lookAt(this.#from, contentsOf(this.#from, ref).own)
    if ('error' in looked) {
      this.#run.errors.push(looked.error)
      return undefined
    }
    return { ref, merge, expected: resolutionsOf({ ...this.#to, inlineBytes: (_session, name) => bytesOf(merge, name) }, merge.reading), old: itemsOf(looked.planned) }
  }

  #reasonToWait(store: Store, ref: SessionRef): string | undefined {
    const { now, machine } = this.#context
    const { quietPeriodMs } = this.#options
    const reading = store.read(ref, { now })
    const said = liveSessions(store.live(machine, now)).get(ref.id) ?? doubtAbout(reading)
    if (said !== undefined) return said
    const newest = Math.max(newestFile(store, contentsOf(store, ref).own), reading.lastRecorded ?? 0, reading.lastWritten ?? 0)
    return quietReason(newest, now, quietPeriodMs)
  }

  async #carryOut(planned: readonly Planned[]): Promise<void> {
    const staged: string[] = []
    try {
      const actions = planned.flatMap((each) => this.#stage(each, staged))
      const done = new Set((await this.#run.apply(this.#to, actions, 1, { storeSessions: 1 })).done.map(({ path }) => path))
      const proven: Planned[] = []
      for (const each of planned) if (await this.#isProven(each, done)) proven.push(each)
      const drops = proven.map(({ ref, old }): Action => ({ kind: 'trash-session', session: ref.id, reason: this.#reason, bytes: 0, items: old }))
      await this.#run.apply(this.#from, drops, 2, { storeSessions: 1 })
    } finally {
      sweepStaged(this.#to, staged)
    }
  }

  #stage({ ref, merge }: Planned, staged: string[]): ReplaceAction[] {
    try {
      return merge.files.map((file) => {
        const name = `merge-${this.#run.token}-${String(staged.length)}`
        staged.push(name)
        return stageFile(this.#to, file, { session: ref.id, name, reason: this.#reason })
      })
    } catch (error) {
      this.#run.errors.push(errorItem(error, ref.id))
      return []
    }
  }

  /** True when the session is whole in the new root; else what was published of it is taken back. */
  async #isProven({ ref, merge, expected }: Planned, done: ReadonlySet<string>): Promise<boolean> {
    const published = merge.files.filter(({ path }) => done.has(path)).length
    const trouble = published < merge.files.length ? 'not every file of it could be published' : this.#troubleWith(ref, merge, expected)
    if (trouble === undefined) {
      for (const { path, mtimeNs } of merge.folders.toReversed()) this.#giveTime(path, mtimeNs)
      return true
    }
    this.#run.errors.push({ code: 'NOT_PROVEN', path: ref.id, message: `${trouble}; it stays in ${this.#from.root}, and what was published was taken back` })
    if (published > 0) await this.#run.takeBack(this.#to, ref.id, 1)
    return false
  }

  /** A folder that was made must not make the session look more recent than it is. */
  #giveTime(relative: string, mtimeNs: bigint): void {
    const path = insideRoot(this.#to.root, relative)
    const status = path === undefined ? undefined : statusOf(path)
    if (path !== undefined && status !== undefined) setFolderTime(path, mtimeNs, status.ino)
  }

  #troubleWith(ref: SessionRef, merge: SessionMerge, expected: Resolutions): string | undefined {
    const after = resolutionsOf(this.#to, this.#to.read({ id: ref.id, members: [] }, { now: this.#context.now }))
    return merge.check() ?? firstDifference(expected, after, (key) => key)
  }
}

function bytesOf(merge: SessionMerge, name: string): Buffer | undefined {
  try {
    return merge.bytes(name)
  } catch {
    // Missing, or nothing that can be read: then nobody can tell, in the result as well.
    return undefined
  }
}
