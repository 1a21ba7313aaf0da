import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { nightly } from '../../../jobs/nightly.js'
import { StoppedError } from '../../../src/cli/errors.js'
import type { Store } from '../../../src/formats/format.js'
import { NewerFormatError } from '../../../src/model/errors.js'
import { ExitCode } from '../../../src/model/exit-code.js'
import type { Report } from '../../../src/model/report.js'
import { runJob } from '../../../src/operations/run/run-job.js'
import { lastRun } from '../../../src/operations/run/status-file.js'
import type { JobContext } from '../../../src/operations/run/steps.js'
import { Sidecar, lockStore } from '../../../src/plan/sidecar.js'
import { listTrash } from '../../../src/plan/trash.js'
import { removeBackup } from '../../helpers/damage.js'
import { uuidOf } from '../../helpers/identity.js'
import { configOf, dayMs, daysAgo, iso, machineWith, now, openStore, session } from '../../helpers/removal.js'
import { H, H2, S2, snap, userLine, writeBackup, writeStoreFile, writeTranscript } from '../../helpers/store.js'
import { snapshotTree, sameTree } from '../../helpers/tree.js'
import { rowsOf, states, twoSessions, type Row } from './running.js'

const S3 = '33333333-3333-4333-8333-333333333333'
const thisHost = 'here'

let runs = 0

function contextOf(options: Partial<JobContext> = {}): JobContext {
  runs += 1
  let time = 0
  const machine = machineWith({ [process.pid]: '1' })
  return {
    apply: true,
    runId: `20261130T120000000Z-${runs.toString(16).padStart(8, '0')}`,
    config: configOf(),
    lock: { pid: process.pid, host: thisHost, processes: machine, waitMs: 0 },
    now,
    monotonic: () => (time += 5),
    machine,
    random: () => 0,
    threads: 0,
    ...options,
  }
}

function run(stores: readonly Store[], options: Partial<JobContext> = {}): Promise<Report> {
  return runJob(stores, nightly, contextOf(options))
}

const allDone = ['recover done', 'verify-quick done', 'cap done', 'expire done', 'empty-trash done']

/** A session of 105 checkpoints of yesterday, each with a backup of its own: versions 2 to 5 are beyond the cap. */
function longSession(root: string, id: string): void {
  const messages = Array.from({ length: 105 }, (_, index) => uuidOf(`${id}/${String(index)}`))
  const lines = messages.flatMap((message, index) => [
    userLine(message, { session: id, parent: messages[index - 1] ?? null, time: iso(daysAgo(1)) }),
    snap(message, { 'b.md': `${H2}@v${String(index + 1)}` }, iso(daysAgo(1))),
  ])
  writeTranscript(root, '-p', id, lines, { mtime: daysAgo(1) })
  messages.forEach((_, index) => writeBackup(root, id, `${H2}@v${String(index + 1)}`, `line ${String(index)}\n`, { mtime: daysAgo(1) }))
}

function hasSession(root: string, id: string): boolean {
  return existsSync(join(root, `projects/-p/${id}.jsonl`))
}

/** What a run leaves that was killed before it moved the transcript of S2. */
async function halfMoved(root: string): Promise<string> {
  await run([openStore(root)])
  const { sidecar } = openStore(root)
  const [runId = ''] = readdirSync(join(sidecar, 'trash'))
  const whole = join(sidecar, 'trash', runId, S2)
  renameSync(join(whole, `projects%2F-p%2F${S2}.jsonl`), join(root, `projects/-p/${S2}.jsonl`))
  renameSync(whole, `${whole}.part`)
  const journal = join(sidecar, 'journals', `${runId}.jsonl`)
  const lines = readFileSync(journal, 'utf8').split('\n')
  writeFileSync(journal, `${lines.slice(0, lines.findIndex((line) => line.includes('"t":"started"')) + 1).join('\n')}\n`)
  return runId
}

