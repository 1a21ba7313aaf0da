import type { Store } from '../../formats/format.js'
import { LockedError, NoMatchError } from '../../model/errors.js'
import { quietReason } from '../../model/expiry.js'
import { finding, type Finding } from '../../model/finding.js'
import type { ErrorItem, Json, KeptItem } from '../../model/report.js'
import { lastActivity } from '../../model/retention.js'
import { isConversation, type SessionRef } from '../../model/session.js'
import type { RemoveAction } from '../../plan/action.js'
import { FreedBytes } from '../../plan/planned-item.js'
import { liveSessions } from '../removal/live.js'
import { brakeFor, brakeRefusal, planFor, type Removal } from '../removal/removal.js'
import { freedBy, itemsOf, newestTranscript, sizeUp } from '../session-size.js'
import type { PurgeContext, PurgeOptions } from './options.js'
import { ProjectFolders } from './project-folders.js'
import { sharedErrors, sharedItems, sharedSummary } from './shared.js'
import { matchRule, type MatchRule, type PurgeTarget } from './target.js'

/** A removal of projects, with the test that the shared files are searched by. */
export interface Purge extends Removal {
  readonly sessions: readonly string[]
  readonly matches: (project: string) => boolean
}

/** Finds the sessions of projects and plans their removal. */
export class PurgePlanner {
  readonly #store: Store
  readonly #options: PurgeOptions
  readonly #context: PurgeContext
  readonly #targets: readonly PurgeTarget[]
  readonly #freed = new FreedBytes()
  readonly #kept: KeptItem[] = []
  readonly #findings: Finding[] = []
  readonly #errors: ErrorItem[] = []
  readonly #firstActivity = new Map<string, number>()
  readonly #projects = new Map<string, { rule: MatchRule; sessions: number }>()
  readonly #near = new Set<string>()
  readonly #rules = new Map<string, MatchRule | 'near' | undefined>()
  readonly #folders: ProjectFolders
  #live = 0

  constructor(store: Store, options: PurgeOptions, context: PurgeContext, targets: readonly PurgeTarget[]) {
    this.#store = store
    this.#options = options
    this.#context = context
    this.#targets = targets
    this.#folders = new ProjectFolders(store, options.memory === true)
  }

