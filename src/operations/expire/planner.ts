import type { Inventory, LiveRegistry, Store } from '../../formats/format.js'
import { judgeAge, type EffectivePeriod } from '../../model/expiry.js'
import { finding, type Finding, type FindingId } from '../../model/finding.js'
import { dayMs } from '../../model/period.js'
import type { ErrorItem, Json, KeptItem } from '../../model/report.js'
import { clockLooksWrong, isExpired, lastActivity, type Activity } from '../../model/retention.js'
import { isConversation, membersOf, type SessionRef } from '../../model/session.js'
import type { RemoveAction } from '../../plan/action.js'
import { FreedBytes } from '../../plan/planned-item.js'
import { pinReason } from '../../settings/config.js'
import { FirstSeen } from '../first-seen.js'
import { liveSessions } from '../removal/live.js'
import { ProjectTotals } from '../removal/project-totals.js'
import { brakeFor, brakeRefusal, planFor, type Removal } from '../removal/removal.js'
import { measure, sessionTotal } from '../report/measure.js'
import { doubtAbout, freedBy, itemsOf, newestTranscript, sizeUp, unfinishedRestore, type SessionSize } from '../session-size.js'
import { chooseForBudget, overBudget, type Budget } from './budget.js'
import type { ExpireOptions, PlanContext } from './options.js'
import { Periods } from './periods.js'

/** A removal by age, with the ledger that must be written when it is applied. */
export interface Expiry extends Removal {
  /**
   * Writes the first-seen ledger. Hold the store's lock; call it when the removal was applied, also when nothing was to do.
   * @param token hex digits, new for each call
   */
  writeLedger(token: string): void
}

/** Findings that say why a session is kept whatever its age. */
const telling: ReadonlySet<FindingId> = new Set(['newer-format', 'busy', 'unreadable', 'not-regular', 'open-journal', 'damaged-journal'])

interface Removable {
  readonly ref: SessionRef
  readonly size: SessionSize
  readonly activity: Activity | undefined
  readonly reason: string
  readonly first: number | undefined
  readonly project: string | undefined
}

/** Judges session after session, the cheap looks first. */
export class ExpirePlanner {
  readonly #store: Store
  readonly #options: ExpireOptions
  readonly #context: PlanContext
  readonly #sessions: readonly SessionRef[]
  readonly #periods: Periods
  readonly #ledger: FirstSeen
  readonly #registry: LiveRegistry
  readonly #live: ReadonlyMap<string, string>
  readonly #findings: Finding[]
  readonly #errors: ErrorItem[]
  readonly #kept: KeptItem[] = []
  readonly #actions: RemoveAction[] = []
  readonly #freed = new FreedBytes()
  readonly #candidates: Removable[] = []
  readonly #firstActivity = new Map<string, number>()
  readonly #totals = new ProjectTotals()
  /** Paths that the inventory names already. */
  readonly #foreign: ReadonlySet<string>
  /** Why sessions without a transcript cannot be told from those whose transcript is out of sight. */
  readonly #unseen: string | undefined
  #newest: number | undefined

  constructor(store: Store, options: ExpireOptions, context: PlanContext, inventory: Inventory) {
    this.#store = store
    this.#options = options
    this.#context = context
    this.#sessions = inventory.sessions.filter(isConversation)
    this.#periods = new Periods(store, options)
    this.#ledger = FirstSeen.read(store)
    this.#registry = store.live(context.machine, context.now)
    this.#live = liveSessions(this.#registry)
    this.#findings = [...inventory.findings, ...this.#registry.findings, ...this.#ledger.findings]
    this.#errors = inventory.findings
      .filter(({ id }) => id === 'unreadable')
      .map(({ place, message }) => ({ code: 'UNREADABLE', ...(place === undefined ? {} : { path: place.path }), message }))
    this.#foreign = new Set(inventory.findings.flatMap(({ id, place }) => (id === 'foreign-file' && place !== undefined ? [place.path] : [])))
    const hidden = inventory.findings.find(({ id }) => id === 'unreadable' || id === 'not-regular')
    if (hidden !== undefined) this.#unseen = `no transcript, but one may be out of sight: ${hidden.place?.path ?? ''}: ${hidden.message}`
  }

