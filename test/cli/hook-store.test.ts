import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { uuidOf } from '../helpers/identity.js'
import { setTime } from '../helpers/store.js'
import { snapshotTree } from '../helpers/tree.js'
import { HookWorld, silent } from './hook-world.js'
import type { Envelope } from './world.js'

/** A day on which the session is older than what expires, and not so old that the clock would be doubted. */
const later = new Date(Date.now() + 100 * 86_400_000).toISOString()
const fresh = new Date(Date.now() + 2 * 3_600_000).toISOString()

/** A store that hooks alone have made: a session of five turns, each of which changes a.txt; the third makes b.txt. */
async function recorded(): Promise<HookWorld> {
  const world = await HookWorld.make({ inProcess: true })
  world.write('a.txt', 'a0\n')
  expect(await world.generic({ event: 'session-start' })).toEqual(silent)
  for (let turn = 1; turn <= 5; turn += 1) {
    expect(await world.generic({ event: 'turn', message: `message-${String(turn)}`, text: `Turn ${String(turn)}` })).toEqual(silent)
    expect(await world.generic({ event: 'edit', paths: turn === 3 ? ['a.txt', 'b.txt'] : ['a.txt'] })).toEqual(silent)
    world.write('a.txt', `a${String(turn)}\n`)
    if (turn === 3) world.write('b.txt', 'b3\n')
  }
  expect(await world.generic({ event: 'session-end' })).toEqual(silent)
  return world
}

async function json(world: HookWorld, ...words: readonly string[]): Promise<Envelope> {
  const { stdout, code, stderr } = await world.program([...words, '--root', world.root, '--json'])
  const envelope = JSON.parse(stdout) as Envelope
  expect([envelope.exitCode, stderr]).toEqual([code, ''])
  return envelope
}

async function verifies(world: HookWorld): Promise<void> {
  expect(await json(world, 'verify', '--fail-on', 'info')).toMatchObject({ exitCode: 0, findings: [] })
}

describe('a store that hooks have made is one as any other:', () => {
  it('found without being named; status, list and doctor know it', async () => {
    const world = await recorded()
    const { stdout, code } = await world.program(['status', '--json'])
    const status = JSON.parse(stdout) as Envelope
    expect([code, status.root]).toEqual([0, world.root])
    expect(status.sessions).toMatchObject([{ id: world.session, project: world.project, checkpoints: 6, backups: 6 }])
    expect((await json(world, 'list', '--project', world.project)).sessions).toMatchObject([{ id: world.session }])
    expect(await json(world, 'doctor')).toMatchObject({ exitCode: 0 })
    await verifies(world)
  })

  it('cap keeps the state before, the sequence, and every original', async () => {
    const world = await recorded()
    const original = world.state.originals['a.txt']
    const preview = await json(world, 'cap', '--max', '3', '--now', fresh)
    expect(preview).toMatchObject({ applied: false })
    expect(world.state.snapshots).toHaveLength(6)
    expect(await json(world, 'cap', '--max', '3', '--now', fresh, '--apply')).toMatchObject({ applied: true, exitCode: 0 })
    expect(world.state.snapshots.map(({ key }) => key)).toEqual(['baseline', 'message-4', 'message-5'])
    expect(world.state.snapshotSequence).toBe(6)
    expect(world.backup(original?.backupFileName ?? '').toString()).toBe('a0\n')
    await verifies(world)
    // Hooks go on from there, and no number is given twice.
    await world.generic({ event: 'turn', message: 'message-6' })
    expect([world.state.snapshotSequence, world.state.snapshots.at(-1)?.key]).toEqual([7, 'message-6'])
    expect(existsSync(join(world.root, world.session, 'state.json.bak'))).toBe(true)
    await verifies(world)
    await json(world, 'rewind', world.session, 'message-4', '--apply')
    expect([world.read('a.txt'), world.read('b.txt')]).toEqual(['a3\n', 'b3\n'])
  })

  it('rewind and redo, whole and for one file', async () => {
    const world = await recorded()
    await json(world, 'rewind', world.session, 'message-3', '--file', 'a.txt', '--apply')
    expect([world.read('a.txt'), world.read('b.txt')]).toEqual(['a2\n', 'b3\n'])
    await json(world, 'redo', world.session, '--apply')
    expect(world.read('a.txt')).toBe('a5\n')
    await json(world, 'rewind', world.session, 'message-3', '--apply')
    expect([world.read('a.txt'), existsSync(join(world.project, 'b.txt'))]).toEqual(['a2\n', false])
    await json(world, 'redo', world.session, '--apply')
    expect([world.read('a.txt'), world.read('b.txt')]).toEqual(['a5\n', 'b3\n'])
    // The snapshots of a rewind take each file anew, as those of the plugin do.
    const { exitCode, findings } = await json(world, 'verify')
    expect([exitCode, [...new Set(findings.map(({ id }) => id))]]).toEqual([0, ['identical-versions']])
  })

  it('fork gives another session its checkpoints, and hooks go on in both', async () => {
    const world = await recorded()
    const other = uuidOf('hook/fork')
    expect(await json(world, 'fork', world.session, other)).toMatchObject({ exitCode: 0, summary: { checkpoints: 6 } })
    await verifies(world)
    await world.generic({ event: 'turn', session: other, message: 'forked-1' })
    await world.generic({ event: 'edit', session: other, paths: ['c.txt'] })
    world.write('c.txt', 'c\n')
    await verifies(world)
    await json(world, 'rewind', other, 'forked-1', '--apply')
    expect(existsSync(join(world.project, 'c.txt'))).toBe(false)
    await json(world, 'rewind', other, 'message-1', '--apply')
    expect(world.read('a.txt')).toBe('a0\n')
  })

  it('expire removes a session that is older than what was asked for, and the trash gives it back', async () => {
    const world = await recorded()
    const folder = join(world.root, world.session)
    const before = snapshotTree(folder)
    expect(await json(world, 'expire', '--older-than', '30d', '--now', fresh)).toMatchObject({ summary: { expired: 0 } })
    const words = ['expire', '--older-than', '30d', '--now', later]
    expect(await json(world, ...words)).toMatchObject({ applied: false, summary: { expired: 1 } })
    expect(snapshotTree(folder)).toEqual(before)
    const { runId = '' } = await json(world, ...words, '--apply')
    expect(existsSync(folder)).toBe(false)
    expect(await json(world, 'trash', 'restore', runId)).toMatchObject({ exitCode: 0 })
    expect(snapshotTree(folder)).toEqual(before)
    await verifies(world)
  })

  it('purge removes all that was recorded of a project, and nothing else', async () => {
    const world = await recorded()
    const elsewhere = join(world.home, 'elsewhere')
    mkdirSync(elsewhere)
    await world.generic({ event: 'session-start', session: 'other', cwd: elsewhere })
    expect(await json(world, 'purge', world.project, '--now', later, '--apply')).toMatchObject({ applied: true })
    expect(readdirSync(world.root)).toEqual(['other'])
  })

  it('the nightly job caps it and empties nothing that is young', async () => {
    const world = await recorded()
    setTime(join(world.root, world.session, 'state.json'), Date.now())
    const report = await json(world, 'run', 'nightly', '--apply', '--now', fresh)
    expect(report).toMatchObject({ exitCode: 0, errors: [] })
    expect(readFileSync(join(world.root, world.session, 'state.json'), 'utf8')).toContain('"message-1"')
    await verifies(world)
  })
})
