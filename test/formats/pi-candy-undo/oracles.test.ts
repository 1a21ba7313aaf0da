import { createHash, randomUUID } from 'node:crypto'
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openPiCandyUndo } from '../../../src/formats/pi-candy-undo/index.js'
import type { Store } from '../../../src/formats/format.js'
import { thisMachine } from '../../../src/fs/machine.js'
import { RewindAdminError } from '../../../src/model/errors.js'
import { findCheckpoint } from '../../../src/model/resolve.js'
import type { SessionReading } from '../../../src/model/session.js'
import { applyRestore } from '../../../src/operations/restore/apply.js'
import { hasAnyChanges, planRestore } from '../../../src/operations/restore/plan.js'
import { applyRedo, planRedo } from '../../../src/operations/restore/redo.js'
import { openRecorder } from '../../../src/recorder/recorder.js'
import { extractPi, piOracle, piScenarios, type PiNode, type PiRestore, type PiStore } from '../../helpers/pi-corpus.js'
import { snapshotTree } from '../../helpers/tree.js'

const now = Date.parse('2026-12-24T12:00:00Z')

/** What ours does otherwise than the plugin, each with its reason. Nothing else may differ. */
interface Difference {
  readonly reason: string
  /** Paths that ours leaves as they are, whatever the plugin did to them. */
  readonly leaves?: readonly string[]
  /** Paths that ours brings to another state than the plugin. */
  readonly restores?: Readonly<Record<string, PiNode | null>>
  /** Ours does nothing at all without `--partial`, since a path cannot be restored. */
  readonly refused?: string
}

function text(content: string, mode = '0644'): PiNode {
  return { type: 'file', mode, size: content.length, sha256: createHash('sha256').update(content).digest('hex') }
}

function differenceOf(scenario: string, { session, target }: PiRestore): Difference | undefined {
  const number = session.slice(-3)
  switch (scenario) {
    case 'f3-after-failed-undo':
      return { reason: 'not all or nothing: the plugin went on after a failure (weakness 21)' }
    case 'g-links':
      return {
        reason: 'no record says where the folder link shared led, so nothing is written through it (weakness 23)',
        leaves: ['/home/dev3/outside/d/via.txt', '/home/dev3/outside/e/via.txt'],
      }
    case 'm-odd-names':
      return { reason: 'C:/drive.txt is a Windows path, which stands for no file here (weakness 16)', leaves: ['C:/drive.txt'], refused: 'Windows path' }
    case 'm2-name-constructor':
      return { reason: 'a file named constructor is a file like any other (weakness 17)', restores: { constructor: text('c0\n') } }
    case 'n-damaged':
      return number === '167' && target.index === 2 ? { reason: 'a backup is missing', refused: 'missing' } : undefined
    default:
      return undefined
  }
}

/** What stands below the project, and outside of it, in the words of the oracle. */
function treeOf({ project, outside }: PiStore): Record<string, PiNode> {
  const tree: Record<string, PiNode> = {}
  const visit = (path: string, key: string): void => {
    for (const name of readdirSync(path)) {
      const inside = join(path, name)
      const own = key === '' ? name : `${key}/${name}`
      const stat = lstatSync(inside)
      const mode = (stat.mode & 0o7777).toString(8).padStart(4, '0')
      if (stat.isSymbolicLink()) tree[own] = { type: 'symlink', mode, target: readlinkSync(inside) }
      else if (stat.isDirectory()) {
        tree[own] = { type: 'dir', mode }
        visit(inside, own)
      } else {
        const sha256 = createHash('sha256').update(readFileSync(inside)).digest('hex')
        tree[own] = { type: 'file', mode, size: stat.size, sha256, ...(stat.nlink > 1 ? { nlink: stat.nlink } : {}) }
      }
    }
  }
  visit(project, '')
  if (existsSync(outside)) visit(outside, '/home/dev3/outside')
  return tree
}

function open({ root, sessions, base }: PiStore, session: string): { store: Store; reading: SessionReading } {
  const store = openPiCandyUndo(root, { home: base, env: {}, platform: 'linux', conversations: sessions })
  const ref = store.inventory().sessions.find(({ id }) => id === session)
  if (ref === undefined) throw new Error(`no session ${session}`)
  return { store, reading: store.read(ref, { now }) }
}

const scenarios = piScenarios().map((scenario) => ({ scenario, restores: piOracle(scenario).restores.filter(({ target }) => target.damaged !== true) }))

it('looks at all 98 restores of the plugin', () => {
  expect(scenarios.flatMap(({ restores }) => restores)).toHaveLength(98)
})

