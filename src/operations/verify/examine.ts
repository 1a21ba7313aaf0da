import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../../formats/format.js'
import { probeFolder, stampOf, tryDigest, type ProbedEntry, type ProbedFolder, type ProbeJob } from '../../fs/probe.js'
import type { Finding } from '../../model/finding.js'
import { isSameProject } from '../../model/project-path.js'
import type { SessionReading, SessionRef } from '../../model/session.js'
import { backupJob, isBackupOf } from '../backup-files.js'
import { sessionReader } from '../read-session.js'
import { SealStore, type SessionSeals } from '../seals.js'
import { checkSession, isUnchanged, renewedSeals, transcriptStamps } from './check-session.js'
import type { Sample } from './options.js'
import { makeSampler, type Sampler } from './sample.js'
import { countSession, type SessionCounts } from './session-counts.js'
import type { Copy } from './steps/forks.js'
import { countOpenBackups } from './steps/names.js'

/** What the examination of every session of a store has in common. */
export interface ExamineSettings {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly quick: boolean
  readonly seal: boolean
  readonly sample: Sample | undefined
  /** Where a share begins, from 0 to 1. */
  readonly place: number
  readonly project: string | undefined
  /** Ids of the sessions that a running process has open. */
  readonly live: ReadonlySet<string>
}

/** All that is left of a session when it was examined. */
export interface SessionOutcome {
  readonly openBackups: number
  /** `undefined` when the session is not of the project that was asked for: then nothing else of it counts. */
  readonly counts: SessionCounts | undefined
  readonly findings: readonly Finding[]
  readonly client: string | undefined
  readonly copies: readonly Copy[]
  /** The seals it should have from now on, when that was asked for. */
  readonly seals: SessionSeals | undefined
}

const nothing: SessionOutcome = { openBackups: 0, counts: undefined, findings: [], client: undefined, copies: [], seals: undefined }
/** Sessions after which seals are let go, so that memory does not grow with the store. */
const sealsKept = 64

/** Runs the whole pipeline on one session after the other: transcripts, backups, steps, seals. Writes nothing. */
export class Examiner {
  readonly #store: Store
  readonly #settings: ExamineSettings
  readonly #seals: SealStore
  readonly #readSession: ReturnType<typeof sessionReader>
  readonly #sampler: Sampler | undefined
  #asked = 0
  #last: { readonly session: string; readonly seals: SessionSeals | undefined } | undefined

  constructor(store: Store, settings: ExamineSettings) {
    this.#store = store
    this.#settings = settings
    this.#seals = new SealStore(store.sidecar)
    this.#readSession = sessionReader(store)
    this.#sampler = settings.quick || settings.sample === undefined ? undefined : makeSampler(settings.sample, () => settings.place)
  }

  /** Files with seals that could not be read up to now. */
  get damagedSeals(): readonly string[] {
    return this.#seals.damaged
  }