  plan(): Purge {
    const { sessions } = this.#store.inventory()
    const actions = new Map<string, RemoveAction>()
    const live = liveSessions(this.#store.live(this.#context.machine, this.#context.now))
    for (const ref of sessions) {
      const action = this.#session(ref, live)
      if (action !== undefined) actions.set(ref.id, action)
      this.#folders.note(ref, action !== undefined)
    }
    const counts = countKinds([...actions.values()])
    const folders = this.#folders.take(actions, this.#freed)
    this.#findings.push(...folders.findings)
    this.#errors.push(...folders.errors)
    const matches = (project: string): boolean => this.#isTaken(project)
    const uses = this.#store.shared?.(matches) ?? []
    const shared = this.#options.shared === true
    if (actions.size === 0 && this.#kept.length === 0 && (!shared || uses.length === 0)) throw this.#nothing()
    const storeSessions = sessions.filter(isConversation).length
    const plan = planFor(this.#store, 'purge', this.#context.now, { storeSessions, actions: [...actions.values()], kept: this.#kept })
    const refusal = this.#allLive(actions.size) ?? brakeRefusal(plan, brakeFor(storeSessions, this.#options.maxDelete, this.#options.config))
    return {
      plan,
      findings: this.#findings,
      errors: [...this.#errors, ...(shared ? sharedErrors(uses) : [])],
      summary: { ...this.#summary(actions.size), items: { ...counts, memory: folders.memories }, shared: sharedSummary(uses), sharedTaken: shared },
      ...(refusal === undefined ? {} : { refusal }),
      ...(shared ? { also: sharedItems(uses) } : {}),
      firstActivity: this.#firstActivity,
      sessions: [...actions.keys()],
      matches,
    }
  }

  #session(ref: SessionRef, live: ReadonlyMap<string, string>): RemoveAction | undefined {
    const head = this.#store.head?.(ref) ?? { folders: [] }
    const rules = head.folders.map((folder) => [folder, this.#ruleOf(folder)] as const)
    const taken = rules.filter(([folder]) => this.#isTaken(folder))
    const [first] = taken
    if (first === undefined) {
      this.#noteOthers(ref, rules)
      return undefined
    }
    const other = rules.find(([folder]) => !this.#isTaken(folder))
    const open = live.get(ref.id)
    if (open !== undefined) this.#live += 1
    const kept = open ?? (other === undefined ? this.#options.protectedSessions?.get(ref.id) : `it was also started in ${other[0]}`)
    const sized = sizeUp(this.#store, ref)
    this.#errors.push(...sized.errors)
    const { contents, planned } = sized
    const activity = lastActivity({ transcript: newestTranscript(this.#store.root, ref), ...sized.times })
    const reason = kept ?? sized.blocked ?? this.#quiet(activity?.at)
    if (reason !== undefined || planned.length === 0) {
      this.#kept.push({ session: ref.id, reason: reason ?? "nothing of it is the agent's own" })
      return undefined
    }
    const [project, rule] = first
    this.#noteProject(project, rule)
    for (const path of contents.foreign) {
      this.#findings.push(finding('foreign-file', 'not a name that the agent makes; it stays when the session goes', { session: ref.id, path }))
    }
    if (head.firstRecorded !== undefined) this.#firstActivity.set(ref.id, head.firstRecorded)
    return {
      kind: 'trash-session',
      session: ref.id,
      project,
      ...(activity === undefined ? {} : { lastActivity: activity.at }),
      reason: `started in ${project} (${ruleWords[rule === undefined || rule === 'near' ? 'text' : rule]})`,
      bytes: freedBy(this.#freed, planned),
      items: itemsOf(planned),
      ...(contents.emptied.length === 0 ? {} : { emptied: contents.emptied }),
    }
  }

  #quiet(at: number | undefined): string | undefined {
    const { quietPeriodMs } = this.#options
    return quietPeriodMs <= 0 || at === undefined ? undefined : quietReason(at, this.#context.now, quietPeriodMs)
  }

  #ruleOf(folder: string): MatchRule | 'near' | undefined {
    if (this.#rules.has(folder)) return this.#rules.get(folder)
    const found = this.#targets.map((target) => matchRule(folder, target, this.#options.recursive === true, this.#context.probe))
    const rule = preference.find((each) => found.includes(each))
    this.#rules.set(folder, rule)
    return rule
  }

  #isTaken(folder: string): boolean {
    const rule = this.#ruleOf(folder)
    return rule === 'text' || rule === 'below' || rule === 'case' || (rule === 'link' && this.#options.follow === true)
  }

  /** Sessions that were started in another spelling of the folder are named, not taken (R95, R96). */
  #noteOthers(ref: SessionRef, rules: readonly (readonly [string, MatchRule | 'near' | undefined])[]): void {
    for (const [folder, rule] of rules) {
      if (rule === 'link') this.#kept.push({ session: ref.id, reason: `started in ${folder}, which leads to the same folder through a link; --follow takes it too` })
      else if (rule === 'near') this.#near.add(folder)
    }
  }

  #noteProject(project: string, rule: MatchRule | 'near' | undefined): void {
    if (rule === undefined || rule === 'near') return
    const known = this.#projects.get(project) ?? { rule, sessions: 0 }
    known.sessions += 1
    this.#projects.set(project, known)
  }

  #summary(sessions: number): Readonly<Record<string, Json>> {
    return {
      sessions,
      kept: this.#kept.length,
      projects: [...this.#projects].map(([project, { rule, sessions: count }]) => ({ project, rule, sessions: count })),
      nearMatches: [...this.#near],
    }
  }

  #allLive(planned: number): LockedError | undefined {
    if (planned > 0 || this.#live === 0) return undefined
    return new LockedError('every session that could go is open in a running process; nothing was removed', { hint: 'close the agent, then run again' })
  }

  #nothing(): NoMatchError {
    const asked = this.#targets.map(({ path }) => path).join(', ')
    const near = [...this.#near]
    const hint = near.length === 0 ? 'rewind-admin list shows the projects that sessions recorded' : `near matches, not taken: ${near.join(', ')}`
    return new NoMatchError(`no session was started in ${asked}; nothing was removed`, { hint })
  }
}

const preference: readonly (MatchRule | 'near')[] = ['text', 'below', 'case', 'link', 'near']

const ruleWords: Readonly<Record<MatchRule, string>> = {
  text: 'as recorded',
  below: 'below the project',
  case: 'same folder on a file system that folds case',
  link: 'same folder through a link',
}

function countKinds(actions: readonly RemoveAction[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = { transcript: 0, companion: 0, agent: 0, backups: 0, leftover: 0 }
  for (const { kind } of actions.flatMap((action) => action.items)) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}
