import { lstatSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Checkpoint } from '../../../src/model/history.js'
import { applyRestore } from '../../../src/operations/restore/apply.js'
import { hasAnyChanges, planRestore, type RestorePlan } from '../../../src/operations/restore/plan.js'
import { applyRedo, planRedo } from '../../../src/operations/restore/redo.js'
import { dshStores, extractDsh, type DshFile, type DshFixture, type DshRestore } from '../../helpers/dsh-corpus.js'
import { snapshotTree, withoutTimes } from '../../helpers/tree.js'

const now = Date.parse('2026-11-30T12:00:00Z')

/** What ours does otherwise than the newest reader, each with its reason. Nothing else may differ. */
interface Difference {
  readonly reason: string
  /** Paths that the reader changed and ours leaves alone. */
  readonly leaves?: readonly string[]
  /** Paths that the reader passes over without a word, and ours calls unknown. */
  readonly unknown?: readonly string[]
}

const differences: Readonly<Record<string, Difference>> = {
  'foreign/third-party-writer @1790000000000': {
    reason: 'another writer says that the file existed and not what was in it; the reader takes that for "created" and deletes (section 6.3)',
    leaves: ['unknown.txt'],
    unknown: ['unknown.txt'],
  },
  'gen1e-string-format-marker/malformed-records @5': {
    reason: 'the reader ignores a record whose content it cannot read; ours says that the file is unknown (section 8.2)',
    unknown: ['missing.txt', 'num.txt', 'obj.txt'],
  },
  'gen2-bytes/integrity-failures @5': {
    reason: 'the reader ignores a record whose fields contradict each other; ours says that the file is unknown (section 8.2)',
    unknown: ['nulllossy.txt', 'nullsize.txt', 'wrongname.txt'],
  },
}

const targets = dshStores().flatMap(({ name, expected }) =>
  expected.restores.filter(({ reader }) => reader === 'latest').map((restore) => ({ name, restore, key: `${name} @${String(restore.target)}` })),
)

function checkpointOf({ store, session }: DshFixture, target: number): Checkpoint {
  const found = store.checkpointAt?.(session, store.read(session, { now }), String(target))
  if (found === undefined) throw new Error('the checkpoint was not found')
  return found
}

/** Paths of a plan by what happens to them, relative to the workspace. */
function sorted(plan: RestorePlan, workspace: string, action: string): string[] {
  return plan.items.flatMap(({ path, decision }) => (decision.action === action ? [relative(workspace, path)] : [])).sort()
}

function changesOf(restore: DshRestore, difference: Difference | undefined): Record<string, DshFile | null> {
  const left = new Set(difference?.leaves)
  return Object.fromEntries(Object.entries(restore.changedFiles).filter(([path]) => !left.has(path)))
}

function contentOf({ utf8, base64 }: DshFile): Buffer {
  return base64 === undefined ? Buffer.from(utf8 ?? '', 'utf8') : Buffer.from(base64, 'base64')
}

it('looks at all 72 results of the newest reader', () => {
  expect(targets).toHaveLength(72)
  expect(Object.keys(differences).filter((key) => !targets.some((target) => target.key === key))).toEqual([])
})

describe.each(targets)('$key', ({ name, restore, key }) => {
  it.runIf(restore.error !== undefined)('is refused as a whole, and nothing changes', async () => {
    const fixture = await extractDsh(name)
    const { store, session, folder } = fixture
    const before = snapshotTree(folder)
    const reading = store.read(session, { now })
    expect(() => store.checkpointAt?.(session, reading, String(restore.target))).toThrow(expect.objectContaining({ code: 'NEWER_FORMAT', exitCode: 12 }) as Error)
    expect(reading.findings.map(({ id }) => id)).toContain('newer-format')
    for (const checkpoint of reading.history.checkpoints.filter(({ id }) => Number(id) <= restore.target)) {
      expect(planRestore(store, reading, checkpoint, { home: folder }).items.filter(({ decision }) => decision.action !== 'unknown')).toEqual([])
    }
    expect(snapshotTree(folder)).toEqual(before)
  })

  it.runIf(restore.error === undefined)('does what the newest reader did, once, and redo undoes it', async () => {
    const difference = differences[key]
    const fixture = await extractDsh(name)
    const { store, session, folder, workspace, root } = fixture
    const reading = store.read(session, { now })
    const checkpoint = checkpointOf(fixture, restore.target)
    const before = snapshotTree(workspace)
    const kept = snapshotTree(root)
    const options = { home: folder }
    const changes = changesOf(restore, difference)
    const failed = (restore.outcome?.failed ?? []).map(({ path }) => path)

    const plan = planRestore(store, reading, checkpoint, options)
    expect(sorted(plan, workspace, 'delete')).toEqual(Object.keys(changes).filter((path) => changes[path] === null).sort())
    expect(sorted(plan, workspace, 'restore')).toEqual(Object.keys(changes).filter((path) => changes[path] !== null).sort())
    expect(sorted(plan, workspace, 'skip')).toEqual([...(restore.outcome?.skipped ?? [])].sort())
    expect([...sorted(plan, workspace, 'fail'), ...sorted(plan, workspace, 'unknown')].sort()).toEqual([...failed, ...(difference?.unknown ?? [])].sort())
    expect(hasAnyChanges(store, reading, checkpoint, options)).toBe(Object.keys(changes).length > 0)
    expect(snapshotTree(workspace)).toEqual(before)

    // The reader goes on when a path fails; ours does so only when that is asked for.
    const blocked = failed.length > 0 || difference?.unknown !== undefined
    if (blocked) expect(applyRestore(plan, { sidecar: store.sidecar, now })).toMatchObject({ changed: [], exitCode: 3 })
    const result = applyRestore(plan, { sidecar: store.sidecar, now, partial: blocked })
    expect(result).toMatchObject({ rolledBack: false, exitCode: blocked ? 3 : 0 })
    for (const [path, file] of Object.entries(changes)) {
      if (file === null) {
        expect(lstatSync(join(workspace, path), { throwIfNoEntry: false })).toBeUndefined()
        continue
      }
      expect(readFileSync(join(workspace, path))).toEqual(contentOf(file))
      if (file.mode !== undefined) expect((lstatSync(join(workspace, path)).mode & 0o7777).toString(8)).toBe(file.mode)
    }
    const after = snapshotTree(workspace)
    const untouched = (tree: typeof before): unknown => Object.fromEntries(Object.entries(withoutTimes(tree)).filter(([path]) => !(path in changes)))
    expect(untouched(after)).toEqual(untouched(before))

    const again = planRestore(store, reading, checkpoint, options)
    expect([...sorted(again, workspace, 'restore'), ...sorted(again, workspace, 'delete')]).toEqual([])
    if (Object.keys(changes).length > 0) {
      expect(applyRedo(planRedo(store, reading), { sidecar: store.sidecar, now })).toMatchObject({ failed: [], exitCode: 0 })
    }
    expect(withoutTimes(snapshotTree(workspace))).toEqual(withoutTimes(before))
    expect(snapshotTree(root)).toEqual(kept)
  })
})
