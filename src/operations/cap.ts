import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { CapChoice, Store } from '../formats/format.js'
import { probeFolder, type ProbedFolder } from '../fs/probe.js'
import { keptCheckpoints, removableBackups } from '../model/cap-plan.js'
import { NoMatchError, UsageError } from '../model/errors.js'
import { quietReason } from '../model/expiry.js'
import type { Finding } from '../model/finding.js'
import type { History, Reference } from '../model/history.js'
import { isBackupName, parseBackupName } from '../model/names.js'
import { isSameProject } from '../model/project-path.js'
import type { ErrorItem, KeptItem } from '../model/report.js'
import { isConversation, membersOf, type Member, type SessionReading, type SessionRef } from '../model/session.js'
import type { Action, PlannedItem } from '../plan/action.js'
import { FreedBytes, planItem } from '../plan/planned-item.js'
import type { PlanContext } from './expire/options.js'
import { recognisedInventory } from './recognised.js'
import { liveSessions } from './removal/live.js'
import { planFor, type Removal } from './removal/removal.js'
import { selectSessions } from './select.js'
import { asErrors, doubtAbout, freedBy, itemsOf, lookAt, newestFile, newestTranscript } from './session-size.js'

export interface CapOptions {
  /** Checkpoints to keep on every branch; without it as many as the agent keeps. */
  readonly max?: number
  /** Session ids or unique prefixes; none means all. */
  readonly sessions?: readonly string[]
  /** Only sessions that were started in this folder. */
  readonly project?: string
  /** A session that changed within so many milliseconds is left alone. */
  readonly quietPeriodMs: number
  /** Sessions that must stay as they are, with the reason. */
  readonly protectedSessions?: ReadonlyMap<string, string>
  /** Backups of a session that something else of ours still needs, by name. */
  readonly spared?: (session: string) => ReadonlySet<string>
}

/** Less than this many bytes of transcript cannot hold a checkpoint. */
const leastCheckpointBytes = 64

/**
 * Plans the removal of backups that no checkpoint needs which is among the newest `max` of its session or of a branch that
 * can still be reached. Transcripts are not rewritten, version 1 stays, and a session that is live, was changed within the
 * quiet period or is damaged is left alone. Reads only.
 * @throws UsageError for a cap below 1; NoMatchError when nothing is what was named; NoStoreError when nothing is recognised
 */
export function planCap(store: Store, options: CapOptions, context: PlanContext): Removal {
  const max = options.max ?? store.cap
  if (!Number.isSafeInteger(max) || max < 1) throw new UsageError(`a cap of ${String(max)} keeps nothing; the smallest is 1`)
  const inventory = recognisedInventory(store)
  const planner = new CapPlanner(store, options, context, max)
  const selected = selectSessions(inventory.sessions, options.sessions).filter(isConversation)
  for (const session of selected) planner.session(session)
  if (options.project !== undefined && planner.matched === 0) {
    throw new NoMatchError(`no session was started in ${options.project}`, { hint: 'rewind-admin list' })
  }
  return planner.finish(inventory.sessions.filter(isConversation).length)
}

class CapPlanner {
  readonly #store: Store
  readonly #options: CapOptions
  readonly #context: PlanContext
  readonly #max: number
  readonly #live: ReadonlyMap<string, string>
  readonly #freed = new FreedBytes()
  readonly #actions: Action[] = []
  readonly #kept: KeptItem[] = []
  readonly #findings: Finding[] = []
  readonly #errors: ErrorItem[] = []
  #overCap = 0
  #backups = 0
  matched = 0

  constructor(store: Store, options: CapOptions, context: PlanContext, max: number) {
    this.#store = store
    this.#options = options
    this.#context = context
    this.#max = max
    this.#live = liveSessions(store.live(context.machine, context.now))
  }

