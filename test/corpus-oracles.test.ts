import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openClaudeCode } from '../src/formats/claude-code/index.js'
import type { Checkpoint } from '../src/model/history.js'
import { findCheckpoint } from '../src/model/resolve.js'
import type { SessionReading } from '../src/model/session.js'
import { applyRestore } from '../src/operations/restore/apply.js'
import { hasAnyChanges, planRestore, type RestorePlan } from '../src/operations/restore/plan.js'
import { applyRedo, planRedo } from '../src/operations/restore/redo.js'
import { corpusStores, extractStore, type ExtractedStore, type Oracle, type OracleNode, type OracleTarget } from './helpers/corpus.js'
import { snapshotTree, withoutTimes, type Tree, type TreeNode } from './helpers/tree.js'

const now = Date.parse('2026-12-24T12:00:00Z')

type Changed = Record<string, OracleNode | null>

/** What ours does otherwise than the client, each with its reason. Nothing else may differ. */
interface Difference {
  readonly reason: string
  /** Paths that the client changed and ours leaves alone. */
  readonly leaves?: readonly string[]
  /** Paths that ours skips on top of those the client skipped. */
  readonly skipsMore?: number
  /** What ours restores at a target that the client refuses. */
  readonly restores?: Changed
  /** The store holds no checkpoint of this message: ours has nothing to go to either. */
  readonly noCheckpoint?: true
}

const followedLink: Difference = {
  reason: 'no record says where the folder link alias led, so elsewhere/r.txt is not written through it (section 4, rule 2)',
  leaves: ['elsewhere/r.txt'],
  skipsMore: 1,
}
const unwritten: Difference = { reason: 'the client ended before it wrote this checkpoint (section 2, out of order)', noCheckpoint: true }

function text(content: string): OracleNode {
  return { type: 'file', mode: '644', sha256: createHash('sha256').update(content).digest('hex'), size: content.length, nlink: 1 }
}

/** A checkpoint on a dead branch: the client refuses it, ours knows what the message before it had written. */
function deadBranch(content: string): Difference {
  return { reason: 'off the active branch (section 8)', restores: { 'project/a.txt': text(content) } }
}

const differences: Readonly<Record<string, Difference>> = {
  '2.1.112/table-case2 m5': unwritten,
  '2.1.112/table-lim1 m5': unwritten,
  '2.1.332/rewound p2': deadBranch('A1\n'),
  '2.1.332/rewound p3': deadBranch('A2\n'),
  '2.1.332/rewound p4': deadBranch('A3\n'),
}

function differenceOf(version: string, scenario: string, prompt: string): Difference | undefined {
  if (scenario === 'links' && (version === '2.0.64' || version === '2.1.112')) return followedLink
  return differences[`${version}/${scenario} ${prompt.split(' ')[0] ?? ''}`]
}

function expectedChanges(target: OracleTarget, difference: Difference | undefined): Changed {
  const left = new Set(difference?.leaves)
  const changed = Object.entries(target.changed).filter(([path]) => !left.has(path))
  return { ...Object.fromEntries(changed), ...difference?.restores }
}

interface Opened {
  readonly store: ReturnType<typeof openClaudeCode>
  readonly reading: SessionReading
  readonly checkpoint: Checkpoint | undefined
}

function open(extracted: ExtractedStore, target: OracleTarget): Opened {
  const store = openClaudeCode(extracted.root, { home: extracted.home, env: {}, platform: 'linux' })
  const ref = store.inventory().sessions.find((session) => session.id === target.session)
  if (ref === undefined) throw new Error(`no session ${target.session}`)
  const reading = store.read(ref, { now })
  return { store, reading, checkpoint: findCheckpoint(reading.history, target.message) }
}

