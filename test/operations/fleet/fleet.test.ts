import { mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync, existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { nightly } from '../../../jobs/nightly.js'
import { StoppedError } from '../../../src/cli/errors.js'
import { noItems, type Report } from '../../../src/model/report.js'
import { runFleet, type FleetContext } from '../../../src/operations/fleet/fleet.js'
import { openHome, runHome, type Home } from '../../../src/operations/fleet/home.js'
import type { FleetRoot } from '../../../src/operations/fleet/roots.js'
import { newRunId } from '../../../src/plan/run-id.js'
import { finding } from '../../../src/model/finding.js'
import { machineWith, now } from '../../helpers/removal.js'
import { S2 } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { asNobody, giveAway, needs, nobody } from '../../helpers/unprivileged.js'
import { twoSessions } from '../run/running.js'

const good: Report = { command: 'run', roots: [], applied: true, runId: 'r', summary: {}, ...noItems, exitCode: 0 }
let runs = 0

/** Runs the nightly job in a home in this process. */
function inHome(home: Home, stop: AbortSignal): Promise<Report> {
  runs += 1
  const machine = machineWith({ [process.pid]: '1' })
  return runHome({ ...home, job: nightly, apply: true, now }, machine, 'linux', {
    runId: newRunId(now, runs.toString(16).padStart(8, '0')),
    lock: { pid: process.pid, host: 'here', processes: machine, waitMs: 0 },
    monotonic: () => 0,
    machine,
    random: () => 0,
    threads: 0,
    signal: stop,
  })
}

function fleet(roots: readonly (string | FleetRoot)[], options: Partial<FleetContext> = {}): Promise<Report> {
  const given = roots.map((root) => (typeof root === 'string' ? { path: root, named: true } : root))
  return runFleet(given, nightly, { apply: true, parallel: 2, timeoutMs: 60_000, monotonic: () => 0, run: inHome, ...options })
}

interface Row {
  readonly root: string
  readonly state: string
  readonly exitCode: number
  readonly message?: string
  readonly [field: string]: unknown
}

function rowsOf(report: Report): Row[] {
  return report.extra?.homes as unknown as Row[]
}

describe('a job in many homes', () => {
  it('is done in each, with a row for each and all paths absolute', async () => {
    const [one, two] = [await twoSessions(), await twoSessions()]
    const report = await fleet([one, two])
    expect(report).toMatchObject({ exitCode: 0, applied: true, summary: { job: 'nightly', homes: 2, done: 2, failed: 0, leftOut: 0, actions: 2 } })
    expect(rowsOf(report)).toMatchObject([one, two].map((root) => ({ root, state: 'done', exitCode: 0, actions: 1 })))
    expect(report.plan.map(({ path }) => path)).toEqual([one, two].map((root) => `${root}/projects/-p/${S2}.jsonl`))
    const names = rowsOf(report).map(({ runId }) => runId)
    expect(new Set(names).size).toBe(2)
    // The name in its row brings back what was removed there.
    expect(readFileSync(join(one, '.rewind-admin/status.json'), 'utf8')).toContain(String(names[0]))
  })

  it('one of which fails, in whatever way: the others are done, and the exit code is 3', async () => {
    const [one, two] = [await twoSessions(), await twoSessions()]
    const missing = join(dirname(one), 'none/.claude')
    const report = await fleet([one, missing, { path: '/x', named: false, problem: { code: 'EACCES', message: 'it cannot be looked at (EACCES)' } }, two], {
      run: (home, stop) => (home.root === two ? Promise.reject(new TypeError('odd')) : inHome(home, stop)),
    })
    expect(report.exitCode).toBe(3)
    expect(rowsOf(report).map(({ state, exitCode }) => [state, exitCode])).toEqual([['done', 0], ['failed', 10], ['failed', 3], ['failed', 2]])
    expect(report.errors).toEqual([
      { code: 'NO_STORE', path: missing, message: `${missing} does not exist` },
      { code: 'EACCES', path: '/x', message: 'it cannot be looked at (EACCES)' },
      { code: 'INTERNAL', path: two, message: 'odd' },
    ])
  })

  it('findings are none: the home is done, and the exit code is 1', async () => {
    const found = finding('missing-backup', 'gone', { path: 'file-history/x' })
    const root = await twoSessions()
    const report = await fleet([root], { run: () => Promise.resolve({ ...good, roots: [root], findings: [found], exitCode: 1 }) })
    expect(report).toMatchObject({ exitCode: 1, summary: { done: 1, failed: 0 }, findings: [{ place: { path: `${root}/file-history/x` } }] })
  })

  it.each([4, 11, 12, 65] as const)('ends in one home with %i: that home has failed, also when nothing says why', async (exitCode) => {
    const root = await twoSessions()
    const report = await fleet([root], { run: () => Promise.resolve({ ...good, roots: [root], exitCode }) })
    expect(report).toMatchObject({ exitCode: 3, summary: { failed: 1 }, errors: [{ path: root }] })
    expect(rowsOf(report)).toMatchObject([{ state: 'failed', exitCode }])
  })

  it('what a pattern found and is no store is left out; what was named has to be one', async () => {
    const home = await temporaryFolder()
    mkdirSync(join(home, '.claude'))
    const path = join(home, '.claude')
    const report = await fleet([{ path, named: false }])
    expect([report.exitCode, rowsOf(report)[0]?.state, report.errors]).toEqual([0, 'left out', []])
    expect(await fleet([path])).toMatchObject({ exitCode: 3, errors: [{ code: 'NO_STORE' }] })
  })

  it('a part with no home in it is done', async () => {
    expect(await fleet([], { shard: { number: 1, of: 4 } })).toMatchObject({ exitCode: 0, roots: [], summary: { homes: 0 }, extra: { shard: '1/4' } })
  })
})

describe('the time limit of a home', () => {
  it('ends that home, what it did is reported, and the others go on', async () => {
    const [one, two] = [await twoSessions(), await twoSessions()]
    const slow = (home: Home, stop: AbortSignal): Promise<Report> =>
      home.root === two ? inHome(home, stop) : new Promise((resolve) => {
        stop.addEventListener('abort', () => {
          resolve({ ...good, roots: [one], plan: [{ action: 'trash-session', path: 'p', bytes: 3, reason: '' }], exitCode: 143 })
        })
      })
    const report = await fleet([one, two], { run: slow, timeoutMs: 1000 })
    expect(rowsOf(report)).toMatchObject([{ root: one, state: 'failed', actions: 1, message: 'it took longer than 1 s, and was stopped after the item in work' }, { root: two, state: 'done' }])
    expect(report).toMatchObject({ exitCode: 3, errors: [{ code: 'TIME_LIMIT', path: one }] })
    expect(report.plan.map(({ path }) => path)).toContain(`${one}/p`)
  })
})

describe('a signal', () => {
  it('ends the homes in work and begins no other; the exit code is that of the signal', async () => {
    const roots = [await twoSessions(), await twoSessions(), await twoSessions()]
    const controller = new AbortController()
    const report = await fleet(roots, {
      parallel: 1,
      signal: controller.signal,
      run: (home, stop) => {
        controller.abort(new StoppedError('SIGTERM'))
        return inHome(home, stop)
      },
    })
    expect(report.exitCode).toBe(143)
    expect(rowsOf(report).map(({ state }) => state)).toEqual(['failed', 'left out', 'left out'])
    expect(roots.map((root) => existsSync(join(root, `projects/-p/${S2}.jsonl`)))).toEqual([true, true, true])
  })
})

describe('the settings of a home', () => {
  /** Puts our configuration into a home. */
  function configure(root: string, config: unknown): string {
    const file = join(dirname(root), '.config/rewind-admin/rewind-admin.config.json')
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, JSON.stringify(config))
    return file
  }

  it('are its own: a pin in one keeps a session there and nowhere else', async () => {
    const [one, two] = [await twoSessions(), await twoSessions()]
    configure(one, { pins: { sessions: [S2] } })
    expect((await fleet([one, two])).plan.map(({ path }) => path)).toEqual([`${two}/projects/-p/${S2}.jsonl`])
  })

  it('that cannot be used fail that home and no other', async () => {
    const [one, two] = [await twoSessions(), await twoSessions()]
    configure(one, { caap: 3 })
    const report = await fleet([one, two])
    expect(rowsOf(report).map(({ state, exitCode }) => [state, exitCode])).toEqual([['failed', 2], ['done', 0]])
    expect(existsSync(join(one, '.rewind-admin'))).toBe(false)
  })

  it('never start a program or write a file that the home names: whoever runs the fleet is told, and by the own settings only', async () => {
    const root = await twoSessions()
    const folder = await temporaryFolder()
    configure(root, { notify: { before: { command: ['/bin/sh', '-c', `touch ${folder}/started`] }, metrics: folder } })
    expect((await fleet([root])).exitCode).toBe(0)
    expect(existsSync(join(folder, 'started'))).toBe(false)
    expect(existsSync(join(folder, 'rewind_admin_nightly.prom'))).toBe(false)
  })

  it('R55: are not read through a link that leads out of the home', async () => {
    const [one, two] = [await twoSessions(), await twoSessions()]
    const other = configure(two, { pins: { sessions: [S2] } })
    mkdirSync(join(dirname(one), '.config/rewind-admin'), { recursive: true })
    symlinkSync(other, join(dirname(one), '.config/rewind-admin/rewind-admin.config.json'))
    expect((await fleet([one])).errors).toMatchObject([{ code: 'CONFIG', message: expect.stringContaining('leads out of its home') as string }])
  })
})

