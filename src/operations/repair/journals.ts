import type { InterruptedRestore, RestoreWay, Store } from '../../formats/format.js'
import type { SyncFileSystem } from '../../fs/flush.js'
import type { BackupRecord } from '../../model/backup.js'
import { UsageError } from '../../model/errors.js'
import { ExitCode } from '../../model/exit-code.js'
import { quietReason } from '../../model/expiry.js'
import { finding, type Finding } from '../../model/finding.js'
import type { Checkpoint, History } from '../../model/history.js'
import type { ErrorItem, KeptItem, PlanItem, Report } from '../../model/report.js'
import { defaultRestoreRules, isChange, type PlannedPath } from '../../model/restore-plan.js'
import { isConversation, type SessionReading, type SessionRef } from '../../model/session.js'
import { planSchemaVersion, type Action } from '../../plan/action.js'
import { applyPlan } from '../../plan/apply.js'
import { planItem } from '../../plan/planned-item.js'
import { newRunId } from '../../plan/run-id.js'
import { liveSessions } from '../removal/live.js'
import { applyRestore } from '../restore/apply.js'
import { planRestore, type RestorePlan } from '../restore/plan.js'
import { selectSessions } from '../select.js'
import { contentsOf, doubtAbout } from '../session-size.js'
import { defaultQuietMs, type RepairContext } from './options.js'

export interface JournalOptions {
  /** Session ids or unique prefixes; none means all. */
  readonly sessions?: readonly string[]
  /** Does what the plan says. */
  readonly apply?: boolean
  /** Puts files back as they were before the restore, instead of finishing it. */
  readonly rollBack?: boolean
  /** Also writes text that lost bytes, and deletes files that are not what the restore wrote. */
  readonly force?: boolean
  /** A session is left alone for so long after the last sign of life, in milliseconds; one hour unless told otherwise. */
  readonly quietMs?: number
}

export interface JournalContext extends RepairContext {
  /** The user's home folder, absolute. */
  readonly home: string
  readonly windows: boolean
  readonly syncFileSystem?: SyncFileSystem
}

/**
 * Ends restores of the agent's own that were cut off: finishes them, or rolls them back where that is asked for or is all that
 * is left (formats/dsh-rewind section 3.3). The disk decides what is still to do, not what the journal says was done. A journal is
 * closed once every path is as it should be; of one that cannot be followed nothing is touched. The state before is a redo
 * point, so that `redo` undoes it. Without `apply` nothing is written; with it, hold the store's lock.
 * @throws UsageError when the agent keeps no such journals; NoMatchError or UsageError for sessions; what `applyPlan` throws
 */
export async function repairJournals(store: Store, options: JournalOptions, context: JournalContext): Promise<Report> {
  if (store.interruptedRestores === undefined) throw new UsageError(`the agent of the format ${store.format} keeps no journals of restores`)
  const run = new JournalRepair(store, options, context)
  const all = store.inventory().sessions.filter(isConversation)
  for (const session of selectSessions(all, options.sessions)) run.session(session, store.interruptedRestores(session))
  return run.finish(all.length)
}

/** One journal with what is to be done. */
interface Ending {
  readonly session: SessionRef
  readonly journal: InterruptedRestore
  readonly way: RestoreWay
  readonly plan: RestorePlan
  readonly words: string
}

class JournalRepair {
  readonly #store: Store
  readonly #options: JournalOptions
  readonly #context: JournalContext
  readonly #items: PlanItem[] = []
  readonly #findings: Finding[] = []
  readonly #kept: KeptItem[] = []
  readonly #errors: ErrorItem[] = []
  readonly #closing: Action[] = []
  #open = 0
  #closed = 0

  constructor(store: Store, options: JournalOptions, context: JournalContext) {
    this.#store = store
    this.#options = options
    this.#context = context
  }

  session(session: SessionRef, journals: readonly InterruptedRestore[]): void {
    if (journals.length === 0) return
    const reading = this.#store.read(session, { now: this.#context.now })
    const reason = this.#reasonToKeep(session, reading)
    for (const journal of journals) {
      this.#open += 1
      if (journal.damaged !== undefined) {
        this.#findings.push(finding('damaged-journal', `${journal.damaged}; it is kept, and so is all that it may name`, { session: session.id, path: journal.path }))
      } else if (reason !== undefined) this.#kept.push({ session: session.id, reason })
      else this.#journal(session, reading, journal)
    }
  }