describe('the nightly job', () => {
  it('does its steps in order: finish, verify and seal, cap, expire, empty the trash; and leaves its result', async () => {
    const root = await twoSessions()
    longSession(root, S3)
    const report = await run([openStore(root)])
    expect(states(report)).toEqual(allDone)
    expect(report).toMatchObject({ command: 'run', applied: true, exitCode: 0, errors: [], roots: [root] })
    expect(report.summary).toMatchObject({ job: 'nightly', stores: 1, steps: 5, failed: 0, actions: 2 })
    expect(report.plan.map(({ action, session: id }) => [action, id])).toEqual([['trash-backups', S3], ['trash-session', S2]])
    expect(readdirSync(join(root, `file-history/${S3}`))).toHaveLength(101)
    expect(hasSession(root, S2)).toBe(false)
    expect(existsSync(join(root, '.rewind-admin/seals'))).toBe(true)
  })

  it('without --apply says the same and writes nothing anywhere, the sidecar included', async () => {
    const root = await twoSessions()
    longSession(root, S3)
    const before = snapshotTree(root)
    const preview = await run([openStore(root)], { apply: false })
    sameTree(root, before)
    expect(states(preview)).toEqual(allDone)
    expect(preview).toMatchObject({ applied: false, exitCode: 0 })
    expect(preview.runId).toBeUndefined()
    const done = await run([openStore(root)])
    expect(done.plan).toEqual(preview.plan)
    expect(done.kept).toEqual(preview.kept)
  })

  it('leaves a status file, readable by its owner only, with times, result, bytes and each step', async () => {
    const root = await twoSessions()
    const report = await run([openStore(root)])
    const file = join(root, '.rewind-admin/status.json')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(dirname(file)).mode & 0o777).toBe(0o700)
    const bytes = report.plan[0]?.bytes
    expect(bytes).toBeGreaterThan(6)
    const status = lastRun(openStore(root)) as Record<string, unknown>
    expect(status).toMatchObject({ schemaVersion: 1, job: 'nightly', runId: report.runId, startedAt: iso(now), exitCode: 0, actions: 1, bytes })
    const took = Date.parse(String(status.finishedAt)) - now
    expect([took > 0, took < 1000]).toEqual([true, true])
    expect((status.steps as Row[]).map(({ step, state }) => `${step} ${state}`)).toEqual(allDone)
    expect(JSON.stringify(status)).not.toContain('robin')
  })

  it('what it puts into the trash waits for the grace period and is gone the night after', async () => {
    const root = await twoSessions()
    await run([openStore(root)])
    const at = (days: number): Promise<Report> => run([openStore(root)], { now: now + days * dayMs })
    expect(rowsOf(await at(7)).at(-1)?.summary).toMatchObject({ removed: 0 })
    expect(rowsOf(await at(8)).at(-1)?.summary).toMatchObject({ removed: 1 })
    expect(listTrash(openStore(root))).toEqual([])
  })
})

