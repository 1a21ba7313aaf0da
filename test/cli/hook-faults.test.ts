import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished, type TestContext } from 'vitest'
import { sidecarOf } from '../../src/formats/pi-candy-undo/layout.js'
import { thisMachine } from '../../src/fs/machine.js'
import { lockHost } from '../../src/cli/lock-host.js'
import { newToken } from '../../src/plan/run-id.js'
import { lockStore } from '../../src/plan/sidecar.js'
import { openRecorder } from '../../src/recorder/recorder.js'
import { HookWorld, silent, type HookEnd } from './hook-world.js'

/** What verify finds in the store of a world. */
async function verified(world: HookWorld): Promise<{ readonly exitCode: number; readonly ids: readonly string[] }> {
  const { stdout } = await world.program(['verify', '--root', world.root, '--json', '--fail-on', 'info'])
  const { exitCode, findings } = JSON.parse(stdout) as { readonly exitCode: number; readonly findings: readonly { readonly id: string }[] }
  return { exitCode, ids: findings.map(({ id }) => id) }
}

/** Names in the folder of the backups, temporary ones included. */
function backupsIn(world: HookWorld): string[] {
  return readdirSync(join(world.root, world.session, 'backups')).sort()
}

/** Holds the lock of the store as another run does, until it is released. */
async function locked(root: string): Promise<() => void> {
  mkdirSync(root, { recursive: true })
  const machine = thisMachine()
  const held = await lockStore({ root, sidecar: sidecarOf(root) }, { pid: process.pid, host: lockHost(machine), processes: machine, command: 'cap', now: Date.now(), token: newToken(), waitMs: 0 })
  return () => { held.release() }
}

describe('hooks that run at once on one session', () => {
  const own = Array.from({ length: 12 }, (_each, index) => `own-${String(index)}.txt`)
  const names = [...own, 'shared.txt']

  it('sixteen of them lose nothing: one backup for each path and turn, and a store that is whole', async () => {
    const world = await HookWorld.make()
    for (const name of names) world.write(name, `${name} first\n`)
    const each = [...own, 'shared.txt', 'shared.txt', 'shared.txt', 'shared.txt']
    const storm = (): Promise<HookEnd[]> => Promise.all(each.map((name) => world.before('Write', name, '--time-limit', '10m')))
    expect(await storm()).toEqual(each.map(() => silent))
    expect(world.state.trackedFiles.toSorted()).toEqual(names.toSorted())
    expect(world.state.snapshots.map(({ kind }) => kind)).toEqual(['baseline'])
    for (const name of names) expect(world.backup(world.state.originals[name]?.backupFileName ?? '').toString()).toBe(`${name} first\n`)
    const firsts = backupsIn(world)
    expect(firsts.map((name) => name.slice(16))).toEqual(names.map(() => '@v1'))

    for (const name of names) world.write(name, `${name} second\n`)
    await world.prompt('Go on', '--time-limit', '10m')
    // Prompts of several agents on one session, and edits, all at once.
    const ends = await Promise.all([storm(), ...Array.from({ length: 4 }, (_each, index) => world.generic({ event: 'turn', message: `m${String(index % 2)}` }, '--time-limit', '10m'))])
    expect(ends.flat()).toEqual(ends.flat().map(() => silent))
    const { snapshots, recorder } = world.state
    expect(snapshots).toHaveLength(2)
    expect(recorder.messages.map(({ id }) => id).filter((id) => /^m\d$/.test(id)).toSorted()).toEqual(expect.arrayContaining(['m0', 'm1']))
    for (const name of names) expect(world.backup(snapshots[1]?.files[name]?.backupFileName ?? '').toString()).toBe(`${name} second\n`)
    expect(backupsIn(world).map((name) => name.slice(16))).toEqual(names.flatMap(() => ['@v1', '@v2']))
    expect(await verified(world)).toEqual({ exitCode: 0, ids: [] })
  }, 240_000)

  it('one that comes while another publishes the first backup of the session waits for the state, and takes it for no loss', async () => {
    const world = await HookWorld.make()
    const open = (): ReturnType<typeof openRecorder> =>
      openRecorder({ root: world.root, sessionId: world.session, cwd: world.project, now: () => Date.now(), uuid: randomUUID, process: { pid: process.pid, host: lockHost(thisMachine()), table: thisMachine() } })
    for (const name of ['a.txt', 'b.txt']) world.write(name, `${name}\n`)
    const late = open()
    await open().beforeEdit('a.txt')
    const state = join(world.root, world.session, 'state.json')
    const bytes = readFileSync(state)
    // As it is at the moment before the state appears.
    const release = await locked(world.root)
    rmSync(state)
    const waiting = late.beforeEdit('b.txt')
    writeFileSync(state, bytes)
    release()
    expect(await waiting).toEqual({ outcome: 'recorded', path: 'b.txt' })
    expect(world.state.trackedFiles).toEqual(['a.txt', 'b.txt'])
  })

  it('a turn that was begun meanwhile does not get the id of the one before', async () => {
    const world = await HookWorld.make()
    const recorder = openRecorder({ root: world.root, sessionId: world.session, cwd: world.project, now: () => Date.now(), uuid: randomUUID, process: { pid: process.pid, host: 'test', table: thisMachine() } })
    await recorder.beginTurn('word-1')
    await recorder.beginTurn('word-2')
    expect(await recorder.nameTurn('message-1', 'word-1')).toBe(false)
    expect(recorder.currentTurn()?.message).toBe('word-2')
    expect(await recorder.nameTurn('message-2', 'word-2')).toBe(true)
    expect(recorder.currentTurn()).toMatchObject({ message: 'message-2' })
  })
})

