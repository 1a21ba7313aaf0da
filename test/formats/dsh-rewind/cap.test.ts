import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openDshRewind } from '../../../src/formats/dsh-rewind/index.js'
import { resolve } from '../../../src/model/resolve.js'
import { cliIn, now, type Cli } from '../../cli/world.js'
import { ageAll, dshSession, DshStore } from '../../helpers/dsh.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { snapshotTree } from '../../helpers/tree.js'

const dayMs = 86_400_000

interface World {
  readonly home: string
  readonly dsh: DshStore
  readonly cli: Cli
  /** Runs the cap after the session was quiet for two days. */
  cap(max?: number): ReturnType<Cli['json']>
  groups(): number[]
  /** What each path is at an anchor: its bytes as text, `null`, or `undefined` when nobody knows. */
  at(anchor: number): Record<string, string | null | undefined>
}

async function world(): Promise<World> {
  const home = await temporaryFolder()
  const dsh = new DshStore(join(home, '.dsh'))
  const cli = cliIn(home)
  return {
    home,
    dsh,
    cli,
    cap: (max) => {
      ageAll(dsh.folder(), now - 2 * dayMs)
      return cli.json('cap', '--apply', ...(max === undefined ? [] : ['--max', String(max)]))
    },
    groups: () => readdirSync(dsh.folder()).filter((name) => /^\d+$/.test(name)).map(Number).sort((a, b) => a - b),
    at: (anchor) => {
      const store = openDshRewind(dsh.root, { home, env: {}, platform: 'linux' })
      const session = { id: dshSession, members: [] }
      const reading = store.read(session, { now })
      const checkpoint = store.checkpointAt?.(session, reading, String(anchor))
      if (checkpoint === undefined) return {}
      return Object.fromEntries(
        [...resolve(reading.history, checkpoint)].map(([path, found]) => {
          if (found.state !== 'backup') return [path, found.state === 'absent' ? null : undefined]
          const inline = store.inlineBytes?.(dshSession, found.name)
          return [path, (inline ?? readFileSync(join(dsh.folder(), found.name))).toString('utf8')]
        }),
      )
    },
  }
}

