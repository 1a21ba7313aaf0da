import { describe, expect, it } from 'vitest'
import { createProgress, progressText, type ProgressOptions } from '../../src/cli/progress.js'
import type { OutputStream } from '../../src/cli/output.js'

interface Timer {
  readonly milliseconds: number
  readonly act: () => void
}

/** A stream that keeps each write, and a clock and timers that are turned by hand. */
function fakes(mode: ProgressOptions['mode'], columns = 80): { writes: string[]; clock: { now: number }; timers: Set<Timer>; options: ProgressOptions } {
  const writes: string[] = []
  const clock = { now: 1000 }
  const timers = new Set<Timer>()
  const every = (milliseconds: number, act: () => void): (() => void) => {
    const timer = { milliseconds, act }
    timers.add(timer)
    return () => timers.delete(timer)
  }
  const stream: OutputStream = { columns, write: (text) => writes.push(text) }
  return { writes, clock, timers, options: { stream, mode, monotonic: () => clock.now, every } }
}

describe('progress', () => {
  it('shows rate and time left on one line, at most ten times a second', () => {
    const { writes, clock, options } = fakes('line')
    const progress = createProgress(options)
    progress.begin({ label: 'digests', total: 10_000_000, unit: 'bytes' })
    for (let step = 0; step < 100; step += 1) {
      clock.now += 10
      progress.advance(10_000)
    }
    expect(writes).toHaveLength(10)
    // 1 MB of 10 in one second: nine more seconds.
    expect(writes.at(-1)).toBe('\rdigests 10% (1.0 MB of 10 MB), 1.0 MB/s, 9.0 s left\u001b[K')
    progress.end()
    expect(writes.at(-1)).toBe('\r\u001b[K')
  })

  it('is silent about work that is quick', () => {
    const { writes, clock, options } = fakes('line')
    const progress = createProgress(options)
    progress.begin({ label: 'x', unit: 'items' })
    clock.now += 99
    progress.advance(1000)
    progress.end()
    expect(writes).toEqual([])
  })

  it('removes its line before something else is written, once', () => {
    const { writes, clock, options } = fakes('line')
    const progress = createProgress(options)
    progress.begin({ label: 'x', unit: 'items' })
    clock.now += 200
    progress.advance(1)
    progress.clear()
    progress.clear()
    expect(writes).toEqual(['\rx 1, 5/s\u001b[K', '\r\u001b[K'])
  })

  it('never wraps: the line is shorter than the terminal is wide', () => {
    const { writes, clock, options } = fakes('line', 20)
    const progress = createProgress(options)
    progress.begin({ label: '長い名前の仕事です', total: 100, unit: 'items' })
    clock.now += 200
    progress.advance(1)
    expect(writes).toEqual(['\r長い名前の仕事です…\u001b[K'])
  })

  it('without a terminal writes whole lines each ten seconds', () => {
    const { writes, clock, options } = fakes('lines')
    const progress = createProgress(options)
    progress.begin({ label: 'sessions', total: 4000, unit: 'items' })
    for (let second = 0; second < 25; second += 1) {
      clock.now += 1000
      progress.advance(100)
    }
    progress.end()
    expect(writes).toEqual(['sessions 25% (1,000 of 4,000), 100/s, 30 s left\n', 'sessions 50% (2,000 of 4,000), 100/s, 20 s left\n'])
  })

  it('says each ten seconds where it stands while one long item moves nothing forward, until the end', () => {
    const { writes, clock, timers, options } = fakes('lines')
    const progress = createProgress(options)
    progress.begin({ label: 'verify', total: 4, unit: 'items' })
    progress.advance(1)
    const [timer] = timers
    expect(timer?.milliseconds).toBe(10_000)
    clock.now += 10_000
    timer?.act()
    clock.now += 10_000
    timer?.act()
    expect(writes).toEqual(['verify 25% (1 of 4), 6/min, 30 s left\n', 'verify 25% (1 of 4), 3/min, 1 min left\n'])
    progress.end()
    expect(timers.size).toBe(0)
    timer?.act()
    expect(writes).toHaveLength(2)
  })

  it('has one timer however often work begins, and none when it is off', () => {
    const { timers, options } = fakes('line')
    const progress = createProgress(options)
    progress.begin({ label: 'one', unit: 'items' })
    progress.begin({ label: 'two', unit: 'items' })
    expect([...timers].map(({ milliseconds }) => milliseconds)).toEqual([100])
    const off = fakes('off')
    createProgress(off.options).begin({ label: 'x', unit: 'items' })
    expect(off.timers.size).toBe(0)
  })

  it('writes nothing when it is off', () => {
    const { writes, clock, options } = fakes('off')
    const progress = createProgress(options)
    progress.begin({ label: 'x', unit: 'items' })
    clock.now += 60_000
    progress.advance(1)
    progress.end()
    expect(writes).toEqual([])
  })

  it('never claims more than all, and copes with an empty total', () => {
    expect(progressText({ label: 'x', total: 10, unit: 'items' }, 12, 1000)).toBe('x 100% (10 of 10), 12/s, 0.0 s left')
    expect(progressText({ label: 'x', total: 0, unit: 'items' }, 0, 0)).toBe('x 0')
  })
})