describe.each(scenarios.filter(({ restores }) => restores.length > 0))('$scenario', ({ scenario, restores }) => {
  it.each(restores)('a rewind of $session to snapshot $target.index does what the plugin did, once, and redo undoes it', async (restore) => {
    rewindsAsThePlugin(await extractPi(scenario), scenario, restore)
  })

  // One message of each session: what a recorder adds is the same for all.
  const newest = restores.filter(({ session }, index) => restores.findLastIndex((other) => other.session === session) === index)
  it.each(newest)('the same after our recorder went on with $session, to snapshot $target.index', async (restore) => {
    const extracted = await extractPi(scenario)
    const recorded = await goOn(extracted, restore)
    expect(recorded).toBe(!readOnly.has(`${scenario} ${restore.session.slice(-3)}`))
    rewindsAsThePlugin(extracted, scenario, restore)
  })
})

/** Sessions whose state is not whole: our recorder does not go on with them. */
const readOnly: ReadonlySet<string> = new Set(['n-damaged 166'])

/** Our recorder begins a turn and looks after a file that does not exist. Returns false where the session is read-only. */
async function goOn(extracted: PiStore, { session, cwd }: PiRestore): Promise<boolean> {
  const place = cwd.replace('/home/dev3', extracted.base)
  const clock = { now: () => now - 60_000, uuid: randomUUID }
  try {
    const recorder = openRecorder({ root: extracted.root, sessionId: session, cwd: place, ...clock, process: { pid: process.pid, host: 'test', table: thisMachine() } })
    await recorder.sessionStart()
    await recorder.beginTurn('continued')
    await recorder.beforeEdit('never-made.txt')
    await recorder.endSession()
    return true
  } catch (error) {
    if (error instanceof RewindAdminError && error.code === 'LOCKED') return false
    throw error
  }
}

function rewindsAsThePlugin(extracted: PiStore, scenario: string, restore: PiRestore): void {
  const difference = differenceOf(scenario, restore)
  const before = treeOf(extracted)
  const history = snapshotTree(extracted.root)
  const { store, reading } = open(extracted, restore.session)
  const checkpoint = findCheckpoint(reading.history, restore.target.id)
  if (checkpoint === undefined) throw new Error('the checkpoint was not found')
  expect(reading.project).toBe(restore.cwd.replace('/home/dev3', extracted.base))

  const expected = expectedTree(before, restore, difference)
  const options = { home: extracted.base }
  const apply = { sidecar: store.sidecar, now }
  const plan = planRestore(store, reading, checkpoint, options)
  expect(treeOf(extracted)).toEqual(before)
  if (difference?.refused !== undefined) {
    const refused = applyRestore(plan, apply)
    expect(refused.failed.map(({ reason }) => reason).join()).toContain(difference.refused)
    expect(treeOf(extracted)).toEqual(before)
  }
  const result = applyRestore(plan, { ...apply, partial: difference?.refused !== undefined })
  expect(result.rolledBack).toBe(false)
  expect(treeOf(extracted)).toEqual(expected)

  const again = applyRestore(planRestore(store, reading, checkpoint, options), { ...apply, partial: true })
  expect(again.changed).toEqual([])
  expect(hasAnyChanges(store, reading, checkpoint, options)).toBe(false)
  if (result.changed.length > 0) expect(applyRedo(planRedo(store, reading), apply)).toMatchObject({ failed: [], exitCode: 0 })
  expect(treeOf(extracted)).toEqual(before)
  expect(snapshotTree(extracted.root)).toEqual(history)
}

function expectedTree(before: Readonly<Record<string, PiNode>>, { tree }: PiRestore, difference: Difference | undefined): Record<string, PiNode> {
  const expected: Record<string, PiNode> = { ...tree }
  for (const path of difference?.leaves ?? []) {
    Reflect.deleteProperty(expected, path)
    const node = before[path]
    if (node !== undefined) expected[path] = node
  }
  for (const [path, node] of Object.entries(difference?.restores ?? {})) {
    Reflect.deleteProperty(expected, path)
    if (node !== null) expected[path] = node
  }
  return expected
}

describe('the messages of a conversation', () => {
  it.each(piScenarios())('of %s mean the snapshots that the plugin means', async (scenario) => {
    const extracted = await extractPi(scenario)
    for (const { session, entryId, text: words, resolvesTo } of extracted.oracle.messages) {
      const { store, reading } = open(extracted, session)
      if (reading.history.checkpoints.length === 0) continue
      // The plugin cannot read this state at all; ours reads the snapshots that are whole, and says nothing of the others.
      const known = session.endsWith('166') ? (entryId === 'aaaa0001' ? undefined : reading.history.checkpoints.find(({ aliases }) => aliases?.[0] === entryId)?.id) : resolvesTo?.id
      expect(findCheckpoint(reading.history, entryId)?.id, `${session} ${entryId}`).toBe(known)
      const ref = { id: session, members: [] }
      expect(store.messages(ref).find(({ id }) => id === entryId)).toMatchObject({ text: words, active: true })
    }
  })
})
