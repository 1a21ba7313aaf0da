import { lstatSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Plan } from '../../src/plan/action.js'
import { applyPlan } from '../../src/plan/apply.js'
import { assertWithin, readPlan, writePlan } from '../../src/plan/plan-file.js'
import { FenceError, NewerFormatError, UsageError } from '../../src/model/errors.js'
import { temporaryFolder } from '../helpers/temp.js'
import { capOf, expireAll, now, planOf, run1, sampleStore, sessionId } from './sample.js'

test('a plan comes back from its file as it was, and can be applied', async () => {
  const store = await sampleStore(3)
  const path = join(await temporaryFolder(), 'plan.json')
  const plan = expireAll(store, 3)
  writePlan(path, plan, 'a1')
  expect(lstatSync(path).mode & 0o777).toBe(0o600)
  expect(readPlan(path)).toEqual(plan)
  expect((await applyPlan(readPlan(path), { now, runId: run1 })).done).toHaveLength(3)
})

test('promise 4: a plan of a newer version is refused with exit code 12', async () => {
  const store = await sampleStore(1)
  const path = join(await temporaryFolder(), 'plan.json')
  writeFileSync(path, JSON.stringify({ ...expireAll(store, 1), schemaVersion: 2, unheard: [] }))
  expect(() => readPlan(path)).toThrow(NewerFormatError)
})

test.each([
  ['not JSON', 'x{'],
  ['a list', '[]'],
  ['no plan', '{"schemaVersion":1}'],
])('a file that is %s is refused as no plan', async (_, text) => {
  const path = join(await temporaryFolder(), 'plan.json')
  writeFileSync(path, text)
  expect(() => readPlan(path)).toThrow(UsageError)
})

test('a plan file that cannot be read is a usage error that names it', async () => {
  const path = join(await temporaryFolder(), 'none.json')
  expect(() => readPlan(path)).toThrow(path)
})

test('promise 3: a plan file with a path outside, twice the same path, or one path inside another is refused', async () => {
  const store = await sampleStore(1)
  const path = join(await temporaryFolder(), 'plan.json')
  writePlan(path, expireAll(store, 1), 'a1')
  const good = readFileSync(path, 'utf8')
  const transcript = `projects/-home-u-p0/${sessionId(0)}.jsonl`
  for (const other of ['../../etc/passwd', '/etc/passwd', `file-history/${sessionId(0)}`, `file-history/${sessionId(0)}/x`]) {
    writeFileSync(path, good.replace(JSON.stringify(transcript), JSON.stringify(other)))
    expect(() => readPlan(path), other).toThrow(UsageError)
  }
})

test('promise 3: a plan file that names what does not belong to the session is refused before anything moves', async () => {
  const store = await sampleStore(2)
  const members = (n: number) => [{ kind: 'backups' as const, path: `file-history/${sessionId(n)}`, folder: true }]
  const sessions = [{ id: sessionId(0), members: members(0) }, { id: sessionId(1), members: members(1) }]
  const check = (plan: Plan, shared: string[] = []) => () => { assertWithin(plan, { place: store, sessions, shared }) }
  const cap = planOf(store, [capOf(store.root, 0)])
  expect(check(cap)).not.toThrow()
  expect(check(expireAll(store, 1))).toThrow(FenceError)
  const [own] = cap.actions
  if (own?.kind !== 'trash-backups') throw new Error('no backup')
  const stranger = { ...own, session: sessionId(9) }
  expect(check(planOf(store, [stranger]))).toThrow(/does not belong to session/)
  rmSync(join(store.root, 'file-history', sessionId(0)), { recursive: true })
  expect(check(planOf(store, [stranger]))).not.toThrow()
  expect(check({ ...cap, root: '/elsewhere' })).toThrow(/is for the store/)
  expect(check({ ...cap, sidecar: '/elsewhere' })).toThrow(FenceError)
  const identity = { dev: '1', ino: '1', size: 0, mtimeNs: '0' }
  const replace = { kind: 'replace' as const, path: '.bashrc', beside: true as const, reason: '', bytes: 0, staged: 'new', stagedIdentity: identity }
  expect(check(planOf(store, [replace]), ['.claude.json'])).toThrow(/no shared file/)
  expect(check(planOf(store, [{ ...replace, path: '.claude.json' }]), ['.claude.json'])).not.toThrow()
})
