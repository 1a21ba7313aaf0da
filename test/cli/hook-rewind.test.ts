import { chmodSync, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { uuidOf } from '../helpers/identity.js'
import { snapshotTree, withoutTimes } from '../helpers/tree.js'
import { HookWorld, silent } from './hook-world.js'
import type { Envelope } from './world.js'

const [M1, M2, M3] = [uuidOf('headless/1'), uuidOf('headless/2'), uuidOf('headless/3')]

/** A headless run of Claude Code: it calls its hooks, writes its transcript some time later, and keeps no checkpoints. */
class HeadlessRun {
  readonly world: HookWorld
  #leaf: string | null = null
  #count = 0

  constructor(world: HookWorld) {
    this.world = world
  }

  /** One turn: a prompt, and the edits that the agent makes; `null` removes a file, with a tool that has no hook. */
  async turn(id: string, prompt: string, edits: Readonly<Record<string, string | null>>): Promise<void> {
    const { world } = this
    expect(await world.prompt(prompt)).toEqual(silent)
    this.#line(id, { type: 'user', message: { role: 'user', content: prompt } })
    for (const [name, text] of Object.entries(edits)) {
      const tool = { type: 'tool_use', id: `toolu_${String(this.#count)}`, name: 'Write', input: { file_path: join(world.project, name), content: text ?? '' } }
      this.#line(uuidOf(`headless/a${String(this.#count)}`), { type: 'assistant', message: { role: 'assistant', content: [tool] } })
      if (text === null) continue
      expect(await world.before('Write', name)).toEqual(silent)
      world.write(name, text)
      this.#line(uuidOf(`headless/r${String(this.#count)}`), { type: 'user', message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: tool.id, content: 'ok' }] }, toolUseResult: 'ok' })
    }
  }

  async start(source = 'startup'): Promise<void> {
    expect(await this.world.claude('SessionStart', { source })).toEqual(silent)
  }

  async end(): Promise<void> {
    expect(await this.world.claude('SessionEnd', { reason: 'other' })).toEqual(silent)
  }

  #line(uuid: string, fields: Readonly<Record<string, unknown>>): void {
    const { world } = this
    this.#count += 1
    world.transcribe({ parentUuid: this.#leaf, isSidechain: false, userType: 'external', cwd: world.project, sessionId: world.session, version: '2.1.332', gitBranch: '', uuid, timestamp: new Date(Date.now()).toISOString(), ...fields })
    this.#leaf = uuid
  }
}

/** Three turns: a.txt is changed in each, b.sh in the second, c.txt is made in the second and changed in the third. */
async function headless(): Promise<HookWorld> {
  const world = await HookWorld.make({ inProcess: true })
  world.write('a.txt', 'a0\n')
  world.write('b.sh', 'b0\n')
  chmodSync(join(world.project, 'b.sh'), 0o755)
  const run = new HeadlessRun(world)
  await run.start()
  await run.turn(M1, 'First', { 'a.txt': 'a1\n' })
  await run.turn(M2, 'Second', { 'a.txt': 'a2\n', 'b.sh': 'b2\n', 'c.txt': 'c2\n' })
  await run.end()
  await run.start('resume')
  await run.turn(M3, 'Third', { 'a.txt': 'a3\n', 'c.txt': 'c3\n' })
  await run.end()
  return world
}

async function json(world: HookWorld, ...words: readonly string[]): Promise<Envelope> {
  const { stdout, code, stderr } = await world.program([...words, '--json'])
  const envelope = JSON.parse(stdout) as Envelope
  expect([envelope.exitCode, stderr]).toEqual([code, ''])
  return envelope
}

const texts = (world: HookWorld): (string | null)[] => ['a.txt', 'b.sh', 'c.txt'].map((name) => (existsSync(join(world.project, name)) ? world.read(name) : null))

describe('a headless run, of which the client itself keeps no checkpoints', () => {
  it('can be shown, verified, rewound to any of its messages, and that undone', async () => {
    const world = await headless()
    const elsewhere = { id: 'session-elsewhere', severity: 'info', session: world.session, message: expect.stringContaining(`is in ${join(world.home, '.claude')} too, without checkpoints`) as string }
    const shown = await json(world, 'show', world.session)
    expect(shown).toMatchObject({ root: world.root, findings: [elsewhere], summary: { checkpoints: 4, restorable: 4, project: world.project } })
    const checkpoints = shown.checkpoints as { readonly aliases: readonly string[]; readonly text: string | null }[]
    expect(checkpoints.map(({ aliases, text }) => [aliases.filter((id) => [M1, M2, M3].includes(id)), text])).toEqual([[[], null], [[M1], 'First'], [[M2], 'Second'], [[M3], 'Third']])
    expect(await json(world, 'verify', world.session.slice(0, 8))).toMatchObject({ root: world.root, exitCode: 0, findings: [elsewhere], summary: { sessions: 1, errors: 0 } })

    const before = withoutTimes(snapshotTree(world.project))
    const claude = snapshotTree(join(world.home, '.claude'))
    expect(await json(world, 'rewind', world.session, M2)).toMatchObject({ applied: false, root: world.root, findings: [elsewhere], summary: { changes: 3 } })
    expect(withoutTimes(snapshotTree(world.project))).toEqual(before)

    expect(await json(world, 'rewind', world.session, M2.slice(0, 8), '--apply')).toMatchObject({ applied: true, exitCode: 0, summary: { changes: 3, failed: 0 } })
    expect(texts(world)).toEqual(['a1\n', 'b0\n', null])
    expect(statSync(join(world.project, 'b.sh')).mode & 0o777).toBe(0o755)
    expect(await json(world, 'redo', world.session, '--apply')).toMatchObject({ applied: true, exitCode: 0, findings: [elsewhere] })
    expect(withoutTimes(snapshotTree(world.project))).toEqual(before)

    for (const [message, expected] of [[M3, ['a2\n', 'b2\n', 'c2\n']], [M1, ['a0\n', 'b0\n', null]]] as const) {
      await json(world, 'rewind', world.session, message, '--apply')
      expect(texts(world)).toEqual(expected)
    }
    // The client's own folder is none of this.
    expect(snapshotTree(join(world.home, '.claude'))).toEqual(claude)
  })

  it('whose store is named with --root needs no word about the other one', async () => {
    const world = await headless()
    expect(await json(world, 'rewind', world.session, M3, '--root', world.root)).toMatchObject({ findings: [], summary: { changes: 2 } })
    const { code, stderr } = await world.program(['rewind', world.session, M3, '--root', join(world.home, '.claude')])
    expect([code, stderr.includes('has no checkpoint for message')]).toEqual([1, true])
  })

  it('goes on after a rewind, and its new turns can be rewound too', async () => {
    const world = await headless()
    await json(world, 'rewind', world.session, M2, '--apply')
    const run = new HeadlessRun(world)
    const id = uuidOf('headless/4')
    await run.turn(id, 'Another way', { 'a.txt': 'a4\n' })
    await run.end()
    await json(world, 'rewind', world.session, id, '--apply')
    expect(texts(world)).toEqual(['a1\n', 'b0\n', null])
  })

  it('is refused by its id alone once the client has checkpoints of it as well', async () => {
    const world = await headless()
    const name = 'b6001c86ace16e89@v1'
    world.transcribe({ type: 'file-history-snapshot', messageId: M3, snapshot: { messageId: M3, trackedFileBackups: { [join(world.project, 'a.txt')]: { backupFileName: name, version: 1, backupTime: '2026-11-30T12:00:00.000Z' } }, timestamp: '2026-11-30T12:00:00.000Z' }, isSnapshotUpdate: false })
    const backup = join(world.home, '.claude/file-history', world.session, name)
    mkdirSync(dirname(backup), { recursive: true })
    writeFileSync(backup, 'a2\n')
    for (const words of [['rewind', world.session, M3], ['redo', world.session], ['show', world.session], ['verify', world.session], ['fork', world.session, uuidOf('headless/fork')]]) {
      const { code, stderr } = await world.program(words)
      expect([words[0], code]).toEqual([words[0], 2])
      expect(stderr).toContain(`session ${world.session} is in ${join(world.home, '.claude')} and in ${world.root}`)
      expect(stderr).toContain('--root')
    }
  })

  it('with a damaged transcript is not taken for one without checkpoints', async () => {
    const world = await headless()
    world.transcribe('{"type":"file-history-snapshot","messageId":"')
    const { code, stderr } = await world.program(['rewind', world.session, M3])
    expect([code, stderr.includes(' and in ')]).toEqual([2, true])
  })
})