/** The changes that a plan announces, in the words of the oracle. */
function announced(plan: RestorePlan, tree: string): Changed {
  const changed: Changed = {}
  for (const { path, decision } of plan.items) {
    if (decision.action === 'delete') changed[relative(tree, path)] = null
    if (decision.action !== 'restore') continue
    const sha256 = createHash('sha256').update(readFileSync(join(plan.source, decision.backup))).digest('hex')
    changed[relative(tree, path)] = { type: 'file', mode: (decision.mode ?? 0).toString(8), sha256, size: decision.size, nlink: 1 }
  }
  return changed
}

/** The tree that the oracle's changes make of another, times aside; folders that appear on the way are allowed. */
function changedTree(before: Tree, after: Tree, changed: Changed): Tree {
  const expected = new Map<string, TreeNode>(Object.entries(before))
  for (const [path, node] of Object.entries(changed)) {
    expected.delete(path)
    if (node === null) continue
    if (node.type !== 'file') throw new Error(`the oracle makes ${path} a ${node.type}`)
    const { mode = '', nlink = 0, sha256 = '', size = -1 } = node
    expected.set(path, { type: 'file', mtime: '0', mode, nlink, sha256, size })
    const names = path.split('/')
    for (let length = 1; length < names.length; length += 1) {
      const folder = names.slice(0, length).join('/')
      const made = after[folder]
      if (!expected.has(folder) && made?.type === 'folder') expected.set(folder, made)
    }
  }
  return withoutTimes(Object.fromEntries(expected))
}

const stores = corpusStores('claude-code').flatMap(({ version, scenario, oracle }) =>
  oracle === undefined ? [] : [{ version, scenario, targets: (JSON.parse(readFileSync(oracle, 'utf8')) as Oracle).targets }],
)

it('looks at all 237 results of the reference client', () => {
  expect(stores.flatMap((store) => store.targets)).toHaveLength(237)
})

describe.each(stores)('$version/$scenario', ({ version, scenario, targets }) => {
  it.each(targets)('a rewind to "$prompt" does what the reference client did, once, and redo undoes it', async (target) => {
    const difference = differenceOf(version, scenario, target.prompt)
    if (target.outcome === 'refused') expect(difference, 'a refused target needs its reason').toBeDefined()
    const extracted = await extractStore(version, scenario)
    const { tree, root } = extracted
    const { store, reading, checkpoint } = open(extracted, target)
    if (difference?.noCheckpoint === true) {
      expect(checkpoint).toBeUndefined()
      return
    }
    if (checkpoint === undefined) throw new Error('the checkpoint was not found')

    const changes = expectedChanges(target, difference)
    const skipped = target.skipped + (difference?.skipsMore ?? 0)
    const before = snapshotTree(tree)
    const history = snapshotTree(join(root, 'file-history'))
    const options = { home: tree }
    const plan = planRestore(store, reading, checkpoint, options)
    expect(announced(plan, tree)).toEqual(changes)
    expect(plan.items.filter((item) => item.decision.action === 'skip')).toHaveLength(skipped)
    expect(hasAnyChanges(store, reading, checkpoint, options)).toBe(Object.keys(changes).length > 0)
    expect(snapshotTree(tree)).toEqual(before)

    const result = applyRestore(plan, { sidecar: store.sidecar, now })
    expect(result).toMatchObject({ failed: [], rolledBack: false, exitCode: 0 })
    expect(result.skipped).toHaveLength(skipped)
    const after = snapshotTree(tree)
    expect(withoutTimes(after)).toEqual(changedTree(before, after, changes))

    const again = applyRestore(planRestore(store, reading, checkpoint, options), { sidecar: store.sidecar, now })
    expect(again).toMatchObject({ changed: [], failed: [], exitCode: 0 })
    expect(snapshotTree(tree)).toEqual(after)
    expect(hasAnyChanges(store, reading, checkpoint, options)).toBe(false)

    if (Object.keys(changes).length > 0) {
      expect(applyRedo(planRedo(store, reading), { sidecar: store.sidecar, now })).toMatchObject({ failed: [], exitCode: 0 })
    }
    expect(withoutTimes(snapshotTree(tree))).toEqual(withoutTimes(before))
    expect(snapshotTree(join(root, 'file-history'))).toEqual(history)
  })
})