  async finish(storeSessions: number): Promise<Report> {
    const applied = this.#options.apply === true
    const runId = applied && this.#closing.length > 0 ? await this.#close(storeSessions) : undefined
    return {
      command: 'repair',
      roots: [this.#store.root],
      applied,
      ...(runId === undefined ? {} : { runId }),
      summary: { journals: this.#open, changes: this.#items.filter(({ action }) => action !== 'close').length, closed: this.#closed },
      findings: this.#findings,
      plan: this.#items,
      kept: this.#kept,
      errors: this.#errors,
      exitCode: this.#errors.length > 0 ? ExitCode.partial : ExitCode.done,
      ...(applied || this.#items.length === 0 ? {} : { next: 'rewind-admin repair --journals --apply' }),
    }
  }

  #reasonToKeep(session: SessionRef, reading: SessionReading): string | undefined {
    const { now, machine } = this.#context
    const said = liveSessions(this.#store.live(machine, now)).get(session.id) ?? doubtAbout(reading)
    if (said !== undefined) return said
    const quietMs = this.#options.quietMs ?? defaultQuietMs
    const newest = Math.max(contentsOf(this.#store, session).backup ?? 0, reading.lastWritten ?? 0)
    return quietReason(newest, now, quietMs)
  }

  #journal(session: SessionRef, reading: SessionReading, journal: InterruptedRestore): void {
    const way = this.#options.rollBack === true ? journal.rollBack : (journal.finish ?? journal.rollBack)
    if (way === undefined) return
    const back = way === journal.rollBack
    const words = `the restore to ${journal.target ?? 'a message'} that did not end ${back ? 'is rolled back' : 'is finished'}`
    const { plan, refused } = this.#plan(reading, way)
    for (const { path, bytes, action } of changesOf(plan)) this.#items.push({ action, path, session: session.id, bytes, reason: words })
    const left = plan.items.flatMap(({ path, decision }) => (decision.action === 'skip' || decision.action === 'fail' || decision.action === 'unknown' ? [{ path, reason: decision.reason }] : []))
    for (const { path, reason } of [...left, ...refused]) this.#errors.push({ code: 'JOURNAL', path, message: `${reason}; ${journal.path} stays open` })
    const ending: Ending = { session, journal, way, plan, words }
    if (this.#options.apply === true ? this.#carryOut(ending) && left.length + refused.length === 0 : left.length + refused.length === 0) this.#planToClose(ending)
  }

  /** What a way does to the files; a file that would be deleted must be what the restore wrote. */
  #plan(reading: SessionReading, way: RestoreWay): { readonly plan: RestorePlan; readonly refused: readonly { path: string; reason: string }[] } {
    const plan = this.#planFor(reading, way, way.files)
    if (way.written.size === 0 || this.#options.force === true) return { plan, refused: [] }
    const written = new Map(this.#planFor(reading, way, way.written).items.map(({ path, decision }) => [path, decision.action === 'unchanged']))
    const isRefused = ({ path, decision }: PlannedPath): boolean => decision.action === 'delete' && written.get(path) === false
    const refused = plan.items.filter(isRefused).map(({ path }) => ({ path, reason: 'what stands there is not what the restore wrote, so it is not deleted' }))
    return { plan: { ...plan, items: plan.items.filter((item) => !isRefused(item)) }, refused }
  }

  #planFor(reading: SessionReading, { inline }: RestoreWay, files: ReadonlyMap<string, BackupRecord>): RestorePlan {
    const { home, windows } = this.#context
    const checkpoint: Checkpoint = { id: 'journal', order: 0, files: new Map([...files].map(([path, record]) => [path, this.#forced(record)])) }
    const history: History = { checkpoints: [checkpoint], originals: new Map(), references: new Map(), tracked: new Set(files.keys()), anomalies: [], lines: 0 }
    // The size of what stands there does not matter: the restore had begun (section 3.3).
    const rules = { ...(this.#store.restoreRules ?? defaultRestoreRules), liveLimit: Number.POSITIVE_INFINITY }
    const store: Store = { ...this.#store, restoreRules: rules, inlineBytes: (_session, name) => inline.get(name) }
    return planRestore(store, { ...reading, history }, checkpoint, { home, windows })
  }

  #forced(record: BackupRecord): BackupRecord {
    if (this.#options.force !== true) return record
    const { lossy, ...rest } = record
    return lossy === undefined ? record : rest
  }

  /** True when every path is as it should be. */
  #carryOut({ plan, journal }: Ending): boolean {
    const { now, syncFileSystem } = this.#context
    const result = applyRestore(plan, { sidecar: this.#store.sidecar, now, partial: true, ...(syncFileSystem === undefined ? {} : { syncFileSystem }) })
    const known = new Set(this.#errors.map(({ path }) => path))
    for (const { path, code, reason } of result.failed) {
      if (!known.has(path)) this.#errors.push({ code, path, message: `${reason}; ${journal.path} stays open` })
    }
    return result.exitCode === ExitCode.done
  }

  #planToClose({ session, journal, way, words }: Ending): void {
    const { path, bytes } = way.closed(this.#context.now)
    this.#items.push({ action: 'close', path, session: session.id, bytes: 0, reason: words })
    const old = planItem(this.#store.root, { kind: 'companion', path })?.item
    if (old === undefined) return
    this.#closing.push({ kind: 'replace', session: session.id, path: journal.path, old, content: bytes.toString('base64'), bytes: 0, reason: words })
  }

  async #close(storeSessions: number): Promise<string> {
    const { now, token, signal } = this.#context
    const { format, root, sidecar } = this.#store
    const runId = newRunId(now, token)
    const plan = { schemaVersion: planSchemaVersion, format, root, sidecar, createdAt: now, command: 'repair', storeSessions, actions: this.#closing, kept: [] } as const
    const result = await applyPlan(plan, { now, runId, ...(signal === undefined ? {} : { signal }) })
    this.#closed = result.done.length
    this.#kept.push(...result.kept)
    this.#errors.push(...result.errors)
    return runId
  }
}

function changesOf(plan: RestorePlan): { readonly path: string; readonly action: string; readonly bytes: number }[] {
  return plan.items.flatMap(({ path, decision }) => (isChange(decision) ? [{ path, action: decision.action, bytes: decision.action === 'restore' ? decision.size : 0 }] : []))
}