describe('a hook that cannot record', () => {
  /** What is there after a time in which nothing could be recorded: a file of that time is not guessed, and its turn is counted. */
  async function expectGaps(world: HookWorld): Promise<void> {
    expect(await world.generic({ event: 'edit', paths: ['a.txt', 'b.txt', 'c.txt'] })).toEqual(silent)
    const { originals } = world.state
    for (const name of ['a.txt', 'b.txt']) expect([name, originals[name]?.gap]).toEqual([name, 'it was edited before its state could be recorded'])
    expect(world.backup(originals['c.txt']?.backupFileName ?? '').toString()).toBe('c\n')
    expect(await world.generic({ event: 'turn', message: 'after' })).toEqual(silent)
    expect(world.state.recorder.lostTurns).toBe(1)
    expect((await verified(world)).ids).toEqual(['failed-backup', 'failed-backup', 'failed-backup'])

    for (const name of ['a.txt', 'b.txt', 'c.txt']) world.write(name, 'later\n')
    await world.program(['rewind', world.session, 'after', '--root', world.root, '--apply'])
    // What the agent left is known again from the next turn on.
    expect(['a.txt', 'b.txt', 'c.txt'].map((name) => world.read(name))).toEqual(['agent\n', 'agent\n', 'c\n'])
  }

  async function worldWithFiles(): Promise<HookWorld> {
    const world = await HookWorld.make()
    for (const name of ['a', 'b', 'c']) world.write(`${name}.txt`, `${name}\n`)
    return world
  }

  /** An agent works on although nothing can be recorded, and sees nothing of that. */
  async function workOn(world: HookWorld): Promise<void> {
    expect(await world.prompt('Change a and b', '--time-limit', '1s')).toEqual(silent)
    expect(await world.generic({ event: 'edit', paths: ['a.txt', 'b.txt'] }, '--time-limit', '1s')).toEqual(silent)
    for (const name of ['a.txt', 'b.txt']) world.write(name, 'agent\n')
  }

  it('because another run holds the lock: it ends all the same, and the gap is known', async () => {
    const world = await worldWithFiles()
    const release = await locked(world.root)
    await workOn(world)
    release()
    await expectGaps(world)
  })

  it('says why when asked', async () => {
    const world = await worldWithFiles()
    const release = await locked(world.root)
    const { code, stdout, stderr } = await world.before('Write', 'a.txt', '--time-limit', '1s', '--verbose')
    release()
    expect([code, stdout]).toEqual([0, ''])
    expect(stderr).toMatch(/a\.txt was not recorded: the store is locked by/)
  })

  it('because the session is read-only: its state cannot be read', async () => {
    const world = await worldWithFiles()
    await world.claude('SessionStart', { source: 'startup' })
    const path = join(world.root, world.session, 'state.json')
    const whole = readFileSync(path)
    writeFileSync(path, '{"version": 1, "sess')
    await workOn(world)
    expect(readFileSync(path, 'utf8')).toBe('{"version": 1, "sess')
    writeFileSync(path, whole)
    await expectGaps(world)
  })

  it('because the disk is full', async (context) => {
    const world = await worldWithFiles()
    const filled = fullDisk(world.root, context)
    await world.claude('SessionStart', { source: 'startup' })
    filled.fill()
    await workOn(world)
    filled.free()
    await expectGaps(world)
  })
})

/** A small file system for the store and our own folder beside it, that can be filled. */
function fullDisk(root: string, context: TestContext): { fill(): void; free(): void } {
  const folder = dirname(root)
  mkdirSync(folder, { recursive: true })
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,mode=700', 'tmpfs', folder], { stdio: 'ignore' })
  } catch {
    const reason = 'this user may not mount a tmpfs'
    process.stderr.write(`skipped: ${context.task.name}: ${reason}\n`)
    context.skip(reason)
  }
  onTestFinished(() => { execFileSync('umount', [folder]) })
  const ballast = join(folder, 'ballast')
  return {
    fill: () => {
      for (let size = 65536; size >= 1; size = Math.floor(size / 4)) {
        try {
          for (;;) writeFileSync(ballast, Buffer.alloc(size), { flag: 'a' })
        } catch {
          // Full for pieces of this size.
        }
      }
    },
    free: () => { rmSync(ballast) },
  }
}