describe('a step that fails', () => {
  it('R05: does not stop the next one: with an unknowable retention nothing expires, and the old trash is emptied all the same', async () => {
    const root = await twoSessions()
    await run([openStore(root)])
    session(root, '-p', S3, 60)
    writeFileSync(join(root, 'settings.json'), '{"cleanupPeriodDays":0}')
    const report = await run([openStore(root)], { now: now + 8 * dayMs })
    expect(states(report)).toEqual(['recover done', 'verify-quick done', 'cap done', 'expire failed', 'empty-trash done'])
    expect(report.exitCode).toBe(ExitCode.retentionUnknowable)
    expect(report.errors).toMatchObject([{ code: 'RETENTION_UNKNOWABLE', message: expect.stringContaining('expire: ') as string }])
    expect(hasSession(root, S3)).toBe(true)
    expect(listTrash(openStore(root))).toEqual([])
    expect(lastRun(openStore(root))).toMatchObject({ exitCode: 65, steps: [{}, {}, {}, { step: 'expire', state: 'failed' }, {}] })
  })

  it('R07: a plan above the brake is shown as refused, nothing of it is done or counted as done, and the next step goes on', async () => {
    const root = await twoSessions()
    await run([openStore(root)])
    for (let index = 0; index < 60; index += 1) session(root, '-p', uuidOf(`brake/${String(index)}`), 90)
    rmSync(join(root, '.rewind-admin/first-seen.jsonl'))
    const report = await run([openStore(root)], { now: now + 8 * dayMs })
    expect(report.exitCode).toBe(ExitCode.brake)
    expect(report.errors).toMatchObject([{ code: 'BRAKE' }])
    expect(report.plan).toEqual([])
    expect(report.summary).toMatchObject({ actions: 0, bytes: 0 })
    expect(states(report).at(-1)).toBe('empty-trash done')
    expect(rowsOf(report).at(-1)?.summary).toMatchObject({ removed: 1 })
    expect(readdirSync(join(root, 'projects/-p'))).toHaveLength(61)
    // A preview of the same shows what it would be.
    expect((await run([openStore(root)], { apply: false, now: now + 9 * dayMs })).plan).toHaveLength(60)
  })

  it('verify that finds an error in a session protects it from expire, with the reason', async () => {
    const root = await twoSessions()
    removeBackup(root, S2, `${H}@v1`)
    const report = await run([openStore(root)])
    expect(report.exitCode).toBe(ExitCode.findings)
    expect(hasSession(root, S2)).toBe(true)
    expect(report.kept).toContainEqual({ session: S2, reason: expect.stringMatching(/verify found (missing-backup|backups-missing)/) as string })
  })

  it('verify that finds an error in a session protects it from cap', async () => {
    const root = await twoSessions()
    longSession(root, S3)
    removeBackup(root, S3, `${H2}@v90`)
    const report = await run([openStore(root)])
    expect(readdirSync(join(root, `file-history/${S3}`))).toHaveLength(104)
    expect(report.kept).toContainEqual({ session: S3, reason: expect.stringContaining('verify found missing-backup') as string })
    expect(hasSession(root, S2)).toBe(false)
  })

  it('verify that cannot be carried out leaves cap and expire out, for nobody knows what to protect; the trash is emptied', async () => {
    const root = await twoSessions()
    const store: Store = {
      ...openStore(root),
      globals: () => {
        throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
      },
    }
    const report = await run([store])
    expect(states(report)).toEqual(['recover done', 'verify-quick failed', 'cap left out', 'expire left out', 'empty-trash done'])
    expect(report).toMatchObject({ exitCode: ExitCode.partial, errors: [{ code: 'EIO' }] })
    expect(rowsOf(report)[3]?.message).toContain('could not be verified')
    expect(hasSession(root, S2)).toBe(true)
  })

  it('recover that cannot be carried out leaves everything out that removes, and verifies all the same', async () => {
    const root = await twoSessions()
    const store = openStore(root)
    new Sidecar(store).prepare()
    writeFileSync(join(store.sidecar, 'journals/20261129T030000000Z-00000001.jsonl'), '{"t":"header","schemaVersion":99}\n')
    const report = await run([store])
    expect(states(report)).toEqual(['recover failed', 'verify-quick done', 'cap left out', 'expire left out', 'empty-trash left out'])
    expect(report).toMatchObject({ exitCode: ExitCode.newerFormat, plan: [], errors: [{ code: new NewerFormatError('').code }] })
    expect(rowsOf(report)[2]?.message).toContain('an interrupted run could not be finished')
    expect(hasSession(root, S2)).toBe(true)
  })

  it('recover that finished only a part leaves everything out that removes', async () => {
    const root = await twoSessions()
    writeStoreFile(root, `todos/${S2}-agent-${S2}.json`, 'old', { mtime: daysAgo(60) })
    await halfMoved(root)
    session(root, '-p', S3, 60)
    writeStoreFile(root, `todos/${S2}-agent-${S2}.json`, 'newer')
    rmSync(join(root, '.rewind-admin/first-seen.jsonl'))
    const report = await run([openStore(root)])
    expect(states(report)).toEqual(['recover failed', 'verify-quick done', 'cap left out', 'expire left out', 'empty-trash left out'])
    expect(report.exitCode).toBe(ExitCode.partial)
    expect(hasSession(root, S3)).toBe(true)
    expect(readFileSync(join(root, `todos/${S2}-agent-${S2}.json`), 'utf8')).toBe('newer')
  })

  it('whose result cannot be left in the status file is an error of the run; what it did is reported', async () => {
    const [one, two] = [await twoSessions(), await twoSessions()]
    const store = openStore(one)
    new Sidecar(store).prepare()
    mkdirSync(join(store.sidecar, 'status.json/in the way'), { recursive: true })
    const report = await run([store, openStore(two)])
    expect(report.exitCode).toBe(ExitCode.partial)
    expect(report.plan.map(({ session: id }) => id)).toEqual([S2, S2])
    expect(report.errors).toMatchObject([{ path: join(store.sidecar, 'status.json') }])
  })
})

describe('an interrupted run', () => {
  it('is completed first: what was half moved is wholly in the trash, and can be restored', async () => {
    const root = await twoSessions()
    const runId = await halfMoved(root)
    const report = await run([openStore(root)])
    expect(rowsOf(report)[0]).toMatchObject({ state: 'done', summary: { unfinished: 1, completed: 1, rolledBack: 0 } })
    expect(hasSession(root, S2)).toBe(false)
    expect(listTrash(openStore(root))).toMatchObject([{ runId, session: S2 }])
  })

  it('R104: is rolled back for a session that a process has opened since', async () => {
    const root = await twoSessions()
    await halfMoved(root)
    writeStoreFile(root, 'sessions/77.json', JSON.stringify({ pid: 77, sessionId: S2 }))
    const machine = machineWith({ 77: '1', [process.pid]: '1' })
    const report = await run([openStore(root)], { machine })
    expect(rowsOf(report)[0]).toMatchObject({ state: 'done', summary: { unfinished: 1, completed: 0, rolledBack: 1 } })
    expect(hasSession(root, S2)).toBe(true)
    expect(readFileSync(join(root, `file-history/${S2}/${H}@v1`), 'utf8')).toBe('robin\n')
  })

  it('is only counted by a preview', async () => {
    const root = await twoSessions()
    await halfMoved(root)
    const before = snapshotTree(root)
    expect(rowsOf(await run([openStore(root)], { apply: false }))[0]?.summary).toEqual({ unfinished: 1 })
    sameTree(root, before)
  })
})