  /** What to look at in the backup folder of a session, if it has one. Throws `NewerFormatError` for seals of a newer version of ours. */
  job(ref: SessionRef): ProbeJob | undefined {
    const { quick, seal } = this.#settings
    const all = quick ? seal && this.#sealsOf(ref) === undefined : this.#sampler === undefined
    return backupJob(this.#store, ref, all ? 'all' : 'none')
  }

  /** True for a file of a folder that was looked into as `job` says, when its digest has to be made separately. */
  isLeftOut(ref: SessionRef, entry: ProbedEntry): boolean {
    if (entry.deferred === true) return true
    const { quick, seal } = this.#settings
    if (entry.digest !== undefined || entry.node !== 'file' || entry.error !== undefined) return false
    if (!quick) return this.#sampler !== undefined && isBackupOf(this.#store, this.#sealsOf(ref)?.backups, entry.name) && this.#sampler(ref.id, entry.name, entry.size)
    // What is not sealed is read only in order to seal it; a sealed one is read when its stamp changed.
    const known = this.#sealsOf(ref)?.backups.get(entry.name)
    return known === undefined ? seal : known.stamp !== stampOf(entry)
  }

  /** Reads the transcripts and checks the session; `probed` is its backup folder. */
  examine(ref: SessionRef, probed: ProbedFolder | undefined): SessionOutcome {
    const seals = this.#sealsOf(ref)
    const read = this.#read(ref, seals)
    if (read === undefined && seals?.checked !== undefined && isUnchanged(this.#store, probed, seals.backups)) {
      const { findings } = seals.checked
      const isBackup = this.#backupsBy(seals.backups)
      const counts = countSession(probed, seals, isBackup, { unchanged: true })
      return { ...nothing, openBackups: countOpenBackups(probed, isBackup), counts, findings }
    }
    const reading = read ?? this.#readSession(ref, { now: this.#settings.now })
    const { project } = this.#settings
    if (project !== undefined && (reading.project === undefined || !isSameProject(project, reading.project))) {
      return { ...nothing, openBackups: countOpenBackups(probed, this.#backupsBy(reading.history.references)) }
    }
    return this.#check(ref, reading, this.#upToDate(ref, reading, probed), seals)
  }

  #check(ref: SessionRef, reading: SessionReading, folder: ProbedFolder | undefined, seals: SessionSeals | undefined): SessionOutcome {
    const { findings, proven, copies } = checkSession(this.#store, ref, reading, folder, seals, this.#settings.now)
    const isBackup = this.#backupsBy(reading.history.references)
    const counts = countSession(folder, seals, isBackup, { checkpoints: reading.history.checkpoints.length, proven: proven.size })
    return {
      openBackups: countOpenBackups(folder, isBackup),
      counts,
      findings,
      client: reading.clientVersion,
      copies: this.#settings.quick ? [] : copies,
      seals: this.#settings.seal ? this.#renewed(ref, reading, folder, seals, findings) : undefined,
    }
  }

  #backupsBy(known: { has(name: string): boolean }): (name: string) => boolean {
    return (name) => isBackupOf(this.#store, known, name)
  }

  /** `undefined` when the transcripts are as they were when the session was last checked whole. */
  #read(ref: SessionRef, seals: SessionSeals | undefined): SessionReading | undefined {
    const { quick, project, now } = this.#settings
    if (quick && project === undefined && seals?.checked?.transcripts === transcriptStamps(this.#store, ref)) {
      return undefined
    }
    return this.#readSession(ref, { now, evidence: !quick })
  }

  /** Looks again when the transcript names a backup that was made after the folder was looked into. */
  #upToDate(ref: SessionRef, reading: SessionReading, probed: ProbedFolder | undefined): ProbedFolder | undefined {
    if (probed === undefined || probed.error !== undefined) return probed
    const known = new Set(probed.entries.map(({ name }) => name))
    for (const name of reading.history.references.keys()) {
      if (known.has(name) || lstatSync(join(probed.path, name), { throwIfNoEntry: false }) === undefined) continue
      const job = this.job(ref)
      return job === undefined ? probed : this.#digested(ref, probeFolder(job))
    }
    return probed
  }

  #digested(ref: SessionRef, folder: ProbedFolder): ProbedFolder {
    const entries = folder.entries.map((entry) => (this.isLeftOut(ref, entry) ? { ...entry, ...tryDigest(`${folder.path}/${entry.name}`) } : entry))
    return { ...folder, entries }
  }

  #sealsOf(ref: SessionRef): SessionSeals | undefined {
    if (this.#last?.session === ref.id) return this.#last.seals
    this.#asked += 1
    if (this.#asked % sealsKept === 0) this.#seals.release()
    const seals = this.#seals.get(ref.id)
    this.#last = { session: ref.id, seals }
    return seals
  }

  #renewed(ref: SessionRef, reading: SessionReading, folder: ProbedFolder | undefined, before: SessionSeals | undefined, findings: readonly Finding[]): SessionSeals {
    const live = reading.busy || this.#settings.live.has(ref.id)
    const backups = renewedSeals(this.#store, reading, before, folder, findings, live, this.#settings.now)
    if (reading.busy) return { backups }
    return { backups, checked: { transcripts: transcriptStamps(this.#store, ref), findings } }
  }
}
