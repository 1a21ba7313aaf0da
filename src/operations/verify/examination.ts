import { setImmediate } from 'node:timers/promises'
import pLimit from 'p-limit'
import type { Store } from '../../formats/format.js'
import { ProbePool } from '../../fs/probe-pool.js'
import { isLarge, probeFolder, tryDigest, type FileDigest, type ProbedEntry, type ProbedFolder } from '../../fs/probe.js'
import type { SessionRef } from '../../model/session.js'
import { Examiner, type ExamineSettings, type SessionOutcome } from './examine.js'

/** Files of one folder that wait for a thread at the same time. */
const digestsAtOnce = 8
/** Sessions taken together: enough to amortise a message, few enough that signals are seen soon. */
const groupSize = 8
/** Groups that a thread looks into ahead of the one that is examined, and as many more that this one may take. */
const groupsAhead = 24
/** From so many sessions on, or when there are so many bytes, threads bring more than it costs to start them. */
const manySessions = 100
const manyBytes = 64 * 1024 * 1024

/** One session with what was found. */
export interface Examined {
  readonly ref: SessionRef
  readonly outcome: SessionOutcome
}

/** Sessions whose backup folders are looked into together. */
interface Group {
  readonly refs: readonly SessionRef[]
  /** In the order of the sessions; `undefined` until they are there. */
  folders: readonly (ProbedFolder | undefined)[] | undefined
  /** Ends when `folders` are there. */
  probing: Promise<void> | undefined
}

/**
 * Examines the sessions of one store in their order: a thread looks at the backups ahead while this one reads transcripts
 * and checks. Memory does not grow with the store.
 */
export class Examination {
  readonly #examiner: Examiner
  readonly #pool: ProbePool
  readonly #settings: ExamineSettings
  readonly #threads: number
  #bytes = 0

  constructor(store: Store, settings: ExamineSettings, threads: number) {
    this.#examiner = new Examiner(store, settings)
    this.#settings = settings
    this.#threads = threads
    this.#pool = new ProbePool(threads)
  }

  /** Files with seals that could not be read up to now. */
  get damagedSeals(): readonly string[] {
    return this.#examiner.damagedSeals
  }

  /** Throws what `Examiner` throws, when the turn of that session comes. */
  async *sessions(refs: readonly SessionRef[]): AsyncGenerator<readonly Examined[]> {
    const many = refs.length >= manySessions
    const groups = inGroups(refs, many ? groupSize : 1)
    /** The first group that nobody took. */
    let next = 0
    const take = (shared: boolean): void => {
      const group = groups[next]
      if (group !== undefined) group.probing = this.#probe(group, shared)
      // Its error surfaces where it is awaited; until then it must not count as unhandled.
      group?.probing?.catch(() => undefined)
      next += 1
    }
    try {
      for (const [index, group] of groups.entries()) {
        const last = Math.min(groups.length, index + groupsAhead)
        while (next < last && this.#sharesOut(many)) take(true)
        if (group.probing === undefined) take(false)
        // Answers and signals come in here.
        await setImmediate()
        // Instead of waiting for the thread, which may be just starting, this one takes a group too.
        while (group.folders === undefined && next < groups.length && next < last + groupsAhead && this.#sharesOut(many)) {
          take(false)
          await setImmediate()
        }
        if (group.folders === undefined) await group.probing
        yield group.refs.map((ref, at) => ({ ref, outcome: this.#examiner.examine(ref, group.folders?.[at]) }))
        group.folders = undefined
      }
    } finally {
      await this.#pool.close()
    }
  }

  /** A sample is chosen in the order of the sessions, in place; metadata alone takes less time than a thread to start. */
  #sharesOut(many: boolean): boolean {
    const { quick, sample } = this.#settings
    return this.#threads > 0 && sample === undefined && ((many && !quick) || this.#bytes > manyBytes)
  }

  /** Looks into the backup folders of a group, in a thread or here; what was left out of them is digested by all threads. */
  async #probe(group: Group, shared: boolean): Promise<void> {
    const jobs = group.refs.map((ref) => this.#examiner.job(ref))
    const asked = jobs.filter((job) => job !== undefined)
    const found = (shared ? await this.#pool.folders(asked) : asked.map(probeFolder)).values()
    const folders = jobs.map((job): ProbedFolder | undefined => (job === undefined ? undefined : found.next().value))
    const leftOut = folders.map((folder, at) => this.#leftOut(group.refs[at], folder))
    const complete = leftOut.every((entries) => entries.length === 0)
    group.folders = complete ? folders : await Promise.all(folders.map((folder, at) => this.#completed(folder, leftOut[at] ?? [])))
  }

  #leftOut(ref: SessionRef | undefined, folder: ProbedFolder | undefined): readonly ProbedEntry[] {
    const leftOut: ProbedEntry[] = []
    for (const entry of folder?.entries ?? []) {
      const isLeftOut = ref !== undefined && this.#examiner.isLeftOut(ref, entry)
      if (isLeftOut) leftOut.push(entry)
      if (isLeftOut || entry.digest !== undefined) this.#bytes += entry.size
    }
    return leftOut
  }

  async #completed(folder: ProbedFolder | undefined, leftOut: readonly ProbedEntry[]): Promise<ProbedFolder | undefined> {
    if (folder === undefined || leftOut.length === 0) return folder
    const bytes = leftOut.reduce((sum, { size }) => sum + size, 0)
    const shared = this.#pool.isWorking || bytes > manyBytes
    const digest = async ({ name, size }: ProbedEntry): Promise<readonly [string, FileDigest]> => {
      const path = `${folder.path}/${name}`
      return [name, shared && isLarge({ size }) ? await this.#pool.file(path) : tryDigest(path)]
    }
    const digests = new Map(await pLimit(digestsAtOnce).map(leftOut, digest))
    return { ...folder, entries: folder.entries.map((entry) => ({ ...entry, ...digests.get(entry.name) })) }
  }
}

function inGroups(refs: readonly SessionRef[], size: number): Group[] {
  const groups: Group[] = []
  for (let start = 0; start < refs.length; start += size) groups.push({ refs: refs.slice(start, start + size), folders: undefined, probing: undefined })
  return groups
}