describe('openHome', () => {
  it('takes the folder that holds a root for its home, and the home itself where an agent keeps its store deeper', async () => {
    const root = await twoSessions()
    expect(openHome({ path: root })).toMatchObject({ root, home: dirname(root) })
  })

  it('R55: a root that is a link inside its home is that folder; one that leads out is refused', async () => {
    const [one, two] = [await twoSessions(), await twoSessions()]
    const link = join(dirname(one), 'linked')
    symlinkSync('.claude', link)
    expect(openHome({ path: link }).root).toBe(one)
    const out = join(dirname(one), 'out')
    symlinkSync(two, out)
    expect(() => openHome({ path: out })).toThrow('leads out of its home')
    expect(() => openHome({ path: join(dirname(one), 'none') })).toThrow('does not exist')
  })

  it('R55: a home that changes into a link after it was looked at is left alone', async () => {
    const [one, two] = [await twoSessions(), await twoSessions()]
    const home = openHome({ path: one })
    const moved = join(dirname(one), 'moved')
    symlinkSync(two, moved)
    await expect(inHome({ ...home, root: moved }, new AbortController().signal)).rejects.toThrow('is not the folder it was')
    expect(realpathSync(moved)).toBe(two)
    expect(existsSync(join(two, '.rewind-admin'))).toBe(false)
  })

  it('belongs to whoever owns the home, and in a folder of root to whoever owns the store', async (context) => {
    needs(context, 'unprivileged')
    const [one, two] = [await twoSessions(), await twoSessions()]
    giveAway(dirname(one))
    giveAway(two)
    await asNobody(() => {
      expect(openHome({ path: one }).owner).toEqual({ uid: nobody, gid: nobody })
    })
    if (process.getuid?.() === 0) expect(openHome({ path: two }).owner).toEqual({ uid: nobody, gid: nobody })
  })
})