  plan(): Expiry {
    for (const session of this.#sessions) this.#session(session)
    const budget = this.#settle()
    const clock = this.#options.clockCheck === false ? undefined : clockLooksWrong(this.#newest, this.#context.now)
    if (clock !== undefined) this.#stopForClock(clock)
    else if (budget !== undefined && budget.left > budget.maxBytes) this.#findings.push(overBudget(budget))
    const { now } = this.#context
    const plan = planFor(this.#store, 'expire', now, { storeSessions: this.#sessions.length, actions: this.#actions, kept: this.#kept })
    const refusal = brakeRefusal(plan, brakeFor(this.#sessions.length, this.#options.maxDelete, this.#options.config))
    return {
      plan,
      findings: this.#findings,
      errors: this.#errors,
      summary: { ...this.#summary(), ...(budget === undefined ? {} : { budget: { ...budget, left: clock === undefined ? budget.left : budget.bytes } }) },
      ...(refusal === undefined ? {} : { refusal }),
      firstActivity: this.#firstActivity,
      writeLedger: (token) => {
        // What is there after the run: whatever was removed comes back as new when somebody restores it.
        this.#ledger.write(this.#store.inventory().sessions, now, token)
      },
    }
  }

  #session(ref: SessionRef): void {
    const written = newestTranscript(this.#store.root, ref)
    this.#noteActivity(written)
    const kept = this.#protection(ref) ?? this.#cheapReason(ref, written)
    if (kept !== undefined) this.#keep(ref, kept)
    else this.#candidate(ref, written)
  }

  #protection(ref: SessionRef): string | undefined {
    return this.#live.get(ref.id) ?? this.#options.protectedSessions?.get(ref.id) ?? pinReason(this.#options.config, ref.id, [])
  }

  /** A transcript written within the shortest period there can be needs no more looking. */
  #cheapReason(ref: SessionRef, written: number | undefined): string | undefined {
    if (written === undefined) return undefined
    const { now } = this.#context
    const { floorMs, quietPeriodMs } = this.#options
    if (isExpired(written, now, this.#periods.leastMs / dayMs, Math.max(floorMs, quietPeriodMs))) return undefined
    return this.#judge(ref, { at: written, by: 'transcript' }, this.#periods.wide).reason
  }

  #candidate(ref: SessionRef, written: number | undefined): void {
    const { now } = this.#context
    const head = this.#store.head?.(ref) ?? { folders: [] }
    const pin = pinReason(this.#options.config, ref.id, head.folders)
    const period = head.folders.length === 0 && written === undefined ? this.#periods.longest : this.#periods.of(head.folders)
    if (pin !== undefined) {
      this.#keep(ref, pin, head.folders[0])
      return
    }
    const byTranscript = written === undefined ? undefined : this.#judge(ref, { at: written, by: 'transcript' }, period)
    if (byTranscript?.expired === false) {
      this.#keep(ref, byTranscript.reason, head.folders[0])
      return
    }
    const size = sizeUp(this.#store, ref)
    this.#errors.push(...size.errors)
    if (size.blocked !== undefined && size.blocked !== size.contents.doubt) {
      this.#keep(ref, size.blocked, head.folders[0])
      return
    }
    const times = { transcript: written, ...size.times }
    const soFar = lastActivity(times)
    this.#noteActivity(soFar?.at)
    const early = this.#judge(ref, soFar, period)
    if (!early.expired) {
      this.#keep(ref, early.reason, head.folders[0])
      return
    }
    if (written === undefined && this.#store.conversationsElsewhere !== true) {
      const unsure = membersOf(ref, 'transcript').length > 0 ? 'its transcript cannot be looked at' : this.#unseen
      const orphan = { ref, size, activity: soFar, reason: `no transcript; ${early.reason}`, first: undefined, project: head.folders[0] }
      if (unsure === undefined) this.#mayGo(orphan)
      else this.#keep(ref, unsure)
      return
    }
    const reading = this.#store.read(ref, { now, history: false })
    const doubt = doubtAbout(reading) ?? unfinishedRestore(reading)
    if (doubt !== undefined) {
      this.#findings.push(...reading.findings.filter(({ id }) => telling.has(id)))
      this.#keep(ref, doubt, head.folders[0])
      return
    }
    const activity = lastActivity({ ...times, recorded: reading.lastRecorded, transcript: reading.lastWritten })
    this.#noteActivity(activity?.at)
    const verdict = this.#judge(ref, activity, period)
    const project = reading.project ?? head.folders[0]
    if (verdict.expired) this.#mayGo({ ref, size, activity, reason: verdict.reason, first: head.firstRecorded, project })
    else this.#keep(ref, verdict.reason, project)
  }

  #judge(ref: SessionRef, activity: Activity | undefined, period: EffectivePeriod): ReturnType<typeof judgeAge> {
    const { floorMs, quietPeriodMs } = this.#options
    return judgeAge(activity, this.#seenAt(ref), period, { now: this.#context.now, floorMs, quietPeriodMs })
  }

  #seenAt(ref: SessionRef): number | undefined {
    return this.#options.grace === false ? undefined : this.#ledger.seenAt(ref, this.#context.now)
  }

  #mayGo(candidate: Removable): void {
    const { ref, size, project } = candidate
    if (size.blocked !== undefined) this.#keep(ref, size.blocked, project)
    else if (size.planned.length > 0) this.#candidates.push(candidate)
    else {
      this.#nameForeign(candidate)
      this.#keep(ref, "nothing of it is the agent's own", project)
    }
  }

  /** Takes what may go: all of it, or as much as a budget asks for. */
  #settle(): Budget | undefined {
    const { maxBytes } = this.#options
    if (maxBytes === undefined) {
      for (const candidate of this.#candidates) this.#remove(candidate)
      return undefined
    }
    const bytes = sessionTotal(measure(this.#store).areas)
    const candidates = this.#candidates.map((candidate) => ({ candidate, at: candidate.activity?.at, planned: candidate.size.planned }))
    const { go, stay, left } = chooseForBudget(candidates, bytes, maxBytes)
    const why = `the oldest go until the sessions take up no more than ${String(maxBytes)} bytes`
    for (const { candidate } of go) this.#remove({ ...candidate, reason: `${candidate.reason}; ${why}` })
    for (const { candidate } of stay) this.#keep(candidate.ref, `${candidate.reason}; it may stay, since the sessions take up no more than ${String(maxBytes)} bytes with it`, candidate.project)
    return { maxBytes, bytes, left }
  }

  #nameForeign({ ref, size: { contents } }: Removable): void {
    for (const path of contents.foreign.filter((each) => !this.#foreign.has(each))) {
      this.#findings.push(finding('foreign-file', 'not a name that the agent makes; it stays when the session goes', { session: ref.id, path }))
    }
  }

  #remove(candidate: Removable): void {
    const { ref, size: { contents, planned }, activity, reason, first, project } = candidate
    this.#nameForeign(candidate)
    const bytes = freedBy(this.#freed, planned)
    if (first !== undefined) this.#firstActivity.set(ref.id, first)
    this.#totals.removed(ref, project, bytes)
    this.#actions.push({
      kind: 'trash-session',
      session: ref.id,
      ...(project === undefined ? {} : { project }),
      ...(activity === undefined ? {} : { lastActivity: activity.at }),
      reason,
      bytes,
      items: itemsOf(planned),
      ...(contents.emptied.length === 0 ? {} : { emptied: contents.emptied }),
    })
  }

  #keep(ref: SessionRef, reason: string, project?: string): void {
    this.#totals.kept(ref, project)
    this.#kept.push({ session: ref.id, reason })
  }

  #noteActivity(at: number | undefined): void {
    if (at !== undefined && (this.#newest === undefined || at > this.#newest)) this.#newest = at
  }

  #stopForClock(reason: string): void {
    for (const { session } of this.#actions) this.#kept.push({ session, reason })
    this.#actions.length = 0
    this.#totals.nothingRemoved()
    const remedy = 'check the clock of this machine; if it is right, run again with --no-clock-check'
    this.#findings.push(finding('clock-looks-wrong', `${reason}; nothing expires`, { severity: 'error', remedy }))
  }

  #summary(): Readonly<Record<string, Json>> {
    return {
      sessions: this.#sessions.length,
      expired: this.#actions.length,
      kept: this.#kept.length,
      retention: this.#periods.summary(),
      registryComplete: this.#registry.complete,
      projects: this.#totals.rows(),
    }
  }
}
