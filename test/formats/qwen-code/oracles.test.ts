import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openQwenCode } from '../../../src/formats/qwen-code/index.js'
import { findCheckpoint } from '../../../src/model/resolve.js'
import { applyRestore } from '../../../src/operations/restore/apply.js'
import { planRestore, type RestorePlan } from '../../../src/operations/restore/plan.js'
import { applyRedo, planRedo } from '../../../src/operations/restore/redo.js'
import { extractQwen, placed, qwenScenarios, type QwenStore } from '../../helpers/qwen-corpus.js'
import { snapshotTree, withoutTimes, type Tree } from '../../helpers/tree.js'

const now = Date.parse('2026-12-24T12:00:00Z')

interface File {
  readonly mode: string
  readonly sha256: string
}

/** Absolute path to the file it becomes, or `null`. */
type Changed = Record<string, File | null>

/** What ours does otherwise than the product, each with its reason (formats/qwen-code section 10). Nothing else may differ. */
interface Difference {
  readonly reason: string
  /** Paths that the product leaves and ours restores. */
  readonly restores?: Readonly<Record<string, File>>
  /** Paths that the product changes and ours leaves alone. */
  readonly leaves?: readonly string[]
  /** Paths that the product counts as failed and ours as done. */
  readonly succeeds?: readonly string[]
  /** Paths that ours counts as failed and the product does not. */
  readonly fails?: readonly string[]
}

const newTxt = '@/outside/new.txt'
const followedLink = 'a backup that was replaced by a link is not followed (defect 14)'
const oldEdit: Difference = {
  reason: 'sec.txt was edited with an old time: the product never sees that, ours restores the recorded bytes (defect 6)',
  restores: { '@/project/sec.txt': { mode: '0777', sha256: 'b5758cb6fead016da791d69b85532f7d77f07b6a6ff621e111baffd029aeefc5' } },
}
const freshTimes: Difference = {
  reason: 'the fork gave its backups new times, so the product takes the edited pre.txt for unchanged (defect 5)',
  restores: { '@/project/pre.txt': { mode: '0644', sha256: 'b6a98d9ce9a2d9149288fa3df42d377c3e42737afdcdaf714e33c0a100b51060' } },
}
const fileAbove: Difference = {
  reason: 'z.txt shall be gone and is, although a file stands where its folder was: nothing failed',
  succeeds: ['@/project/h/x/y/z.txt'],
}

function differenceOf(scenario: string, session: string, prompt: number): Difference | undefined {
  if (scenario === 'damaged' && prompt >= 3) return { reason: followedLink, leaves: [newTxt], fails: [newTxt] }
  if (scenario === 'modes-binary' && prompt >= 3) return oldEdit
  if (scenario === 'deleted-dirs' && prompt === 1) return fileAbove
  return scenario === 'resume-fork' && prompt === 1 && !session.startsWith('f58d264d') ? freshTimes : undefined
}

function announced(plan: RestorePlan): Changed {
  const changed: Changed = {}
  for (const { path, decision } of plan.items) {
    if (decision.action === 'delete') changed[path] = null
    if (decision.action !== 'restore') continue
    const sha256 = createHash('sha256').update(readFileSync(join(plan.source, decision.backup))).digest('hex')
    changed[path] = { mode: (decision.mode ?? 0).toString(8).padStart(4, '0'), sha256 }
  }
  return changed
}

function expected(store: QwenStore, changed: Readonly<Record<string, File | null>>, difference: Difference | undefined): Changed {
  const left = new Set(difference?.leaves)
  const entries = Object.entries({ ...changed, ...difference?.restores }).filter(([path]) => !left.has(path))
  return Object.fromEntries(entries.map(([path, file]) => [placed(store, path), file === null ? null : { mode: file.mode, sha256: file.sha256 }]))
}

const cases = qwenScenarios().flatMap(({ scenario, oracle }) =>
  Object.entries(oracle.sessions).flatMap(([session, { snapshots, targets }]) => Object.entries(targets).map(([promptId, target]) => ({ scenario, session, promptId, target, snapshots }))),
)

it('looks at all recorded results', () => {
  expect(cases).toHaveLength(163)
})

describe.each(qwenScenarios().map(({ scenario }) => scenario))('%s', (scenario) => {
  let extracted: QwenStore
  beforeAll(async () => {
    extracted = await extractQwen(scenario, afterAll)
  })

  // Every test undoes what it did, and checks that: one copy serves all of them.
  it.each(cases.filter((each) => each.scenario === scenario))('a rewind to $promptId does what the product does, once, and redo undoes it', ({ session, promptId, target, snapshots }) => {
    const difference = differenceOf(scenario, session, Number(promptId.split('#').at(-1)))
    const store = openQwenCode(extracted.root, { home: extracted.home, env: {}, platform: 'linux' })
    const ref = store.inventory().sessions.find(({ id }) => id === session)
    if (ref === undefined) throw new Error(`no session ${session}`)
    const reading = store.read(ref, { now })
    expect(reading.history.checkpoints.map(({ id, aliases }) => aliases?.[0] ?? id)).toEqual(snapshots.map((snapshot) => snapshot.promptId))
    const checkpoint = findCheckpoint(reading.history, promptId)
    if (checkpoint === undefined) throw new Error('the checkpoint was not found')

    const before = snapshotTree(extracted.home)
    const options = { home: extracted.home }
    const plan = planRestore(store, reading, checkpoint, options)
    expect(announced(plan)).toEqual(expected(extracted, target.changed, difference))
    const left = plan.items.filter(({ decision }) => decision.action === 'fail' || decision.action === 'unknown' || decision.action === 'skip').map(({ path }) => path)
    const failing = target.filesFailed.filter((path) => !(difference?.succeeds ?? []).includes(path)).concat(difference?.fails ?? [])
    expect(left.sort()).toEqual(failing.map((path) => placed(extracted, path)).sort())
    expect(snapshotTree(extracted.home)).toEqual(before)

    const result = applyRestore(plan, { sidecar: store.sidecar, now, partial: true })
    expect(result.rolledBack).toBe(false)
    const after = snapshotTree(extracted.home)
    for (const [path, file] of Object.entries(announced(plan))) {
      const node = after[path.slice(extracted.home.length + 1)]
      expect(node === undefined ? null : { mode: node.mode.padStart(4, '0'), sha256: node.sha256 }).toEqual(file)
    }
    expect(announced(planRestore(store, reading, checkpoint, options))).toEqual({})
    if (result.changed.length > 0) expect(applyRedo(planRedo(store, reading), { sidecar: store.sidecar, now })).toMatchObject({ failed: [], exitCode: 0 })
    expect(agents(snapshotTree(extracted.home))).toEqual(agents(before))
  })
})

/** The tree without our own folder. */
function agents(tree: Tree): Record<string, unknown> {
  return Object.fromEntries(Object.entries(withoutTimes(tree)).filter(([path]) => !path.startsWith('.qwen/.rewind-admin')))
}