describe('cap', () => {
  it('R36 for this format: keeps the 100 highest groups, and the state at each of them stays', async () => {
    const each = await world()
    each.dsh.markers()
    let previous = ''
    for (let group = 1; group <= 104; group += 1) {
      if (group % 10 === 1) previous = each.dsh.bytes({ anchor: group, call: `r${String(group)}`, file: '/p/f', before: `v${String(group)}`, time: group })
      else previous = each.dsh.link({ anchor: group, call: `l${String(group)}`, file: '/p/f', ref: previous, time: group })
    }
    const before = Array.from({ length: 100 }, (_, index) => each.at(index + 5))
    const report = await each.cap()
    expect(report).toMatchObject({ applied: true, exitCode: 0, summary: { sessions: 1, max: 100, overCap: 1 } })
    expect(each.groups()).toEqual(Array.from({ length: 100 }, (_, index) => index + 5))
    expect(Array.from({ length: 100 }, (_, index) => each.at(index + 5))).toEqual(before)
    // The one link that led out of the kept groups is a record of its own, with the bytes of the chain's end.
    const [name = ''] = readdirSync(join(each.dsh.folder(), '5')).filter((file) => file.endsWith('.json'))
    expect(JSON.parse(readFileSync(join(each.dsh.folder(), '5', name), 'utf8'))).toEqual({ store: 2, callId: 'l5', file: '/p/f', time: 5, blob: name.replace('.json', '.before'), size: 2 })
    expect(await each.cap()).toMatchObject({ plan: [] })
  })

  it('brings everything back from the trash', async () => {
    const each = await world()
    each.dsh.markers()
    const real = each.dsh.bytes({ anchor: 1, call: 'a', file: '/p/f', before: 'A', time: 1 })
    each.dsh.link({ anchor: 2, call: 'b', file: '/p/f', ref: real, time: 2 })
    ageAll(each.dsh.folder(), now - 2 * dayMs)
    const before = snapshotTree(each.dsh.folder())
    const { runId = '' } = await each.cap(1)
    expect(each.groups()).toEqual([2])
    await each.cli.json('trash', 'restore', runId)
    const after = snapshotTree(each.dsh.folder())
    const files = (tree: typeof before): unknown => Object.fromEntries(Object.entries(tree).filter(([path, { type }]) => type === 'file' && !path.endsWith('b-3e23e816.before')))
    expect(files(after)).toEqual(files(before))
  })

  it('14: leaves one real record of three equal ones', async () => {
    const each = await world()
    each.dsh.markers()
    const one = each.dsh.bytes({ anchor: 1, call: 'a', file: '/p/f', before: 'A', time: 1, mode: 0o755 })
    const two = each.dsh.link({ anchor: 2, call: 'b', file: '/p/f', ref: one, time: 2, parent: '/p' })
    each.dsh.link({ anchor: 3, call: 'c', file: '/p/f', ref: two, time: 3, parent: '/p' })
    await each.cap(1)
    expect(each.groups()).toEqual([3])
    expect(each.at(1)).toEqual({ '/p/f': 'A' })
    // 19 of the faults: the pin stays; a link had no mode, and gets none.
    expect(JSON.parse(readFileSync(join(each.dsh.folder(), '3', 'c-2e7d2c03.json'), 'utf8'))).toEqual({ store: 2, callId: 'c', file: '/p/f', time: 3, parent: '/p', blob: 'c-2e7d2c03.before', size: 1 })
  })

  it('leaves a session of the string era one that its builds can read', async () => {
    const each = await world()
    each.dsh.put('format', '3')
    const one = each.dsh.text({ anchor: 1, call: 'call_01', file: '/p/f', before: 'A\ufffd', time: 1 })
    const gone = each.dsh.text({ anchor: 1, call: 'call_02', file: '/p/n', before: null, time: 2 })
    each.dsh.link({ anchor: 2, call: 'call_03', file: '/p/f', ref: one, time: 3, era: 1 })
    each.dsh.link({ anchor: 2, call: 'call_04', file: '/p/n', ref: gone, time: 4, era: 1 })
    await each.cap(1)
    const read = (name: string): unknown => JSON.parse(readFileSync(join(each.dsh.folder(), '2', name), 'utf8'))
    expect(read('call_03.json')).toEqual({ callId: 'call_03', anchorSeq: 2, path: '/p/f', before: 'A\ufffd', time: 3 })
    expect(read('call_04.json')).toEqual({ callId: 'call_04', anchorSeq: 2, path: '/p/n', before: null, time: 4 })
  })

  it('R52: keeps the mark of lost bytes, and the name without digest, when a byte store takes over a link of the string era', async () => {
    const each = await world()
    each.dsh.markers()
    const one = each.dsh.text({ anchor: 1, call: 'call_01', file: '/p/f', before: 'A\ufffd', time: 1 })
    each.dsh.link({ anchor: 2, call: 'call_02', file: '/p/f', ref: one, time: 2, era: 1 })
    await each.cap(1)
    expect(JSON.parse(readFileSync(join(each.dsh.folder(), '2', 'call_02.json'), 'utf8'))).toEqual({ store: 2, callId: 'call_02', file: '/p/f', time: 2, lossy: true, blob: 'call_02.before', size: 4 })
    expect(readFileSync(join(each.dsh.folder(), '2', 'call_02.before'))).toEqual(Buffer.from('41efbfbd', 'hex'))
  })

  it('R114: keeps the group that an open journal names and a journal that cannot be read; finished ones go with their rescue folder', async () => {
    const each = await world()
    each.dsh.markers()
    for (let group = 1; group <= 120; group += 1) each.dsh.bytes({ anchor: group, call: `c${String(group)}`, file: '/p/f', before: 'x', time: group })
    const journal = (id: string, state: string, blob: string): unknown => ({
      version: 2,
      id,
      sessionId: dshSession,
      targetSeq: 119,
      startedAt: 1,
      state,
      actions: [{ path: '/p/f', action: 'restore', before: { blob }, rescue: { blob: `rescue/${id}/0.before` }, done: false }],
    })
    each.dsh.putJson('journal-op-1.json', journal('op-1', 'running', '3/x.before'))
    each.dsh.put('journal-op-2.json', '{')
    each.dsh.putJson('journal-op-3.json', journal('op-3', 'completed', '4/x.before'))
    for (const id of ['op-1', 'op-3']) each.dsh.put(`rescue/${id}/0.before`, 'x')
    const report = await each.cap()
    expect(each.groups()).toEqual([3, ...Array.from({ length: 100 }, (_, index) => index + 21)])
    expect(readdirSync(each.dsh.folder()).filter((name) => name.includes('journal'))).toEqual(['journal-op-1.json', 'journal-op-2.json'])
    expect(readdirSync(join(each.dsh.folder(), 'rescue'))).toEqual(['op-1'])
    expect(report.exitCode).toBe(0)
    expect((await each.cli.json('verify')).findings.map(({ id }) => id)).toEqual(expect.arrayContaining(['open-journal', 'damaged-journal']))
  })

  it('keeps what a damaged record of a kept group may name', async () => {
    const each = await world()
    each.dsh.markers()
    for (const group of [1, 2, 3]) each.dsh.bytes({ anchor: group, call: `c${String(group)}`, file: `/p/${String(group)}`, before: 'x', time: group })
    each.dsh.put('3/half.json', '{"store":2,"callId":"h","file":"/p/f","ref":"1/c1-')
    each.dsh.put('3/whole.json', '{"store":2,"callId":"h","file":"/p/f","ref":"2/c2-0.json","ti')
    await each.cap(1)
    expect(each.groups()).toEqual([2, 3])
  })

  it('keeps a group whose content a kept link needs and nobody can read', async () => {
    const each = await world()
    each.dsh.markers()
    const one = each.dsh.bytes({ anchor: 1, call: 'a', file: '/p/f', before: 'A', time: 1 })
    each.dsh.link({ anchor: 2, call: 'b', file: '/p/f', ref: one, time: 2 })
    rmSync(join(each.dsh.folder(), one.replace('.json', '.before')))
    await each.cap(1)
    expect(each.groups()).toEqual([1, 2])
  })

  it.each([
    ['a file of somebody else', (dsh: DshStore) => { dsh.put('1/notes.txt', 'mine') }],
    ['a record of another writer', (dsh: DshStore) => { dsh.putJson('1/x.json', { version: 2, callId: 'x', anchorSeq: 1, path: '/p/x', before: 'x', existed: true, time: 1 }) }],
  ])('R14: leaves a group alone with %s', async (_, add) => {
    const each = await world()
    each.dsh.markers()
    for (const group of [1, 2]) each.dsh.bytes({ anchor: group, call: `c${String(group)}`, file: '/p/f', before: 'x', time: group })
    add(each.dsh)
    await each.cap(1)
    expect(each.groups()).toEqual([1, 2])
  })

  it.each([
    ['R113: with a newer store', (dsh: DshStore) => { dsh.put('store', '3') }],
    ['with a group that is no folder', (dsh: DshStore) => { dsh.put('9', '') }],
  ])('leaves a session alone %s', async (_, damage) => {
    const each = await world()
    each.dsh.markers()
    for (const group of [1, 2, 3]) each.dsh.bytes({ anchor: group, call: `c${String(group)}`, file: '/p/f', before: 'x', time: group })
    damage(each.dsh)
    ageAll(each.dsh.folder(), now - 2 * dayMs)
    const before = snapshotTree(each.dsh.root)
    const report = await each.cap(1)
    expect(report.plan).toEqual([])
    expect(snapshotTree(each.dsh.root)).toEqual(before)
  })

  it('leaves odd group names alone, and does not take another group for one', async () => {
    const each = await world()
    each.dsh.markers()
    for (const group of [7, 8, 9]) each.dsh.bytes({ anchor: group, call: `c${String(group)}`, file: '/p/f', before: 'x', time: group })
    for (const name of ['007', '1e1', '-1']) {
      mkdirSync(join(each.dsh.folder(), name))
      writeFileSync(join(each.dsh.folder(), name, 'x.json'), '{}')
    }
    await each.cap(2)
    expect(each.groups().filter((group) => [7, 8, 9].includes(group))).toContain(8)
    expect(readdirSync(each.dsh.folder()).sort()).toEqual(['-1', '007', '1e1', '8', '9', 'format', 'store'])
  })

  it('takes staged copies away after a day', async () => {
    const each = await world()
    each.dsh.markers()
    each.dsh.bytes({ anchor: 1, call: 'a', file: '/p/f', before: 'A', time: 1 })
    each.dsh.put('.pending/k-00000000.before', 'x')
    await each.cap()
    expect(existsSync(join(each.dsh.folder(), '.pending', 'k-00000000.before'))).toBe(false)
  })
})
