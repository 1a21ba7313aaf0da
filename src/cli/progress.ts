import type { OutputStream } from './output.js'
import { bytesText, durationText, groupDigits } from './text/units.js'
import { clip } from './text/width.js'

/** A long piece of work. */
export interface ProgressTask {
  readonly label: string
  /** In `unit`; left out when it is not known. */
  readonly total?: number
  readonly unit: 'bytes' | 'items'
}

/** Says on stderr how far long work is. Only one task at a time. */
export interface Progress {
  begin(task: ProgressTask): void
  /** `amount` more of the task is done. Cheap: may be called for every item. */
  advance(amount: number): void
  end(): void
  /** Removes the line, so that something else can be written. */
  clear(): void
}

export interface ProgressOptions {
  readonly stream: OutputStream
  /** Milliseconds since any fixed moment. */
  monotonic(): number
  /** Calls `act` each so many milliseconds until the function that it hands back is called. */
  every(milliseconds: number, act: () => void): () => void
  /** `line`: one line on a terminal, written over; `lines`: a line each ten seconds; `off`: nothing. */
  readonly mode: 'line' | 'lines' | 'off'
}

/** Milliseconds between two writes, and before the first: quick work shows nothing. */
const intervals = { line: 100, lines: 10_000 } as const

/** Makes the progress of one run. */
export function createProgress(options: ProgressOptions): Progress {
  const { mode, stream } = options
  if (mode === 'off') return { begin: nothing, advance: nothing, end: nothing, clear: nothing }
  let task: ProgressTask | undefined
  let started = 0
  let written = 0
  let done = 0
  let shown = false
  let stop = nothing

  const write = (): void => {
    if (task === undefined) return
    const now = options.monotonic()
    if (now - written < intervals[mode]) return
    written = now
    const text = progressText(task, done, now - started)
    if (mode === 'lines') {
      stream.write(`${text}\n`)
    } else {
      stream.write(`\r${clip(text, (stream.columns ?? 80) - 1)}\u001b[K`)
      shown = true
    }
  }
  const clear = (): void => {
    if (shown) stream.write('\r\u001b[K')
    shown = false
  }
  return {
    begin(next) {
      clear()
      stop()
      task = next
      done = 0
      started = options.monotonic()
      written = started
      // One long item moves nothing forward, and is still no silence.
      stop = options.every(intervals[mode], write)
    },
    advance(amount) {
      done += amount
      write()
    },
    end() {
      clear()
      stop()
      stop = nothing
      task = undefined
    },
    clear,
  }
}

/** `label 12% (1.2 MB of 10 MB), 3.0 MB/s, 3.0 s left`; elapsed time in milliseconds. */
export function progressText(task: ProgressTask, done: number, elapsed: number): string {
  const amount = (count: number): string => (task.unit === 'bytes' ? bytesText(count) : groupDigits(Math.round(count)))
  const rate = elapsed > 0 ? (done * 1000) / elapsed : 0
  const slow = task.unit === 'items' && rate < 1
  const speed = rate === 0 ? '' : slow ? `, ${amount(rate * 60)}/min` : `, ${amount(rate)}/s`
  if (task.total === undefined || task.total <= 0) return `${task.label} ${amount(done)}${speed}`
  const reached = Math.min(done, task.total)
  const left = rate > 0 ? `, ${durationText(((task.total - reached) * 1000) / rate)} left` : ''
  return `${task.label} ${String(Math.floor((reached * 100) / task.total))}% (${amount(reached)} of ${amount(task.total)})${speed}${left}`
}

function nothing(): void {
  // Asked to be silent.
}
