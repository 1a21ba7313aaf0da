import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { NoStoreError } from '../../../src/model/errors.js'
import { runDaemon, type DaemonOptions, type DaemonRun } from '../../../src/operations/schedule/daemon.js'
import type { DaemonCounts, DaemonStatus } from '../../../src/operations/schedule/daemon-status.js'
import { parseCalendar } from '../../../src/schedule/calendar.js'
import { temporaryFolder } from '../../helpers/temp.js'

const minute = 60_000
const hour = 60 * minute
const start = Date.parse('2026-11-30T12:00:00Z')
const good: DaemonRun = { exitCode: 0, actions: 2, bytes: 30 }

interface Scene {
  /** Milliseconds since the start. */
  readonly for: number
  readonly at?: string
  readonly statusFile?: string
  run?(time: number): DaemonRun | Promise<DaemonRun>
  /** How far the clock really goes when the daemon sleeps so long. */
  clock?(time: number, ms: number): number
  /** How far the clock goes while a run keeps the whole process busy. */
  busy?(time: number): number
  /** Ends it in place of `for`. */
  over?(time: number): boolean
  /** Called with every look at the clock's new time. */
  tick?(time: number): void
}

interface Life {
  readonly counts: DaemonCounts
  /** Times at which runs began, in minutes since the start. */
  readonly begun: readonly number[]
  readonly said: readonly string[]
}

/** A daemon with a clock that goes on only while it sleeps; runs without a promise are over at once. */
async function life(scene: Scene): Promise<Life> {
  const controller = new AbortController()
  const begun: number[] = []
  const said: string[] = []
  let time = start
  const options: DaemonOptions = {
    job: 'nightly',
    calendar: parseCalendar(scene.at ?? '*/10 * * * *'),
    zone: 'UTC',
    run: async () => {
      begun.push((time - start) / minute)
      time += scene.busy?.(time) ?? 0
      return scene.run?.(time) ?? good
    },
    now: () => time,
    sleep: async (ms) => {
      // Lets a run that needs no time end before the clock goes on.
      for (let turn = 0; turn < 5; turn += 1) await Promise.resolve()
      time += scene.clock?.(time, ms) ?? ms
      scene.tick?.(time)
      if (scene.over?.(time) ?? time - start >= scene.for) controller.abort(new Error('enough'))
    },
    signal: controller.signal,
    say: (level, message) => said.push(`${level}: ${message}`),
    ...(scene.statusFile === undefined ? {} : { statusFile: scene.statusFile }),
    pid: 77,
    token: () => 'ab',
  }
  return { counts: await runDaemon(options), begun, said }
}

const warnings = ({ said }: Life): string[] => said.filter((line) => line.startsWith('warn')).map((line) => line.slice('warn: '.length))

describe('a daemon', () => {
  it('runs whenever it is due, and not when it starts', async () => {
    const { counts, begun } = await life({ for: 35 * minute })
    expect(begun).toEqual([10, 20, 30])
    expect(counts).toEqual({ runs: 3, failed: 0, skipped: 0, missed: 0 })
  })

  it('skips the times at which the run before is still going on, says so, and goes on afterwards', async () => {
    let release = (): void => undefined
    const found = await life({
      for: 65 * minute,
      run: (time) => (time === start + 10 * minute ? new Promise((done) => { release = () => { done(good) } }) : good),
      tick: (time) => { if (time === start + 35 * minute) release() },
    })
    expect(found.begun).toEqual([10, 40, 50, 60])
    expect(found.counts).toEqual({ runs: 4, failed: 0, skipped: 2, missed: 0 })
    expect(warnings(found)).toEqual([
      'skipped the run of 2026-11-30T12:20:00.000Z: the run before was still going on',
      'skipped the run of 2026-11-30T12:30:00.000Z: the run before was still going on',
    ])
  })

  it('counts what came due while a run kept the whole process busy as skipped, not as missed', async () => {
    const found = await life({ for: 65 * minute, busy: (time) => (time === start + 10 * minute ? 25 * minute : 0) })
    expect(found.begun).toEqual([10, 40, 50, 60])
    expect(found.counts).toEqual({ runs: 4, failed: 0, skipped: 2, missed: 0 })
  })

  it('makes up for what a sleeping machine missed by one run, and says so', async () => {
    const found = await life({ for: 5 * hour, at: '@hourly', clock: (time, ms) => (time === start + 30 * minute ? 3 * hour : ms) })
    // Asleep from 12:30 to 15:30: the runs of 13, 14 and 15 o'clock.
    expect(found.begun).toEqual([210, 240])
    expect(found.counts).toEqual({ runs: 2, failed: 0, skipped: 0, missed: 3 })
    expect(warnings(found)).toEqual(['missed 3 runs from 2026-11-30T13:00:00.000Z on; one run makes up for it'])
  })

  it('does not count a thousand missed seconds one by one for ever', async () => {
    const found = await life({ for: 3 * hour, at: '* * * * * *', clock: (time, ms) => (time === start ? 2 * hour : Math.max(ms, hour)) })
    expect(warnings(found)[0]).toMatch(/^missed 1000 or more runs/)
  })

  it('that is a little late is not late', async () => {
    expect((await life({ for: 35 * minute, clock: (_, ms) => ms + 20_000 })).counts).toEqual({ runs: 3, failed: 0, skipped: 0, missed: 0 })
  })

  it('does not run a second time when the clock is set back a little', async () => {
    let set = false
    const found = await life({ for: 2 * hour, at: '@hourly', clock: (time, ms) => (!set && time === start + 70 * minute ? ((set = true), -20 * minute) : ms) })
    expect([found.begun, warnings(found)]).toEqual([[60], []])
  })

  it('follows a clock that was far ahead and is put right: it does not wait for the wrong day', async () => {
    let looks = 0
    const found = await life({
      for: 0,
      at: '@hourly',
      clock: (time, ms) => (time === start ? 48 * hour + 30 * minute : time === start + 48 * hour + 30 * minute ? -48 * hour : ms),
      over: () => (looks += 1) > 100,
    })
    // At 48:30 one run for what seemed missed; back at 0:30 the next one comes at 1:00, not at 49:00.
    expect(found.begun).toEqual([48 * 60 + 30, 60, 120])
    expect(warnings(found)[1]).toBe('the clock went back to 2026-11-30T12:30:00.000Z; next at 2026-11-30T13:00:00.000Z')
  })

  it('survives a run that throws: it is said, counted, and the next one comes', async () => {
    const found = await life({ for: 25 * minute, run: (time) => { if (time === start + 10 * minute) throw new NoStoreError('no store was found'); return good } })
    expect(found.begun).toEqual([10, 20])
    expect(found.counts).toMatchObject({ runs: 2, failed: 1 })
    expect(warnings(found)).toEqual(['nightly: exit code 10, no store was found'])
  })

  it('that is stopped waits for the run in work and begins no other', async () => {
    let over = false
    const found = await life({
      for: 10 * minute + 1,
      run: () => new Promise((done) => setTimeout(() => { over = true; done({ exitCode: 143, actions: 1, bytes: 1 }) }, 20)),
    })
    expect([over, found.counts.runs, found.said.at(-1)]).toEqual([true, 1, 'info: stopped'])
    expect(found.said).toContain('info: stopping after the item in work')
  })
})

