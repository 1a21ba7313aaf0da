import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import { probeFolder, tryDigest, type FileDigest, type ProbedFolder, type ProbeJob } from './probe.js'

export type PoolTask =
  | { readonly kind: 'folders'; readonly jobs: readonly ProbeJob[] }
  | { readonly kind: 'file'; readonly path: string }

export type PoolAnswer =
  | { readonly kind: 'folders'; readonly folders: readonly ProbedFolder[] }
  | { readonly kind: 'file'; readonly found: FileDigest }

interface Waiting {
  readonly task: PoolTask
  /** `undefined`: the thread could not do it. */
  readonly settle: (answer: PoolAnswer | undefined) => void
}

/** A thread and the tasks it was given, oldest first. */
interface Thread {
  readonly worker: Worker
  readonly given: Waiting[]
}

/** Tasks given to a thread ahead of time, so that it does not wait while the main thread is busy. */
const depth = 3

/**
 * Digests files in a few worker threads with synchronous reads (design: one thread with reused buffers beats a promise
 * pool, and two threads win when the machine is busy). Threads start when there is work for them; what one cannot do,
 * because it could not start or died, is done in place, as is everything with no threads.
 */
export class ProbePool {
  readonly #threads: number
  #pool: Thread[] = []
  readonly #queue: Waiting[] = []
  #broken = false

  constructor(threads: number) {
    this.#threads = threads
  }

  /** True when threads were started already. */
  get isWorking(): boolean {
    return this.#pool.length > 0
  }

  /** Looks into folders, one thread fewer at a time than there may be: the caller has work of its own meanwhile. The answer is in the order of the jobs. */
  async folders(jobs: readonly ProbeJob[]): Promise<readonly ProbedFolder[]> {
    const answer = await this.#submit({ kind: 'folders', jobs }, Math.max(1, this.#threads - 1))
    return answer?.kind === 'folders' ? answer.folders : jobs.map(probeFolder)
  }

  /** Digests one file, all threads at a time: the caller waits. An error is returned as its system error code. */
  async file(path: string): Promise<FileDigest> {
    const answer = await this.#submit({ kind: 'file', path }, this.#threads)
    return answer?.kind === 'file' ? answer.found : tryDigest(path)
  }

  /** Ends the threads. Call it when the work is done, also after an error. */
  async close(): Promise<void> {
    const threads = this.#pool
    this.#pool = []
    await Promise.all(threads.map(({ worker }) => worker.terminate()))
  }

  #submit(task: PoolTask, threads: number): Promise<PoolAnswer | undefined> {
    if (this.#threads === 0 || this.#broken) return Promise.resolve(undefined)
    return new Promise((settle) => {
      this.#queue.push({ task, settle })
      if (this.#pool.length < threads && this.#pool.every(({ given }) => given.length > 0)) this.#start()
      this.#next()
    })
  }

  #next(): void {
    for (;;) {
      const thread = leastBusy(this.#pool)
      if (thread !== undefined && thread.given.length >= depth) return
      const waiting = this.#queue.shift()
      if (waiting === undefined) return
      if (thread === undefined) waiting.settle(undefined)
      else {
        thread.given.push(waiting)
        thread.worker.postMessage(waiting.task)
      }
    }
  }

  #start(): void {
    // A package import names the built file, so that the sources find it too.
    const worker = new Worker(createRequire(import.meta.url).resolve('#probe-worker'), { trackUnmanagedFds: false })
    const thread: Thread = { worker, given: [] }
    worker.on('message', (answer: PoolAnswer) => {
      thread.given.shift()?.settle(answer)
      this.#next()
    })
    worker.on('error', () => {
      this.#broken = true
      this.#pool = this.#pool.filter((other) => other !== thread)
      for (const waiting of thread.given.splice(0)) waiting.settle(undefined)
      this.#next()
    })
    this.#pool.push(thread)
  }
}

function leastBusy(pool: readonly Thread[]): Thread | undefined {
  let best = pool[0]
  for (const thread of pool) if (best === undefined || thread.given.length < best.given.length) best = thread
  return best
}
