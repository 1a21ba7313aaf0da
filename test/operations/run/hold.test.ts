import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { integrity } from '../../../jobs/integrity.js'
import { nightly } from '../../../jobs/nightly.js'
import { ExitCode } from '../../../src/model/exit-code.js'
import { forgetFailure, heldBack, holding } from '../../../src/operations/run/hold.js'
import { nextNight } from '../../../src/operations/run/next-night.js'
import { lockStore } from '../../../src/plan/sidecar.js'
import { listTrash } from '../../../src/plan/trash.js'
import { removeBackup } from '../../helpers/damage.js'
import { configOf, dayMs, iso, machineWith, now, openStore, session } from '../../helpers/removal.js'
import { H, S2 } from '../../helpers/store.js'
import { uuidOf } from '../../helpers/identity.js'
import { snapshotTree, sameTree } from '../../helpers/tree.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { rowsOf, runOn, states, twoSessions } from './running.js'

const heldStates = ['recover done', 'verify-quick done', 'cap left out', 'expire left out', 'empty-trash left out']
const doneStates = ['recover done', 'verify-quick done', 'cap done', 'expire done', 'empty-trash done']

/** A store whose nightly job failed at `now`, and whose settings are mended since. */
async function failedNight(): Promise<string> {
  const root = await twoSessions()
  writeFileSync(join(root, 'settings.json'), '{"cleanupPeriodDays":0}')
  expect((await runOn(openStore(root), nightly)).exitCode).toBe(65)
  writeFileSync(join(root, 'settings.json'), '{"cleanupPeriodDays":30}')
  return root
}

describe('after a job failed', () => {
  it('later runs remove nothing, verify all the same, say why, and end with 0', async () => {
    const store = openStore(await failedNight())
    const report = await runOn(store, nightly, { now: now + dayMs - 1 })
    expect(states(report)).toEqual(heldStates)
    expect(report).toMatchObject({ exitCode: 0, plan: [], errors: [], findings: [{ id: 'removal-held', severity: 'warn' }] })
    expect(rowsOf(report)[3]?.message).toMatch(new RegExp(`^left out, because nightly failed at ${iso(now)}: expire: the retention period cannot be known`))
    // It is the first failure that counts, not the run that was held.
    expect(heldBack(store, now + dayMs - 1)).toMatchObject({ until: iso(now + dayMs) })
  })

  it('a preview says the same as the run, and writes nothing', async () => {
    const root = await failedNight()
    const before = snapshotTree(root)
    const preview = await runOn(openStore(root), nightly, { apply: false })
    sameTree(root, before)
    expect([states(preview), preview.plan]).toEqual([heldStates, []])
  })

  it('they remove again when a day has passed, and the failure is forgotten', async () => {
    const store = openStore(await failedNight())
    const report = await runOn(store, nightly, { now: now + dayMs })
    expect(states(report)).toEqual(doneStates)
    expect(report.plan.map(({ session: id }) => id)).toEqual([S2])
    expect(existsSync(join(store.sidecar, 'failure.json'))).toBe(false)
  })

  it('they remove again when somebody has looked', async () => {
    const store = openStore(await failedNight())
    expect([forgetFailure(store), forgetFailure(store)]).toEqual([true, false])
    expect(states(await runOn(store, nightly))).toEqual(doneStates)
  })

  it('a failure a day later holds for another day', async () => {
    const root = await failedNight()
    writeFileSync(join(root, 'settings.json'), '[]')
    expect((await runOn(openStore(root), nightly, { now: now + dayMs })).exitCode).toBe(65)
    expect(heldBack(openStore(root), now + 2 * dayMs - 1)?.until).toBe(iso(now + 2 * dayMs))
  })

  it('a job that removes nothing goes on as ever, and does not end the hold', async () => {
    const store = openStore(await failedNight())
    expect(await runOn(store, integrity)).toMatchObject({ exitCode: 0, findings: [] })
    expect(heldBack(store, now)).toBeDefined()
  })

  it('status says that the next night removes nothing, and why', async () => {
    const store = openStore(await failedNight())
    const context = { now, machine: machineWith() }
    expect(nextNight(store, configOf(), context).held).toContain('nightly failed at')
    expect(nextNight(store, configOf(), { ...context, now: now + dayMs })).not.toHaveProperty('held')
  })

  it('the note is for its owner only', async () => {
    const root = await failedNight()
    expect(statSync(join(root, '.rewind-admin/failure.json')).mode & 0o777).toBe(0o600)
  })
})

