import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Plan } from '../../src/plan/action.js'
import { applyPlan } from '../../src/plan/apply.js'
import { writePlan } from '../../src/plan/plan-file.js'
import { recoverRuns } from '../../src/plan/recover.js'
import { restoreFromTrash } from '../../src/plan/restore.js'
import { listTrash } from '../../src/plan/trash.js'
import { temporaryFolder } from '../helpers/temp.js'
import { buildCore, runChild } from '../plan/child.js'
import { capOf, now, planOf, removalOf, run1, run2, sampleStore, storeTree } from '../plan/sample.js'

/** `REWIND_ADMIN_KILLS=200` is the long run. */
const kills = Number(process.env.REWIND_ADMIN_KILLS ?? '12')
const sessions = 60
/** The first 40 sessions expire, the rest is capped. */
const expired = 40

let core: string
beforeAll(async () => {
  core = buildCore(await temporaryFolder(afterAll))
})

function nightPlan(store: { root: string; sidecar: string }): Plan {
  const actions = Array.from({ length: sessions }, (_, n) => (n < expired ? removalOf(store.root, n) : capOf(store.root, n)))
  return planOf(store, actions, sessions)
}

/** Applies a plan and dies by SIGKILL at the n-th act on the disk: before it, after it, or in the middle of a write. */
const victim = `
  import { mkdirSync, renameSync, rmdirSync, unlinkSync, writeFileSync } from 'node:fs'
  import { applyPlan } from './plan/apply.js'
  import { readPlan } from './plan/plan-file.js'
  const [plan, runId, now, at, when, noTrash] = process.argv.slice(-6)
  let count = 0
  const die = () => { process.kill(process.pid, 'SIGKILL'); for (;;) {} }
  const counted = (act, half) => (...args) => {
    count += 1
    if (count !== Number(at)) return act(...args)
    try {
      if (when === 'after') act(...args)
      if (when === 'half') half?.(...args)
    } finally {
      die()
    }
  }
  const create = (path, data) => writeFileSync(path, data, { flag: 'wx', mode: 0o600 })
  const faults = {
    rename: counted(renameSync),
    rmdir: counted(rmdirSync),
    unlink: counted(unlinkSync),
    mkdir: counted((path, mode) => mkdirSync(path, { mode })),
    create: counted(create, (path, data) => create(path, data.subarray(0, data.length / 2))),
  }
  await applyPlan(readPlan(plan), { now: Number(now), runId, noTrash: noTrash === 'yes', faults })
  console.log(count)
`

async function killed(plan: Plan, at: number, when: string, noTrash = false): Promise<number | undefined> {
  const file = join(await temporaryFolder(), 'plan.json')
  writePlan(file, plan, 'a1')
  const end = await runChild(core, victim, [file, run1, String(now), String(at), when, noTrash ? 'yes' : 'no'])
  expect(end.stderr).toBe('')
  return end.signal === 'SIGKILL' ? undefined : Number(end.stdout)
}

/** A small generator, so that a failing point can be run again. */
function randomPoints(count: number, below: number): number[] {
  let state = 20261130
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return 1 + (state % below)
  })
}

test('promise 6, R24: killed at any point, one more run gives what an uninterrupted one gives, and nothing is lost', async () => {
  const whole = await sampleStore(sessions)
  await applyPlan(nightPlan(whole), { now, runId: run1 })
  const wanted = storeTree(whole.root)
  const acts = await killed(nightPlan(await sampleStore(sessions)), 1e9, 'before')
  expect(acts).toBeGreaterThan(sessions * 4)
  for (const [index, at] of randomPoints(kills, acts ?? 0).entries()) {
    const when = ['before', 'after', 'half'][index % 3] ?? 'before'
    const name = `act ${String(at)} ${when}`
    const store = await sampleStore(sessions)
    const before = storeTree(store.root)
    expect(await killed(nightPlan(store), at, when), name).toBeUndefined()
    for (const run of await recoverRuns(store, { now })) expect(run.errors, name).toEqual([])
    expect(await recoverRuns(store, { now }), name).toEqual([])
    const second = await applyPlan(nightPlan(store), { now, runId: run2 })
    expect(second, name).toMatchObject({ errors: [], kept: [], exitCode: 0 })
    expect(storeTree(store.root), name).toEqual(wanted)
    for (const run of new Set(listTrash(store).map((entry) => entry.runId))) {
      expect((await restoreFromTrash(store, run)).errors, name).toEqual([])
    }
    expect(storeTree(store.root), name).toEqual(before)
  }
}, 600_000)

test('promise 6: killed at any point, recovery alone leaves every session wholly in place or wholly in the trash', async () => {
  const acts = await killed(nightPlan(await sampleStore(sessions)), 1e9, 'before')
  for (const [index, at] of randomPoints(6, acts ?? 0).entries()) {
    const store = await sampleStore(sessions)
    const before = storeTree(store.root)
    expect(await killed(nightPlan(store), at, index % 2 === 0 ? 'after' : 'half')).toBeUndefined()
    const allowed = index % 2 === 0
    await recoverRuns(store, { now, stillAllowed: () => (allowed ? true : 'it is live') })
    const inTrash = new Set(listTrash(store).map((entry) => entry.session))
    const after = storeTree(store.root)
    for (const [n, session] of store.sessions.entries()) {
      const paths = Object.keys(before).filter((path) => path.includes(session))
      const left = paths.filter((path) => path in after)
      const capped = n >= expired ? paths.length - 1 : 0
      expect(left.length, `${session} at act ${String(at)}`).toBe(inTrash.has(session) ? capped : paths.length)
    }
  }
}, 120_000)

test('promise 6: a run without trash that was killed is completed: nothing half removed is left in our folder', async () => {
  const whole = await sampleStore(sessions)
  await applyPlan(nightPlan(whole), { now, runId: run1, noTrash: true })
  const acts = await killed(nightPlan(await sampleStore(sessions)), 1e9, 'before', true)
  for (const at of randomPoints(6, acts ?? 0)) {
    const store = await sampleStore(sessions)
    expect(await killed(nightPlan(store), at, 'after', true)).toBeUndefined()
    for (const run of await recoverRuns(store, { now })) expect(run.errors).toEqual([])
    expect(existsSync(join(store.sidecar, 'trash')) ? readdirSync(join(store.sidecar, 'trash')) : []).toEqual([])
    await applyPlan(nightPlan(store), { now, runId: run2, noTrash: true })
    expect(storeTree(store.root)).toEqual(storeTree(whole.root))
  }
}, 120_000)