describe('several stores', () => {
  it('one of which is locked: the other is done, the locked one is as it was, and the code says locked', async () => {
    const [one, two] = [await twoSessions(), await twoSessions()]
    const held = await lockStore(openStore(one), { pid: process.pid, host: thisHost, processes: machineWith({ [process.pid]: '1' }), command: 'x', now, token: 'ab', waitMs: 0 })
    const agents = (): unknown => [snapshotTree(join(one, 'projects')), snapshotTree(join(one, 'file-history'))]
    const before = agents()
    const report = await run([openStore(one), openStore(two)])
    expect(report.exitCode).toBe(ExitCode.locked)
    expect(report.errors).toMatchObject([{ code: 'LOCKED', path: one }])
    expect(report.plan).toMatchObject([{ session: S2 }])
    expect([hasSession(one, S2), hasSession(two, S2)]).toEqual([true, false])
    expect(agents()).toEqual(before)
    expect(lastRun(openStore(one))).toBeNull()
    held.release()
    expect((await run([openStore(one)])).exitCode).toBe(0)
  })

  it('end with the code that says most: unknowable retention before locked, locked before brake, brake before findings', async () => {
    const code = async (...damages: readonly ((root: string) => unknown)[]): Promise<number> => {
      const stores = await Promise.all(
        damages.map(async (damage) => {
          const root = await twoSessions()
          await damage(root)
          return openStore(root)
        }),
      )
      return (await run(stores)).exitCode
    }
    const unknowable = (root: string): unknown => { writeFileSync(join(root, 'settings.json'), '[]'); return root }
    const locked = (root: string): Promise<unknown> => lockStore(openStore(root), { pid: process.pid, host: 'elsewhere', processes: machineWith(), command: 'x', now, token: 'ab', waitMs: 0 })
    const braked = (root: string): unknown => Array.from({ length: 60 }, (_, index) => session(root, '-p', uuidOf(`rank/${String(index)}`), 90))
    const broken = (root: string): unknown => { removeBackup(root, S2, `${H}@v1`); return root }
    const good = (root: string): unknown => root
    expect(await code(good, good)).toBe(0)
    expect(await code(good, broken)).toBe(1)
    expect(await code(broken, braked)).toBe(4)
    expect(await code(braked, locked, broken)).toBe(11)
    expect(await code(locked, unknowable, braked)).toBe(65)
  })
})

describe('a signal', () => {
  it('R125: during expire ends the run after the session in work; the status file says so and the next night does the rest', async () => {
    const root = await twoSessions()
    for (let index = 0; index < 9; index += 1) session(root, '-p', uuidOf(`signal/${String(index)}`), 90)
    const controller = new AbortController()
    const store = openStore(root)
    let looks = 0
    // The registry is asked before each session and before its transcript: the third session is in work here.
    const counting: Store = {
      ...store,
      live: (...args) => {
        if (existsSync(join(store.sidecar, 'trash')) && readdirSync(join(store.sidecar, 'trash')).length > 0) looks += 1
        if (looks === 6) controller.abort(new StoppedError('SIGTERM'))
        return store.live(...args)
      },
    }
    const report = await run([counting, openStore(await twoSessions())], { signal: controller.signal })
    expect(report.exitCode).toBe(ExitCode.terminated)
    expect(report.plan.length).toBeGreaterThan(0)
    expect(report.plan.length).toBeLessThan(10)
    for (const { session: id = '' } of report.plan) expect(hasSession(root, id)).toBe(false)
    expect(states(report)).toEqual(['recover done', 'verify-quick done', 'cap done', 'expire done'])
    expect(lastRun(store)).toMatchObject({ exitCode: 143 })
    expect(existsSync(join(store.sidecar, 'lock'))).toBe(false)
    const rest = await run([store])
    expect(rest.plan.length + report.plan.length).toBe(10)
    expect(rowsOf(rest)[0]?.summary).toMatchObject({ completed: 0, rolledBack: 0 })
  })

  it('SIGINT before the second store leaves that one alone, and ends with 130', async () => {
    const [one, two] = [await twoSessions(), await twoSessions()]
    const controller = new AbortController()
    const report = await run([openStore(one), openStore(two)], {
      signal: controller.signal,
      progress: () => {
        controller.abort(new StoppedError('SIGINT'))
      },
    })
    expect(report.exitCode).toBe(ExitCode.interrupted)
    expect(states(report)).toEqual(['recover done', 'verify-quick done'])
    expect(lastRun(openStore(one))).toMatchObject({ exitCode: 130 })
    expect(existsSync(join(two, '.rewind-admin'))).toBe(false)
    expect([hasSession(one, S2), hasSession(two, S2)]).toEqual([true, true])
  })
})
