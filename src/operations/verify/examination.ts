import { setImmediate } from 'node:timers/promises'
import pLimit from 'p-limit'
import type { Store } from '../../formats/format.js'
import { ProbePool } from '../../fs/probe-pool.js'
import { isLarge, probeFolder, tryDigest, type FileDigest, type ProbedEntry, type ProbedFolder } from '../../fs/probe.js'
import type { SessionRef } from '../../model/session.js'
import { Examiner, type ExamineSettings, type SessionOutcome } from './examine.js'
import type { Writable } from '../../model/writable.js'

/** Files of one folder that wait for a thread at the same time. */
const digestsAtOnce = 8

/** Sessions taken together: enough to amortise a message, few enough that signals are seen soon. */
const groupSize = 8
/** Groups whose backups are looked at ahead of the one that is examined. */
const groupsAhead = 24
/** Groups that this thread does alone while the first thread is starting. */
const headStart = 24
/** From so many sessions on, or when there are so many bytes, threads bring more than it costs to start them. */
const manySessions = 100
/** Groups waited for before another thread helps: one that is just starting catches up. */
const patience = 4
const manyBytes = 64 * 1024 * 1024

/** One session with what was found. */
export interface Examined {
  readonly ref: SessionRef
  readonly outcome: SessionOutcome
}

/** The backup folders of a group of sessions, in their order. */
interface Probing {
  /** `undefined` until they are there. */
  readonly folders: readonly (ProbedFolder | undefined)[] | undefined
  readonly done: Promise<void>
}

/**
 * Examines the sessions of one store in their order: threads look at the backups ahead while this one reads transcripts
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
    const ahead = new Map<number, Probing>()
    let next = many ? headStart : 1
    let waits = 0
    try {
      for (const [index, group] of groups.entries()) {
        if (next < index) next = index
        while (next < groups.length && next < index + headStart + groupsAhead && this.#sharesOut(many)) {
          ahead.set(next, this.#there(groups[next] ?? []))
          next += 1
        }
        const probing = ahead.get(index) ?? this.#here(group)
        ahead.delete(index)
        // Answers and signals come in here.
        await setImmediate()
        if (probing.folders === undefined) {
          waits += 1
          if (waits > patience) this.#pool.widen()
          await probing.done
        }
        yield group.map((ref, at) => ({ ref, outcome: this.#examiner.examine(ref, probing.folders?.[at]) }))
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

  #here(refs: readonly SessionRef[]): Probing {
    const jobs = refs.map((ref) => this.#examiner.job(ref))
    return this.#probing(refs, jobs.map((job) => (job === undefined ? undefined : probeFolder(job))))
  }

  #there(refs: readonly SessionRef[]): Probing {
    const jobs = refs.map((ref) => this.#examiner.job(ref))
    const found = this.#pool.folders(jobs.filter((job) => job !== undefined))
    return awaited(
      found.then((folders) => {
        const inOrder = folders.values()
        return this.#probing(refs, jobs.map((job) => (job === undefined ? undefined : inOrder.next().value)))
      }),
    )
  }

  /** What was left out of the folders is digested by all threads. */
  #probing(refs: readonly SessionRef[], folders: readonly (ProbedFolder | undefined)[]): Probing {
    const leftOut = folders.map((folder, at) => this.#leftOut(refs[at], folder))
    if (leftOut.every((entries) => entries.length === 0)) return { folders, done: Promise.resolve() }
    return awaited(
      Promise.all(folders.map((folder, at) => this.#completed(folder, leftOut[at] ?? []))).then((completed) => ({ folders: completed, done: Promise.resolve() })),
    )
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

function awaited(promise: Promise<Probing>): Probing {
  const probing: Writable<Probing> = { folders: undefined, done: Promise.resolve() }
  probing.done = promise.then(async (found) => {
    await found.done
    probing.folders = found.folders
  })
  // Its error surfaces where it is awaited; until then it must not count as unhandled.
  probing.done.catch(() => undefined)
  return probing
}

function inGroups<T>(items: readonly T[], size: number): T[][] {
  const groups: T[][] = []
  for (let start = 0; start < items.length; start += size) groups.push(items.slice(start, start + size))
  return groups
}
