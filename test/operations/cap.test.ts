import { appendFileSync, existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { NoMatchError, UsageError } from '../../src/model/errors.js'
import { planCap, type CapOptions } from '../../src/operations/cap.js'
import type { Removal } from '../../src/operations/removal/removal.js'
import { resolve } from '../../src/model/resolve.js'
import { corpusStores, extractStore } from '../helpers/corpus.js'
import { carry, daysAgo, iso, keptOf, machineWith, now, openStore, restore, storeTree } from '../helpers/removal.js'
import type { Tree } from '../helpers/tree.js'
import { H, H2, S1, S2, assistantLine, delta, emptyRoot, snap, userLine, writeBackup, writeStoreFile, writeTranscript } from '../helpers/store.js'

const old = { mtime: daysAgo(2) }
const time = iso(daysAgo(2))

function plan(root: string, options: Partial<CapOptions> = {}): Removal {
  return planCap(openStore(root), { quietPeriodMs: 3_600_000, ...options }, { now, machine: machineWith() })
}

function removedNames(removal: Removal): string[] {
  return removal.plan.actions
    .flatMap((action) => (action.kind === 'replace' ? [] : action.items.map((item) => item.path.split('/').at(-1) ?? '')))
    .sort((a, b) => Number(a.split('@v')[1]) - Number(b.split('@v')[1]))
}

function versions(from: number, to: number, hash = H): string[] {
  return Array.from({ length: to - from + 1 }, (_, index) => `${hash}@v${String(from + index)}`)
}

/** `count` checkpoints, one after the other, one edit of one file each: checkpoint k names version k. */
function chain(count: number, parent = ''): string[] {
  return Array.from({ length: count }, (_, index) => index + 1).flatMap((k) => [
    userLine(`u${String(k)}`, { time, parent: k === 1 ? parent : `a${String(k - 1)}` }),
    snap(`u${String(k)}`, { 'a.txt': `${H}@v${String(k)}` }, time),
    assistantLine(`a${String(k)}`, { time, parent: `u${String(k)}` }),
  ])
}

function backups(root: string, names: readonly string[], session = S1): void {
  for (const name of names) writeBackup(root, session, name, name, old)
}

function bytesOf(tree: Tree, path: string): unknown {
  const { sha256, mode, mtime } = tree[path] ?? {}
  return { sha256, mode, mtime }
}

describe('cap', () => {
  it('R35, R36: of 150 checkpoints the newest 100 keep their backups, and version 1 stays', async () => {
    const root = await emptyRoot()
    writeTranscript(root, '-p', S1, chain(150), old)
    backups(root, versions(1, 150))
    const removal = plan(root)
    expect(removedNames(removal)).toEqual(versions(2, 50))
    expect(removal.plan.actions[0]).toMatchObject({ kind: 'trash-backups', session: S1, reason: expect.stringContaining('49 backups') as string })
    await carry(openStore(root), removal)
    expect(readdirSync(join(root, `file-history/${S1}`))).toHaveLength(101)
    // A second run finds nothing more to do.
    expect(plan(root).plan.actions).toEqual([])
  })

  it('R35: snapshot lines without any message count in the order of the file', async () => {
    const root = await emptyRoot()
    writeTranscript(root, '-p', S1, chain(150).filter((line) => line.includes('file-history-snapshot')), old)
    backups(root, versions(1, 150))
    expect(removedNames(plan(root))).toEqual(versions(2, 50))
  })

  it('the exact cap drops nothing, one checkpoint more drops one backup', async () => {
    const root = await emptyRoot()
    writeTranscript(root, '-p', S1, chain(12), old)
    backups(root, versions(1, 12))
    expect(removedNames(plan(root, { max: 12 }))).toEqual([])
    expect(removedNames(plan(root, { max: 11 }))).toEqual([])
    expect(removedNames(plan(root, { max: 10 }))).toEqual([`${H}@v2`])
    expect(removedNames(plan(root, { max: 1 }))).toEqual(versions(2, 11))
  })

  it('transcripts keep their bytes, and every kept checkpoint resolves to the same bytes', async () => {
    const root = await emptyRoot()
    const path = writeTranscript(root, '-p', S1, chain(20), old)
    backups(root, versions(1, 20))
    const before = readFileSync(path)
    const removal = plan(root, { max: 5 })
    const result = await carry(openStore(root), removal)
    expect(readFileSync(path)).toEqual(before)
    for (let k = 16; k <= 20; k += 1) expect(readFileSync(join(root, `file-history/${S1}/${H}@v${String(k)}`), 'utf8')).toBe(`${H}@v${String(k)}`)
    await restore(openStore(root), result.runId)
    expect(readdirSync(join(root, `file-history/${S1}`))).toHaveLength(20)
  })

  it('R33: a backup that a delta names for a kept checkpoint stays, and so does the version 1 that others fall back to', async () => {
    const root = await emptyRoot()
    const lines = [...chain(10), delta('a9', 'u9', 'b.txt', `${H2}@v3`, { time }), delta('a2', 'u2', 'b.txt', `${H2}@v2`, { time })]
    writeTranscript(root, '-p', S1, lines, old)
    backups(root, [...versions(1, 10), `${H2}@v2`, `${H2}@v3`])
    expect(removedNames(plan(root, { max: 3 }))).toEqual([`${H}@v2`, `${H2}@v2`, ...versions(3, 7)])
  })

  it('R37, R38: an update counts for the checkpoint it restates, and what it replaced stays in use with it', async () => {
    const root = await emptyRoot()
    const lines = [...chain(10)]
    lines.push(snap('u9', { 'a.txt': `${H}@v9`, 'b.txt': `${H2}@v4` }, time, { update: true, outer: 'a9' }))
    lines.push(snap('u9', { 'a.txt': `${H}@v9` }, time, { update: true, outer: 'a9' }))
    writeTranscript(root, '-p', S1, lines, old)
    backups(root, [...versions(1, 10), `${H2}@v4`])
    // u9 is kept: what an earlier line of it named stays too.
    expect(removedNames(plan(root, { max: 2 }))).toEqual(versions(2, 8))
    expect(removedNames(plan(root, { max: 1 }))).toContain(`${H2}@v4`)
  })

  it('R39: a checkpoint that is recorded twice keeps the backups of both', async () => {
    const root = await emptyRoot()
    writeTranscript(root, '-p', S1, [...chain(10), snap('u10', { 'a.txt': `${H}@v3` }, time)], old)
    backups(root, versions(1, 10))
    // u10 names v10 and, later, v3: the fold has the last one, a removal counts both.
    expect(removedNames(plan(root, { max: 1 }))).toEqual(versions(2, 9).filter((name) => name !== `${H}@v3`))
  })

  it('R40: a backup that no line names is not removed', async () => {
    const root = await emptyRoot()
    writeTranscript(root, '-p', S1, chain(10), old)
    backups(root, [...versions(1, 10), `${H2}@v7`])
    expect(removedNames(plan(root, { max: 1 }))).not.toContain(`${H2}@v7`)
  })

  it('a backup that a line of no known checkpoint names is not removed', async () => {
    const root = await emptyRoot()
    writeTranscript(root, '-p', S1, [...chain(10), delta('x', 'nobody', 'c.txt', `${H}@v3`, { time })], old)
    backups(root, versions(1, 10))
    expect(removedNames(plan(root, { max: 1 }))).toEqual(versions(2, 9).filter((name) => name !== `${H}@v3`))
  })

  it('a dead branch keeps its newest checkpoints too', async () => {
    const root = await emptyRoot()
    // u1 … u6, then a rewind to u2: r3 … r6 hang off a2. Side ends like a late notice make no branch.
    const rewound = [3, 4, 5, 6].flatMap((k) => [
      userLine(`r${String(k)}`, { time, parent: k === 3 ? 'a2' : `b${String(k - 1)}` }),
      snap(`r${String(k)}`, { 'a.txt': `${H}@v${String(k + 4)}` }, time),
      assistantLine(`b${String(k)}`, { time, parent: `r${String(k)}` }),
    ])
    const side = userLine('side', { time, parent: 'a1' })
    writeTranscript(root, '-p', S1, [...chain(6), ...rewound, side], old)
    backups(root, versions(1, 10))
    // The newest two of the session: r5, r6 (v9, v10); of the dead branch: u5, u6 (v5, v6).
    expect(removedNames(plan(root, { max: 2 }))).toEqual([2, 3, 4, 7, 8].map((k) => `${H}@v${String(k)}`))
    expect(removedNames(plan(root, { max: 3 }))).toEqual([2, 3, 7].map((k) => `${H}@v${String(k)}`))
  })

  it('a chain that a damaged parent breaks keeps what is on both sides of the break', async () => {
    const root = await emptyRoot()
    const lines = chain(8).filter((line) => !line.includes('"uuid":"a4"'))
    writeTranscript(root, '-p', S1, lines, old)
    backups(root, versions(1, 8))
    expect(removedNames(plan(root, { max: 1 }))).toEqual([2, 3, 5, 6, 7].map((k) => `${H}@v${String(k)}`))
  })

  it('R59: the same names in another session keep their bytes', async () => {
    const root = await emptyRoot()
    for (const id of [S1, S2]) writeTranscript(root, '-p', id, chain(10), old)
    backups(root, versions(1, 10))
    for (const name of versions(1, 10)) writeBackup(root, S2, name, 'other', old)
    const removal = plan(root, { max: 2, sessions: [S1.slice(0, 6)] })
    await carry(openStore(root), removal)
    expect(readdirSync(join(root, `file-history/${S1}`))).toHaveLength(3)
    for (const name of versions(1, 10)) expect(readFileSync(join(root, `file-history/${S2}/${name}`), 'utf8')).toBe('other')
  })
})

describe('what cap leaves alone', () => {
  async function tenCheckpoints(lines: readonly string[] = [], mtime = daysAgo(2)): Promise<string> {
    const root = await emptyRoot()
    writeTranscript(root, '-p', S1, [...chain(10), ...lines], { mtime })
    backups(root, versions(1, 10))
    return root
  }

  it('R74: a damaged session, with its reason', async () => {
    const root = await tenCheckpoints([`{"type":"pr-link","sessi${delta('a2', 'u2', 'b.txt', `${H2}@v1`, { time })}`])
    expect(plan(root, { max: 1 }).plan.actions).toEqual([])
    expect(keptOf(plan(root, { max: 1 }))[S1]).toContain('damaged')
  })

  it('R104: a live session, and one within the quiet period', async () => {
    const root = await tenCheckpoints()
    writeStoreFile(root, 'sessions/4242.json', JSON.stringify({ pid: 4242, sessionId: S1, procStart: '77', pidDomain: 'linux:test:pid:[1]' }))
    const live = planCap(openStore(root), { max: 1, quietPeriodMs: 0 }, { now, machine: machineWith({ 4242: '77' }) })
    expect(keptOf(live)[S1]).toContain('open in process 4242')
    const quiet = await tenCheckpoints([], now - 60_000)
    expect(keptOf(plan(quiet, { max: 1 }))[S1]).toContain('quiet period')
    expect(plan(quiet, { max: 1, quietPeriodMs: 0 }).plan.actions).toHaveLength(1)
  })

  it('R113: a session with lines of a newer format', async () => {
    const root = await tenCheckpoints(['{"type":"file-history-manifest","backupFileName":"x"}'])
    expect(keptOf(plan(root, { max: 1 }))[S1]).toContain('newer-format')
  })

  it('sessions and backups that something else protects', async () => {
    const root = await tenCheckpoints()
    expect(keptOf(plan(root, { max: 1, protectedSessions: new Map([[S1, 'verify found x']]) }))[S1]).toContain('verify found x')
    expect(removedNames(plan(root, { max: 1, spared: () => new Set([`${H}@v4`]) }))).not.toContain(`${H}@v4`)
  })

  it('a session whose transcript is appended to between plan and act', async () => {
    const root = await tenCheckpoints()
    const removal = plan(root, { max: 1 })
    appendFileSync(join(root, `projects/-p/${S1}.jsonl`), `${snap('u10', { 'a.txt': `${H}@v3` }, time, { update: true })}\n`)
    const result = await carry(openStore(root), removal)
    expect(result.done).toEqual([])
    expect(result.kept[0]?.reason).toContain('written to since')
    expect(existsSync(join(root, `file-history/${S1}/${H}@v3`))).toBe(true)
  })

  it('everything that does not belong to the project that was named', async () => {
    const root = await tenCheckpoints()
    expect(plan(root, { max: 1, project: '/home/u/project' }).plan.actions).toHaveLength(1)
    expect(() => plan(root, { max: 1, project: '/home/u' })).toThrow(NoMatchError)
    expect(() => plan(root, { max: 0 })).toThrow(UsageError)
  })
})

describe('every store of the corpus', () => {
  const stores = corpusStores('claude-code').map(({ version, scenario }) => [version, scenario] as const)

  it.each(stores)('%s %s: after a cap of 3 every target of the official client among the newest 3 resolves to the same bytes', async (version, scenario) => {
    const { root, oracle } = await extractStore(version, scenario)
    const store = openStore(root)
    const before = storeTree(root)
    const later = Date.parse('2028-01-01T00:00:00.000Z')
    const removal = planCap(store, { max: 3, quietPeriodMs: 0 }, { now: later, machine: machineWith() })
    const result = await carry(store, removal, { at: later })
    expect(result.errors).toEqual([])
    for (const ref of store.inventory().sessions) {
      const { history } = store.read(ref, { now: later })
      for (const checkpoint of history.checkpoints.slice(-3)) {
        for (const resolution of resolve(history, checkpoint).values()) {
          if (resolution.state !== 'backup') continue
          const path = `file-history/${ref.id}/${resolution.name}`
          expect(bytesOf(storeTree(root), path)).toEqual(bytesOf(before, path))
        }
      }
      const restored = (oracle?.targets ?? []).filter(({ session, outcome }) => session === ref.id && outcome === 'restored').slice(-3)
      for (const { message } of restored) expect(history.checkpoints.map(({ id }) => id)).toContain(message)
    }
    if (removal.plan.actions.length > 0) await restore(store, result.runId)
    expect(storeTree(root)).toEqual(before)
  })

  it('2.1.332 rewound: the newest checkpoints of the dead branch keep their backups', async () => {
    const { root } = await extractStore('2.1.332', 'rewound')
    const store = openStore(root)
    const [ref] = store.inventory().sessions
    if (ref === undefined) throw new Error('the store has no session')
    const { history } = store.read(ref, { now })
    const active = new Set(store.messages(ref).filter((message) => message.active).map(({ id }) => id))
    const dead = history.checkpoints.filter(({ id }) => !active.has(id))
    expect(dead.length).toBeGreaterThan(0)
    const newestDead = dead.at(-1)
    const removal = planCap(store, { max: 1, quietPeriodMs: 0 }, { now: Date.parse('2028-01-01T00:00:00.000Z'), machine: machineWith() })
    const gone = new Set(removedNames(removal))
    expect(gone.size).toBeGreaterThan(0)
    for (const checkpoint of [newestDead, history.checkpoints.at(-1)]) {
      if (checkpoint === undefined) continue
      for (const resolution of resolve(history, checkpoint).values()) {
        if (resolution.state === 'backup') expect(gone.has(resolution.name)).toBe(false)
      }
    }
  })
})
