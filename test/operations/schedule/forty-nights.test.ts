import { appendFileSync, existsSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { nightly } from '../../../jobs/nightly.js'
import type { Report } from '../../../src/model/report.js'
import { runJob } from '../../../src/operations/run/run-job.js'
import { lastRun } from '../../../src/operations/run/status-file.js'
import { runDaemon } from '../../../src/operations/schedule/daemon.js'
import { sessionStatus } from '../../../src/operations/session-status.js'
import { readTombstones } from '../../../src/operations/tombstones.js'
import { newRunId } from '../../../src/plan/run-id.js'
import { listTrash } from '../../../src/plan/trash.js'
import { parseCalendar } from '../../../src/schedule/calendar.js'
import { uuidOf } from '../../helpers/identity.js'
import { configOf, dayMs, daysAgo, iso, machineWith, now as day0, openStore, session } from '../../helpers/removal.js'
import { H, emptyRoot, snap, userLine, writeBackup, writeStoreFile } from '../../helpers/store.js'

/*
 * Night n is day 0 + n days. The agent keeps 30 days; a session goes in the first night in which its last activity is more than 30
 * days ago, so one of day -a goes in night 31 - a, and not before night 1. The trash keeps 7 days: what went in night n is emptied
 * in night n + 8, the first one that is more than 7 days later.
 */
const goes: Readonly<Record<string, number>> = {
  'of day -45': 1,
  'of day -30': 1,
  'of day -29': 2,
  'of day -28': 3,
  'of day -25': 6,
  'of day -20': 11,
  'of day -15': 16,
  'of day -9': 22,
  'of day -3': 28,
  'of day 0': 31,
  // Restored on day 4 with times of 100 days ago, so first seen in night 5: it gets a whole period from then.
  'restored': 36,
}
/** Goes on in day 12, and would have gone in night 21. */
const goesOn = 'of day -10, goes on'
/** Begins on day 9. */
const begins = 'of day 9'
const stay = [goesOn, begins]
const nights = 40

function make(root: string, name: string, age: number): void {
  const id = uuidOf(name)
  const time = daysAgo(age)
  session(root, '-p', id, age, { lines: [snap(`m-${id.slice(0, 4)}`, { 'a.md': `${H}@v1` }, iso(time))] })
  writeBackup(root, id, `${H}@v1`, `${name}\n`, { mtime: time })
}

it('forty nights of a daemon: each session goes in its own night and once, the trash empties after its grace, the books add up', async () => {
  const root = await emptyRoot()
  writeStoreFile(root, 'settings.json', '{"cleanupPeriodDays":30}', { mtime: daysAgo(90) })
  for (const [name, age] of [['of day -45', 45], ['of day -30', 30], ['of day -29', 29], ['of day -28', 28], ['of day -25', 25], ['of day -20', 20], ['of day -15', 15], ['of day -9', 9], ['of day -3', 3], ['of day 0', 0], [goesOn, 10]] as const) make(root, name, age)
  const store = openStore(root)
  const machine = machineWith({ [process.pid]: '1' })
  const controller = new AbortController()
  const second0 = Date.parse('2026-11-30T00:00:00Z')
  let second = second0
  let running: Promise<unknown> = Promise.resolve()
  const said: string[] = []
  const removedIn: Record<string, number[]> = {}
  const inTrash: number[] = []

  async function night(): Promise<Report> {
    const n = (second - second0) / 1000
    const now = day0 + n * dayMs
    const transcript = join(root, `projects/-p/${uuidOf(goesOn)}.jsonl`)
    if (n === 5) make(root, 'restored', 100)
    if (n === 10) make(root, begins, -9)
    if (n === 12) {
      appendFileSync(transcript, `${userLine('later', { session: uuidOf(goesOn), time: iso(day0 + 12 * dayMs - 3 * 3_600_000) })}\n`)
      utimesSync(transcript, new Date(now - 3 * 3_600_000), new Date(now - 3 * 3_600_000))
    }
    const report = await runJob([store], nightly, {
      apply: true,
      runId: newRunId(now, n.toString(16).padStart(8, '0')),
      config: configOf(),
      lock: { pid: process.pid, host: 'here', processes: machine, waitMs: 0 },
      now,
      monotonic: () => 0,
      machine,
      random: () => 0,
      threads: 0,
      signal: controller.signal,
    })
    for (const item of report.plan) (removedIn[item.session ?? item.path] ??= []).push(n)
    expect([n, report.errors, report.exitCode]).toEqual([n, [], 0])
    expect(lastRun(store)).toMatchObject({ job: 'nightly', exitCode: 0, startedAt: iso(now), actions: report.plan.length })
    // What waits in the trash is what went in the last seven nights and in this one.
    const waiting = Object.entries(goes).filter(([, went]) => went <= n && n - went <= 7).map(([name]) => uuidOf(name))
    expect([n, listTrash(store).map((one) => one.session).sort()]).toEqual([n, waiting.sort()])
    inTrash.push(waiting.length)
    if (n === nights) controller.abort(new Error('enough'))
    return report
  }

  const counts = await runDaemon({
    job: 'nightly',
    calendar: parseCalendar('* * * * * *'),
    zone: 'UTC',
    run: () => {
      const run = night()
      running = run
      return run.then((report) => ({ exitCode: report.exitCode, actions: report.plan.length, bytes: 0 }))
    },
    now: () => second,
    sleep: async (ms) => {
      await running
      await new Promise(setImmediate)
      second += ms
    },
    signal: controller.signal,
    say: (level, message) => said.push(`${level} ${message}`),
    pid: 1,
    token: () => 'ab',
  })

  expect(counts).toEqual({ runs: nights, failed: 0, skipped: 0, missed: 0 })
  expect(said.filter((line) => line.startsWith('warn'))).toEqual([])
  expect(removedIn).toEqual(Object.fromEntries(Object.entries(goes).map(([name, night]) => [uuidOf(name), [night]])))
  expect(Math.max(...inTrash)).toBe(5)
  expect(listTrash(store).map((one) => one.session)).toEqual([uuidOf('restored')])

  const end = { now: day0 + nights * dayMs, machine }
  const tombstones = readTombstones(store)
  expect(tombstones.map(({ session: id, removedAt }) => [id, removedAt]).sort()).toEqual(Object.entries(goes).map(([name, night]) => [uuidOf(name), iso(day0 + night * dayMs)]).sort())
  for (const [name, night] of Object.entries(goes)) {
    const { summary } = sessionStatus([store], uuidOf(name), end)
    expect([name, summary.state, summary.on]).toEqual([name, 'expired', iso(day0 + night * dayMs)])
    expect([name, existsSync(join(root, `projects/-p/${uuidOf(name)}.jsonl`)), existsSync(join(root, `file-history/${uuidOf(name)}`))]).toEqual([name, false, false])
  }
  expect(store.inventory().sessions.map(({ id }) => id).sort()).toEqual(stay.map(uuidOf).sort())
  for (const name of stay) expect(sessionStatus([store], uuidOf(name), end).summary.state).toBe('there')
})