describe('the status file', () => {
  const read = (file: string): DaemonStatus => JSON.parse(readFileSync(file, 'utf8')) as DaemonStatus

  it('says what is going on, and names the next run before one begins', async () => {
    const file = join(await temporaryFolder(), 'health.json')
    const seen: DaemonStatus[] = []
    await life({ for: 25 * minute, statusFile: file, run: () => { seen.push(read(file)); return good }, tick: (time) => { if (time === start + 5 * minute) seen.push(read(file)) } })
    expect(seen[0]).toEqual({ schemaVersion: 1, pid: 77, job: 'nightly', at: '0,10,20,30,40,50 * * * *', state: 'waiting', startedAt: '2026-11-30T12:00:00.000Z', updatedAt: '2026-11-30T12:04:00.000Z', next: '2026-11-30T12:10:00.000Z', counts: { runs: 0, failed: 0, skipped: 0, missed: 0 }, lastRun: null })
    expect(seen[1]).toMatchObject({ state: 'running', next: '2026-11-30T12:20:00.000Z' })
    expect(seen[2]).toMatchObject({ state: 'running', next: '2026-11-30T12:30:00.000Z', counts: { runs: 1 }, lastRun: { due: '2026-11-30T12:10:00.000Z', exitCode: 0, actions: 2, bytes: 30 } })
    expect(read(file)).toMatchObject({ state: 'stopped', counts: { runs: 2 } })
  })

  it('tells the next daemon what was missed while none ran; it is made up once', async () => {
    const file = join(await temporaryFolder(), 'health.json')
    await life({ for: 15 * minute, statusFile: file })
    const old = read(file)
    writeFileSync(file, JSON.stringify({ ...old, next: '2026-11-30T11:30:00.000Z' }))
    const found = await life({ for: 15 * minute, statusFile: file })
    // 11:30, 11:40, 11:50 and 12:00; the last is not late.
    expect(found.begun).toEqual([0, 10])
    expect(warnings(found)).toEqual(['missed 3 runs from 2026-11-30T11:30:00.000Z on; one run makes up for it'])
  })

  it('of another job or other times says nothing; one that was killed in a run is not begun again at once', async () => {
    const file = join(await temporaryFolder(), 'health.json')
    await life({ for: minute, statusFile: file })
    const old = read(file)
    for (const other of [{ ...old, job: 'weekly', next: '2026-11-30T11:30:00.000Z' }, { ...old, at: '0 3 * * *', next: '2026-11-30T11:30:00.000Z' }, 'torn {', { ...old, next: 7 }]) {
      writeFileSync(file, typeof other === 'string' ? other : JSON.stringify(other))
      expect((await life({ for: 15 * minute, statusFile: file })).begun).toEqual([10])
    }
    writeFileSync(file, JSON.stringify({ ...old, state: 'running', next: '2026-11-30T12:10:00.000Z' }))
    const found = await life({ for: 15 * minute, statusFile: file })
    expect(found.begun).toEqual([10])
    expect(warnings(found)).toEqual(['an earlier daemon ended in the middle of a run; the next run finishes or rolls back what it left'])
  })

  it('that cannot be written is an error at the start, and later said once while the work goes on', async () => {
    const folder = await temporaryFolder()
    await expect(life({ for: minute, statusFile: join(folder, 'none/health.json') })).rejects.toMatchObject({ code: 'USAGE', message: expect.stringContaining('cannot be written') as string })
    const file = join(folder, 'health.json')
    const found = await life({ for: 45 * minute, statusFile: file, tick: (time) => { if (time === start + 5 * minute) { rmSync(file); mkdirSync(join(file, 'in the way'), { recursive: true }) } } })
    expect(found.begun).toEqual([10, 20, 30, 40])
    expect(warnings(found).filter((line) => line.includes('status file'))).toHaveLength(1)
  })
})
