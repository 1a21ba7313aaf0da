import { lstatSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Store } from '../../formats/format.js'
import { finding, type Finding, type Severity } from '../../model/finding.js'
import { isConversation, type SessionRef } from '../../model/session.js'
import { Sidecar } from '../../plan/sidecar.js'
import { recognisedInventory } from '../recognised.js'
import { selectSessions } from '../select.js'
import { SealStore, type SessionSeals } from '../seals.js'
import { suspectsOf } from './check-session.js'
import { Examination } from './examination.js'
import type { ExamineSettings, SessionOutcome } from './examine.js'
import { fingerprint, type VerifyOptions } from './options.js'
import { newerClients } from './steps/clients.js'
import { ForkComparison } from './steps/forks.js'
import type { VerifyTotals } from './totals.js'
import type { VerifyContext } from './verify.js'

/** Verifies one store: everything that goes beyond a single session, and the outcomes of the sessions put together. */
export class StoreRun {
  readonly #store: Store
  readonly #options: VerifyOptions
  readonly #context: VerifyContext
  readonly #totals: VerifyTotals
  readonly #findings: Finding[]
  readonly #seals: SealStore
  readonly #clients = new Map<string, number>()
  readonly #forks = new ForkComparison()
  #errors = 0
  #openBackups = 0
  stopped = false

  constructor(store: Store, options: VerifyOptions, context: VerifyContext, totals: VerifyTotals, findings: Finding[]) {
    this.#store = store
    this.#options = options
    this.#context = context
    this.#totals = totals
    this.#findings = findings
    this.#seals = new SealStore(store.sidecar)
  }

  async run(): Promise<void> {
    const inventory = recognisedInventory(this.#store)
    const { sessions, project, seal } = this.#options
    const whole = (sessions ?? []).length === 0 && project === undefined
    const selected = [...new Set(selectSessions(inventory.sessions, sessions).filter(isConversation))]
    const ids = new Set(project === undefined ? selected.map(({ id }) => id) : [])
    const registry = this.#store.live(this.#context.machine, this.#context.now)
    if (whole) this.#take([...this.#store.globals(), ...registry.findings])
    this.#take(inventory.findings.filter(({ session }) => whole || (session !== undefined && ids.has(session))))
    const examination = new Examination(this.#store, this.#settings(registry.live.map(({ session }) => session)), this.#context.threads)
    await this.#sessions(selected, examination)
    this.#take(this.#wideModes())
    this.#take(newerClients(this.#clients, this.#store.testedClient))
    this.#take(examination.damagedSeals.map((path) => finding('sidecar-damaged', 'the seals in it are lost; backups are sealed anew', { path })))
    if (seal !== true || this.stopped) return
    if (whole) this.#seals.prune(new Set(inventory.sessions.map(({ id }) => id)))
    new Sidecar(this.#store).prepare()
    this.#seals.save()
  }

  #settings(live: readonly string[]): ExamineSettings {
    const { quick, seal, sample, project } = this.#options
    const place = sample?.kind === 'percent' ? this.#context.random() : 0
    return { now: this.#context.now, quick: quick === true, seal: seal === true, sample, place, project, live: new Set(live) }
  }

  async #sessions(selected: readonly SessionRef[], examination: Examination): Promise<void> {
    const byShard = selected
      .map((ref) => ({ ref, key: SealStore.shardOf(ref.id) + ref.id }))
      .sort((a, b) => (a.key < b.key ? -1 : 1))
      .map(({ ref }) => ref)
    const sorted = this.#options.sample?.kind === 'bytes' ? rotated(byShard, this.#context.random()) : byShard
    let done = 0
    for await (const group of examination.sessions(sorted)) {
      for (const { ref, outcome } of group) {
        this.#session(ref, outcome)
        done += 1
        this.#context.progress?.(done, sorted.length)
        if (this.#isOver()) return
      }
    }
  }

  #isOver(): boolean {
    const { maxErrors } = this.#options
    this.stopped = this.#context.signal?.aborted === true || (maxErrors !== undefined && this.#errors >= maxErrors)
    if (this.stopped) this.#totals.stopped = true
    return this.stopped
  }

  #session(ref: SessionRef, { openBackups, counts, findings, client, copies, seals }: SessionOutcome): void {
    this.#openBackups += openBackups
    if (counts === undefined) return
    this.#totals.add(counts)
    this.#take(findings)
    const forked = this.#forks.compare(this.#store, copies)
    this.#take(forked)
    if (client !== undefined) this.#clients.set(client, (this.#clients.get(client) ?? 0) + 1)
    if (seals !== undefined) this.#seals.set(ref.id, forked.length === 0 ? seals : this.#sealsWithout(ref, seals, forked))
  }

  /** What differs from a fork keeps the seal it had, or none. */
  #sealsWithout(ref: SessionRef, seals: SessionSeals, forked: readonly Finding[]): SessionSeals {
    const before = this.#seals.get(ref.id)?.backups
    const backups = new Map(seals.backups)
    for (const name of suspectsOf(this.#store, forked)) {
      const known = before?.get(name)
      if (known === undefined) backups.delete(name)
      else backups.set(name, known)
    }
    const { checked } = seals
    return { backups, ...(checked === undefined ? {} : { checked: { ...checked, findings: [...checked.findings, ...forked] } }) }
  }

  /** The agent makes folders that others may enter; what they can really read depends on the folders above. */
  #wideModes(): Finding[] {
    const path = dirname(this.#store.backupFolder('-'))
    const closed = [this.#store.root, join(this.#store.root, path)].some((folder) => ((modeOf(folder) ?? 0) & 0o011) === 0)
    if (closed || this.#openBackups === 0) return []
    return [finding('wide-mode', `${String(this.#openBackups)} backups can be read by other users of this machine`, { path, ...(path === '.' ? { remedy: 'chmod 700 the folder of the store' } : {}) })]
  }

  /** Adds findings with the severity that was asked for; known ones are counted only. */
  #take(findings: readonly Finding[]): void {
    for (const found of findings) {
      const severity = this.#severity(found)
      if (severity === 'ignore') continue
      if (this.#options.baseline?.has(fingerprint(found)) === true) {
        this.#totals.accepted += 1
        continue
      }
      if (severity === 'error') this.#errors += 1
      this.#findings.push(severity === found.severity ? found : { ...found, severity })
    }
  }

  #severity(found: Finding): Severity {
    const asked = this.#options.severities?.get(found.id)
    if (asked !== undefined) return asked
    return found.id === 'no-checkpoints' && this.#options.requireCheckpoints === true ? 'error' : found.severity
  }
}

function modeOf(path: string): number | undefined {
  return lstatSync(path, { throwIfNoEntry: false })?.mode
}

/** The items from a place on (0 to 1), then those before it. */
function rotated<T>(items: readonly T[], place: number): T[] {
  const start = Math.floor(place * items.length)
  return [...items.slice(start), ...items.slice(0, start)]
}
