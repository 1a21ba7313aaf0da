import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { nightly } from '../../../jobs/nightly.js'
import { StoppedError } from '../../../src/cli/errors.js'
import type { Store } from '../../../src/formats/format.js'
import type { Report } from '../../../src/model/report.js'
import { runJob } from '../../../src/operations/run/run-job.js'
import { firstRunIsPreview, noteFile, runScheduled, type ScheduledRun } from '../../../src/operations/schedule/first-run.js'
import { lockStore } from '../../../src/plan/sidecar.js'
import { configOf, daysAgo, machineWith, now, openStore, session } from '../../helpers/removal.js'
import { S1, S2, emptyRoot, writeStoreFile } from '../../helpers/store.js'
import { snapshotTree } from '../../helpers/tree.js'

const machine = machineWith({ [process.pid]: '1' })
const lock = { pid: process.pid, host: 'here', processes: machine, waitMs: 0 }
const first = '0123456789abcdef'
const second = 'fedcba9876543210'

/** S1 of yesterday, S2 of 60 days ago: one night takes S2. */
async function store(): Promise<Store> {
  const root = await emptyRoot()
  writeStoreFile(root, 'settings.json', '{"cleanupPeriodDays":30}', { mtime: daysAgo(90) })
  session(root, '-p', S1, 1)
  session(root, '-p', S2, 60)
  return openStore(root)
}

let runs = 0

function night(stores: readonly Store[], options: Partial<ScheduledRun> = {}): Promise<Report> {
  const { signal } = options
  return runScheduled(stores, { job: 'nightly', installation: first, apply: true, now, lock, ...options }, (some, apply) =>
    runJob(some, nightly, {
      apply,
      runId: `20261130T120000000Z-${(runs += 1).toString(16).padStart(8, '0')}`,
      config: configOf(),
      lock,
      now,
      monotonic: () => 0,
      machine,
      random: () => 0,
      threads: 0,
      ...(signal === undefined ? {} : { signal }),
    }),
  )
}

const ids = (one: Store): string[] => one.inventory().sessions.map(({ id }) => id).sort()
const agents = (one: Store): unknown => [snapshotTree(join(one.root, 'projects')), readFileSync(join(one.root, 'settings.json'), 'utf8')]

describe('the first scheduled run of an installation', () => {
  it('is a preview that says so and what it would have done; the next one acts', async () => {
    const one = await store()
    const before = agents(one)
    expect(firstRunIsPreview(one, first)).toBe(true)
    const preview = await night([one])
    expect(preview).toMatchObject({ applied: false, exitCode: 0, errors: [], plan: [{ session: S2 }], next: expect.stringMatching(/first scheduled run .* is a preview/) as string })
    expect(preview.findings[0]).toMatchObject({ id: 'first-run-preview', message: expect.stringContaining('1 actions would have been taken; the next run acts') as string })
    expect(agents(one)).toEqual(before)
    expect(firstRunIsPreview(one, first)).toBe(false)
    const acting = await night([one])
    expect(acting).toMatchObject({ applied: true, plan: [{ session: S2 }] })
    expect(acting.findings).toEqual([])
    expect(ids(one)).toEqual([S1])
  })

  it('is a preview for a new installation again, and for no older one', async () => {
    const one = await store()
    await night([one])
    expect((await night([one], { installation: second })).applied).toBe(false)
    expect([first, second].map((name) => firstRunIsPreview(one, name))).toEqual([false, false])
    expect((await night([one])).applied).toBe(true)
  })

  it('of a store that turns up later is a preview of that store; the others are acted on, and only that is called done', async () => {
    const [known, late] = [await store(), await store()]
    await night([known])
    const report = await night([known, late])
    expect(report).toMatchObject({ applied: true, roots: [known.root, late.root], plan: [{ session: S2 }], summary: { stores: 2, actions: 1 } })
    expect(report.extra).toMatchObject({ firstRun: { roots: [late.root], plan: [{ session: S2 }] } })
    expect(report.extra?.steps).toHaveLength(10)
    expect([ids(known), ids(late)]).toEqual([[S1], [S1, S2]])
    expect((await night([known, late])).plan).toMatchObject([{ session: S2 }])
    expect(ids(late)).toEqual([S1])
  })

  it('without --apply is a preview every time and notes nothing', async () => {
    const one = await store()
    await night([one], { apply: false })
    expect(firstRunIsPreview(one, first)).toBe(true)
  })

  it('cut short by a signal is not counted', async () => {
    const one = await store()
    const controller = new AbortController()
    controller.abort(new StoppedError('SIGTERM'))
    await night([one], { signal: controller.signal })
    expect(firstRunIsPreview(one, first)).toBe(true)
  })

  it.each([
    ['lost', (path: string) => { rmSync(path) }],
    ['torn', (path: string) => { writeFileSync(path, '{"schemaVersion":1,"previewed":[{"inst') }],
    ['of a newer shape', (path: string) => { writeFileSync(path, '{"schemaVersion":2,"previewed":["x"]}') }],
  ])('is a preview once more when the note of it is %s: nothing is removed on doubt', async (_, damage) => {
    const one = await store()
    await night([one])
    damage(noteFile(one))
    expect((await night([one])).applied).toBe(false)
    expect(ids(one)).toEqual([S1, S2])
    expect((await night([one])).applied).toBe(true)
  })

  it('that cannot be noted is an error that says what follows; the next run is a preview again', async () => {
    const [held, blocked] = [await store(), await store()]
    const lockHeld = await lockStore(held, { ...lock, host: 'elsewhere', command: 'x', now, token: 'ab' })
    mkdirSync(join(blocked.sidecar, 'scheduled.json/in the way'), { recursive: true })
    const report = await night([held, blocked])
    expect(report.exitCode).toBe(3)
    expect(report.errors).toMatchObject([
      { code: 'LOCKED', path: noteFile(held), message: expect.stringContaining('the next run is a preview again') as string },
      { path: noteFile(blocked), message: expect.stringContaining('the next run is a preview again') as string },
    ])
    lockHeld.release()
    expect([held, blocked].map((one) => firstRunIsPreview(one, first))).toEqual([true, true])
  })

  it('needs the name of an installation', async () => {
    for (const installation of ['', 'yes', '../../x', 'ABCDEF0123']) await expect(night([await store()], { installation })).rejects.toMatchObject({ code: 'USAGE' })
  })

  it('is remembered for the last fifty installations', async () => {
    const one = await store()
    const names = Array.from({ length: 52 }, (_, index) => index.toString(16).padStart(16, '0'))
    for (const installation of names) await runScheduled([one], { job: 'nightly', installation, apply: true, now, lock }, () => Promise.resolve(emptyReport(one)))
    expect(names.map((name) => firstRunIsPreview(one, name)).filter(Boolean)).toHaveLength(2)
    expect([firstRunIsPreview(one, names[1] ?? ''), firstRunIsPreview(one, names[51] ?? '')]).toEqual([true, false])
  })
})

/** A report of a run that found nothing to do. */
function emptyReport(one: Store): Report {
  return { command: 'run', roots: [one.root], applied: false, summary: {}, findings: [], plan: [], kept: [], errors: [], exitCode: 0 }
}