  session(ref: SessionRef): void {
    if (this.#options.project !== undefined && !this.#isInProject(ref, this.#options.project)) return
    this.matched += 1
    if (this.#store.capSession === undefined) this.#byNames(ref)
    else this.#byFormat(ref)
  }

  /** By the rule that a format has of its own: records are rewritten first, and what only they named goes after. */
  #byFormat(ref: SessionRef): void {
    const looked = lookAt(this.#store, ref.members)
    if ('error' in looked) {
      this.#errors.push(...asErrors(looked.error))
      return
    }
    const reading = this.#store.read(ref, { now: this.#context.now })
    const choice = this.#store.capSession?.(ref, reading, this.#max, { now: this.#context.now, spared: this.#spared(ref) })
    if (choice === undefined || (choice.drop.length === 0 && choice.rewrites.length === 0 && choice.refusal === undefined)) return
    const isOver = choice.checkpoints > 0 || choice.refusal !== undefined
    if (isOver) this.#overCap += 1
    const newest = newestFile(this.#store, ref.members)
    const reason = choice.refusal ?? this.#reasonToKeep(ref, reading, newest)
    if (reason !== undefined) {
      if (isOver) this.#kept.push({ session: ref.id, reason: `over the cap of ${String(this.#max)}, but left alone: ${reason}` })
      return
    }
    this.#planChoice(ref, reading, choice, itemsOf(looked.planned))
  }

  #planChoice(ref: SessionRef, reading: SessionReading, choice: CapChoice, members: readonly PlannedItem[]): void {
    const looked = lookAt(this.#store, choice.drop)
    if ('error' in looked) {
      this.#errors.push(...asErrors(looked.error))
      return
    }
    const rewritten = new Set(choice.rewrites.map(({ path }) => path))
    const reason = choice.checkpoints === 0 ? 'left over' : `${String(choice.checkpoints)} checkpoints are beyond the newest ${String(this.#max)}`
    for (const { path, bytes, mode } of choice.rewrites) {
      const old = planItem(this.#store.root, { kind: 'transcript', path })?.item
      this.#actions.push({
        kind: 'replace',
        session: ref.id,
        path,
        ...(old === undefined ? {} : { old }),
        content: bytes.toString('base64'),
        ...(mode === undefined ? {} : { mode }),
        bytes: 0,
        reason,
      })
    }
    if (looked.planned.length === 0) return
    this.#backups += looked.planned.length
    this.#actions.push({
      kind: 'trash-backups',
      session: ref.id,
      ...(reading.project === undefined ? {} : { project: reading.project }),
      reason: `${String(looked.planned.length)} paths that no kept checkpoint needs: ${reason}`,
      bytes: freedBy(this.#freed, looked.planned),
      items: itemsOf(looked.planned),
      witnesses: members.filter(({ path }) => !rewritten.has(path)).map(withoutTree),
      ...(rewritten.size === 0 ? {} : { needs: [...rewritten] }),
    })
  }

  #byNames(ref: SessionRef): void {
    if (membersOf(ref, 'backups').length === 0 || transcriptBytes(this.#store.root, ref) < this.#max * leastCheckpointBytes) return
    // Looked at before it is read: what is appended meanwhile shows when the plan is applied.
    const transcripts = lookAt(this.#store, membersOf(ref, 'transcript'))
    if ('error' in transcripts) {
      this.#errors.push(...asErrors(transcripts.error))
      return
    }
    const folder = this.#folderWorthReading(ref)
    if (folder === undefined) return
    const reading = this.#store.read(ref, { now: this.#context.now })
    const candidates = this.#onDisk(reading.history, folder, new Set())
    if (candidates.length === 0) return
    this.#overCap += 1
    const written = Math.max(newestTranscript(this.#store.root, ref) ?? this.#context.now, ...folder.entries.map((entry) => entry.mtimeMs))
    const reason = this.#reasonToKeep(ref, reading, written)
    if (reason !== undefined) {
      this.#kept.push({ session: ref.id, reason: `over the cap of ${String(this.#max)}, but left alone: ${reason}` })
      return
    }
    this.#plan(ref, reading, folder, itemsOf(transcripts.planned))
  }

  finish(storeSessions: number): Removal {
    const plan = planFor(this.#store, 'cap', this.#context.now, { storeSessions, actions: this.#actions, kept: this.#kept })
    const summary = { sessions: this.matched, max: this.#max, overCap: this.#overCap, backups: this.#backups }
    return { plan, findings: this.#findings, errors: this.#errors, summary, firstActivity: new Map() }
  }

  #spared(ref: SessionRef): ReadonlySet<string> {
    return this.#options.spared?.(ref.id) ?? new Set()
  }

  #isInProject(ref: SessionRef, project: string): boolean {
    return (this.#store.head?.(ref).folders ?? []).some((folder) => isSameProject(folder, project))
  }

  /** Looks at names only: where all backups are of version 1 there is nothing to drop. */
  #folderWorthReading(ref: SessionRef): ProbedFolder | undefined {
    const folder = probeFolder({ path: join(this.#store.root, this.#store.backupFolder(ref.id)), digest: 'none' })
    if (folder.error !== undefined) {
      const path = this.#store.backupFolder(ref.id)
      this.#errors.push({ code: folder.error, path, message: `${path} cannot be looked at (${folder.error}); session ${ref.id} was left alone` })
      return undefined
    }
    return folder.entries.some((entry) => (parseBackupName(entry.name)?.version ?? 1) > 1) ? folder : undefined
  }

  /** What would go by the branches that are known, as far as it is there and a plain file. */
  #onDisk(history: History, folder: ProbedFolder, spared: ReadonlySet<string>, kept = keptCheckpoints(history, new Map(), this.#max)): Reference[] {
    const there = new Set(folder.entries.filter((entry) => entry.node === 'file' && isBackupName(entry.name)).map((entry) => entry.name))
    return removableBackups(history, kept).filter(({ name }) => there.has(name) && !spared.has(name))
  }

  /** `written` is the newest modification time of its files in milliseconds since 1970. */
  #reasonToKeep(ref: SessionRef, reading: SessionReading, written: number): string | undefined {
    const { now } = this.#context
    const { quietPeriodMs, protectedSessions } = this.#options
    const said = this.#live.get(ref.id) ?? protectedSessions?.get(ref.id) ?? doubtAbout(reading)
    if (said !== undefined) return said
    if (reading.damaged) return 'its transcript is damaged, so what it refers to is not certain'
    const newest = Math.max(written, reading.lastRecorded ?? written)
    return quietReason(newest, now, quietPeriodMs)
  }

  #plan(ref: SessionRef, reading: SessionReading, folder: ProbedFolder, witnesses: readonly PlannedItem[]): void {
    const { history } = reading
    const tree = this.#store.branches?.(ref, new Set(history.checkpoints.map(({ id }) => id))) ?? new Map<string, string | undefined>()
    const kept = keptCheckpoints(history, tree, this.#max)
    const references = this.#onDisk(history, folder, this.#spared(ref), kept)
    if (references.length === 0) return
    const members = references.map(({ name }): Member => ({ kind: 'backups', path: `${this.#store.backupFolder(ref.id)}/${name}`, folder: false }))
    const looked = lookAt(this.#store, members)
    if ('error' in looked) {
      this.#errors.push(...asErrors(looked.error))
      return
    }
    const dropped = kept.filter((keep) => !keep).length
    this.#backups += looked.planned.length
    this.#actions.push({
      kind: 'trash-backups',
      session: ref.id,
      ...(reading.project === undefined ? {} : { project: reading.project }),
      reason: `${String(looked.planned.length)} backups that only ${String(dropped)} of ${String(kept.length)} checkpoints name, which are beyond the newest ${String(this.#max)} of every branch`,
      bytes: freedBy(this.#freed, looked.planned),
      items: itemsOf(looked.planned),
      // A line that is appended meanwhile may name one of them again.
      witnesses,
    })
  }
}

/** A folder as itself: whether a name came or went in it, whatever was done further below. */
function withoutTree({ path, kind, type, mode, identity }: PlannedItem): PlannedItem {
  return { path, kind, type, mode, identity }
}

/** Sum of the sizes of the transcripts of a session in bytes; 0 when one cannot be looked at. */
function transcriptBytes(root: string, ref: SessionRef): number {
  try {
    return membersOf(ref, 'transcript').reduce((sum, { path }) => sum + lstatSync(join(root, path)).size, 0)
  } catch {
    return 0
  }
}
