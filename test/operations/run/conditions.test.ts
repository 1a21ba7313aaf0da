import { describe, expect, it } from 'vitest'
import type { Job } from '../../../src/operations/run/job.js'
import { jobsIn, lastRun } from '../../../src/operations/run/status-file.js'
import type { Store } from '../../../src/formats/format.js'
import { removeBackup } from '../../helpers/damage.js'
import { dayMs, iso, now, openStore } from '../../helpers/removal.js'
import { H, S2 } from '../../helpers/store.js'
import { rowsOf, runOn, states, twoSessions } from './running.js'

const hour = 3_600_000

describe('a step with the condition no-errors-found', () => {
  const job: Job = { name: 'careful', describe: '', steps: [{ step: 'recover' }, { step: 'verify' }, { step: 'expire', when: 'no-errors-found' }] }

  it('is carried out when verify found no error', async () => {
    const report = await runOn(openStore(await twoSessions()), job)
    expect(states(report)).toEqual(['recover done', 'verify done', 'expire done'])
    expect(report.plan.map(({ session }) => session)).toEqual([S2])
  })

  it('is left out when verify found one, in whichever session', async () => {
    const root = await twoSessions()
    removeBackup(root, S2, `${H}@v1`)
    const report = await runOn(openStore(root), job)
    expect(rowsOf(report)[2]).toMatchObject({ state: 'left out', message: 'left out, because verify found 1 errors' })
    expect(report.plan).toEqual([])
  })

  it('is left out when the verify step was left out itself', async () => {
    const root = await twoSessions()
    const rarely: Job = { ...job, steps: [{ step: 'recover' }, { step: 'verify', everyMs: 7 * dayMs }, { step: 'expire', when: 'no-errors-found' }] }
    await runOn(openStore(root), { ...rarely, steps: rarely.steps.slice(0, 2) })
    const report = await runOn(openStore(root), rarely)
    expect(rowsOf(report)[2]).toMatchObject({ state: 'left out', message: 'left out, because nothing was verified in this run' })
  })
})

describe('a step with the condition no-step-failed', () => {
  const job: Job = { name: 'chain', describe: '', steps: [{ step: 'status' }, { step: 'verify' }, { step: 'empty-trash', when: 'no-step-failed' }] }

  it('is carried out when all went well, and left out after a step that failed', async () => {
    const root = await twoSessions()
    expect(states(await runOn(openStore(root), job))).toEqual(['status done', 'verify done', 'empty-trash done'])
    const store: Store = {
      ...openStore(root),
      globals: () => {
        throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
      },
    }
    const report = await runOn(store, job, { apply: false })
    expect(states(report)).toEqual(['status done', 'verify failed', 'empty-trash left out'])
    expect(rowsOf(report)[2]?.message).toBe('left out, because an earlier step failed')
  })
})

describe('a step with every', () => {
  const job: Job = { name: 'weekly', describe: '', steps: [{ step: 'status' }, { step: 'verify', everyMs: 7 * dayMs }] }

  it('is carried out the first time, then when so much time has passed, an hour early included', async () => {
    const store = openStore(await twoSessions())
    const at = async (ms: number): Promise<string | undefined> => rowsOf(await runOn(store, job, { now: now + ms }))[1]?.state
    expect(await at(0)).toBe('done')
    expect(await at(dayMs)).toBe('left out')
    expect(await at(7 * dayMs - hour - 1)).toBe('left out')
    expect(await at(7 * dayMs - hour)).toBe('done')
    // From there the week begins anew.
    expect(await at(8 * dayMs)).toBe('left out')
  })

  it('counts only what was done: a preview does not', async () => {
    const store = openStore(await twoSessions())
    expect(states(await runOn(store, job, { apply: false }))).toEqual(['status done', 'verify done'])
    expect(states(await runOn(store, job))).toEqual(['status done', 'verify done'])
    expect(states(await runOn(store, job, { apply: false }))).toEqual(['status done', 'verify left out'])
  })

  it('is counted by job: the same step of another job is due on its own', async () => {
    const store = openStore(await twoSessions())
    await runOn(store, job)
    expect(states(await runOn(store, { ...job, name: 'other' }))).toEqual(['status done', 'verify done'])
  })

  it('is due when the time it was last done lies in the future', async () => {
    const store = openStore(await twoSessions())
    await runOn(store, job, { now: now + 400 * dayMs })
    expect(states(await runOn(store, job))).toEqual(['status done', 'verify done'])
  })
})

describe('the status file', () => {
  it('holds the last run, and of every job the last result and when each step was last done', async () => {
    const store = openStore(await twoSessions())
    const status: Job = { name: 'count', describe: '', steps: [{ step: 'status' }] }
    await runOn(store, { name: 'check', describe: '', steps: [{ step: 'verify' }, { step: 'status' }] })
    await runOn(store, status, { now: now + dayMs })
    await runOn(store, { name: 'check', describe: '', steps: [{ step: 'verify' }] }, { now: now + 2 * dayMs })
    expect(lastRun(store)).toMatchObject({ job: 'check', startedAt: iso(now + 2 * dayMs) })
    expect(jobsIn(lastRun(store))).toMatchObject({
      check: { startedAt: iso(now + 2 * dayMs), exitCode: 0, done: { verify: iso(now + 2 * dayMs), status: iso(now) } },
      count: { startedAt: iso(now + dayMs), exitCode: 0, done: { status: iso(now + dayMs) } },
    })
  })
})