describe('what counts as a failure', () => {
  it('R07: the brake does', async () => {
    const root = await twoSessions()
    for (let index = 0; index < 60; index += 1) session(root, '-p', uuidOf(`hold/${String(index)}`), 90)
    expect((await runOn(openStore(root), nightly)).exitCode).toBe(4)
    expect(heldBack(openStore(root), now)?.why).toMatch(/^nightly failed at .*: expire: /)
  })

  it('findings do not: the sessions they are in are protected one by one', async () => {
    const root = await twoSessions()
    removeBackup(root, S2, `${H}@v1`)
    expect((await runOn(openStore(root), nightly)).exitCode).toBe(1)
    expect(heldBack(openStore(root), now)).toBeUndefined()
  })

  it('another run that holds the lock does not, nor does a preview that fails', async () => {
    const root = await twoSessions()
    const store = openStore(root)
    const held = await lockStore(store, { pid: process.pid, host: 'elsewhere', processes: machineWith(), command: 'x', now, token: 'ab', waitMs: 0 })
    expect((await runOn(store, nightly)).exitCode).toBe(11)
    held.release()
    writeFileSync(join(root, 'settings.json'), '[]')
    expect((await runOn(store, nightly, { apply: false })).exitCode).toBe(65)
    expect(heldBack(store, now)).toBeUndefined()
  })

  it('R106: a full disk and signals do not, everything else does', () => {
    const failure = (exitCode: ExitCode): unknown => holding([{ step: 'expire', exitCode, message: '' }])
    const counts = Object.entries(ExitCode).filter(([, code]) => failure(code) !== undefined).map(([name]) => name)
    expect(counts.sort()).toEqual(['brake', 'newerFormat', 'noStore', 'partial', 'retentionUnknowable', 'usage'])
  })
})

describe('a note that is damaged', () => {
  it.each([['an empty file', ''], ['no time', '{"job":"nightly"}'], ['no JSON', '{']])('(%s) holds until somebody has looked', async (_, text) => {
    const store = openStore(await failedNight())
    writeFileSync(join(store.sidecar, 'failure.json'), text)
    expect(heldBack(store, now + 400 * dayMs)).toMatchObject({ until: null })
    expect(states(await runOn(store, nightly, { now: now + 3 * dayMs }))).toEqual(heldStates)
    expect(forgetFailure(store)).toBe(true)
  })

  it('with a time in the future holds, for the clock was wrong then or is now', async () => {
    const store = openStore(await failedNight())
    expect(heldBack(store, now - 400 * dayMs)).toBeDefined()
  })

  it('is never removed through a link in place of our folder', async () => {
    const root = await twoSessions()
    const other = await temporaryFolder()
    mkdirSync(join(other, 'x'))
    writeFileSync(join(other, 'failure.json'), '{}')
    symlinkSync(other, join(root, '.rewind-admin'))
    expect(forgetFailure(openStore(root))).toBe(false)
    expect(readFileSync(join(other, 'failure.json'), 'utf8')).toBe('{}')
  })
})

describe('what waits in the trash', () => {
  it('stays there while a failure holds, although its grace is over', async () => {
    const root = await twoSessions()
    await runOn(openStore(root), nightly)
    writeFileSync(join(root, 'settings.json'), '[]')
    // The retention fails; what is due is emptied in the same run, what comes due later waits.
    await runOn(openStore(root), nightly, { now: now + 7 * dayMs })
    await runOn(openStore(root), nightly, { now: now + 8 * dayMs - 1 })
    expect(listTrash(openStore(root))).toHaveLength(1)
  })
})
