import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, lstatSync, mkdirSync, readFileSync, readlinkSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import fc from 'fast-check'
import { ownEntries, programOf, settingsIn, withEntries, withoutEntries, type HookEntry } from '../../src/operations/hook/entries.js'
import { installHooks } from '../../src/operations/hook/install.js'
import { temporaryFolder } from '../helpers/temp.js'
import { HookWorld } from './hook-world.js'
import type { Envelope } from './world.js'

interface Settings {
  readonly hooks: Readonly<Record<string, readonly { readonly matcher?: string; readonly hooks: readonly { readonly type: string; readonly command: string; readonly timeout: number }[] }[]>>
}

const command = `'/usr/bin/node' '/opt/rewind-admin/bin/rewind-admin.js' hook claude-code`
const entries: readonly HookEntry[] = [
  { event: 'SessionStart', command, timeout: 10 },
  { event: 'PreToolUse', matcher: 'Edit|Write', command, timeout: 10 },
]
const others = { Stop: [{ hooks: [{ type: 'command', command: 'say done' }] }], PreToolUse: [{ matcher: 'Bash', hooks: [{ type: 'command', command: 'rewind-admin verify; echo hook claude-code' }] }] }

async function withSettings(text?: string): Promise<{ readonly world: HookWorld; readonly file: string }> {
  const world = await HookWorld.make()
  const file = join(world.home, '.claude/settings.json')
  mkdirSync(join(world.home, '.claude'))
  if (text !== undefined) writeFileSync(file, text, { mode: 0o640 })
  return { world, file }
}

async function json(world: HookWorld, ...words: readonly string[]): Promise<Envelope> {
  const { stdout, code, stderr } = await world.program([...words, '--json'])
  const envelope = JSON.parse(stdout) as Envelope
  expect([envelope.exitCode, stderr]).toEqual([code, ''])
  return envelope
}

describe('hook install', () => {
  it('shows the change first and writes it with --apply, beside what others have; remove takes it out again, byte for byte', async () => {
    const text = `${JSON.stringify({ model: 'opus', hooks: others, env: { A: '1' } }, null, 4)}\n`
    const { world, file } = await withSettings(text)
    const preview = await world.program(['hook', 'install'])
    expect([preview.code, readFileSync(file, 'utf8')]).toEqual([0, text])
    expect(preview.stdout).toMatch(/^--- a\/.*settings\.json$/m)
    expect(preview.stdout).toMatch(/^\+ +"matcher": "Edit\|MultiEdit\|Write\|NotebookEdit",$/m)
    expect(preview.stdout).toContain('--apply')

    expect(await json(world, 'hook', 'install', 'claude-code', '--apply')).toMatchObject({ applied: true, exitCode: 0 })
    const { hooks } = JSON.parse(readFileSync(file, 'utf8')) as Settings
    expect(Object.keys(hooks)).toEqual(['Stop', 'PreToolUse', 'SessionStart', 'UserPromptSubmit', 'SessionEnd'])
    expect(hooks.PreToolUse?.[0]).toEqual(others.PreToolUse[0])
    expect(hooks.PreToolUse?.[1]).toMatchObject({ matcher: 'Edit|MultiEdit|Write|NotebookEdit', hooks: [{ type: 'command', timeout: 10 }] })
    expect(statSync(file).mode & 0o777).toBe(0o640)
    const installed = readFileSync(file)
    expect(await json(world, 'hook', 'install', '--apply')).toMatchObject({ applied: false, summary: { changes: 0 } })
    expect(readFileSync(file)).toEqual(installed)

    const before = await json(world, 'hook', 'remove')
    expect(before.diff).toMatch(/^- +"matcher"/m)
    expect(await json(world, 'hook', 'remove', '--apply')).toMatchObject({ applied: true })
    expect(readFileSync(file, 'utf8')).toBe(text)
    expect(await json(world, 'hook', 'remove', '--apply')).toMatchObject({ applied: false, summary: { changes: 0 } })
  })

  it('installs what an agent can start: a session is recorded by the command of each event', async () => {
    const { world, file } = await withSettings()
    expect(await json(world, 'hook', 'install', '--apply', '--every-turn', '--exclude', "it's *.log", '--time-limit', '1m')).toMatchObject({ applied: true })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const { hooks } = JSON.parse(readFileSync(file, 'utf8')) as Settings
    world.write('a.txt', 'one\n')
    const inputs: Readonly<Record<string, object>> = { SessionStart: {}, UserPromptSubmit: { prompt: 'Go' }, PreToolUse: { tool_name: 'Edit', tool_input: { file_path: join(world.project, 'a.txt') } }, SessionEnd: {} }
    for (const [event, fields] of Object.entries(inputs)) {
      const line = hooks[event]?.[0]?.hooks[0]
      expect(line?.timeout).toBe(65)
      const input = JSON.stringify({ session_id: world.session, cwd: world.project, hook_event_name: event, ...fields })
      const { status, stdout, stderr } = spawnSync('sh', ['-c', line?.command ?? ''], { input, encoding: 'utf8', env: { HOME: world.home } })
      expect([event, status, stdout, stderr]).toEqual([event, 0, '', ''])
    }
    expect(world.state.trackedFiles).toEqual(['a.txt'])
    expect(world.state.recorder.endedAt).not.toBeNull()
    expect(await json(world, 'hook', 'remove', '--apply')).toMatchObject({ applied: true })
    expect(existsSync(file)).toBe(false)
  })

  it('quotes a program that lies in an odd place', async () => {
    const { world, file } = await withSettings()
    const odd = join(world.home, "it's «odd» $HOME")
    mkdirSync(odd)
    for (const name of ['bin', 'dist', 'package.json']) cpSync(resolve(name), join(odd, name), { recursive: true })
    symlinkSync(resolve('node_modules'), join(odd, 'node_modules'))
    const { status, stderr } = spawnSync(process.execPath, [join(odd, 'bin/rewind-admin.js'), 'hook', 'install', '--apply'], { env: { HOME: world.home }, encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, ''])
    const { hooks } = JSON.parse(readFileSync(file, 'utf8')) as Settings
    const line = hooks.SessionStart?.[0]?.hooks[0]?.command ?? ''
    expect(programOf(line)?.[1]).toBe(join(odd, 'bin/rewind-admin.js'))
    const ran = spawnSync('sh', ['-c', line], { input: JSON.stringify({ session_id: 's', cwd: world.project, hook_event_name: 'SessionStart' }), encoding: 'utf8', env: { HOME: world.home } })
    expect([ran.status, ran.stderr, existsSync(join(world.root, 's/state.json'))]).toEqual([0, '', true])

    // The place is gone: status and doctor say so.
    renameSync(odd, join(world.home, 'moved'))
    const lost = { id: 'hook-path-gone', message: expect.stringContaining(join(odd, 'bin/rewind-admin.js')) as string }
    expect(await json(world, 'hook', 'status')).toMatchObject({ exitCode: 1, summary: { installed: 4 }, findings: [lost] })
    expect(await json(world, 'doctor', '--root', world.root)).toMatchObject({ exitCode: 1, findings: [lost] })
    expect(await json(world, 'hook', 'install', '--apply')).toMatchObject({ applied: true })
    expect(await json(world, 'hook', 'status')).toMatchObject({ exitCode: 0, summary: { installed: 4 }, findings: [] })
  })

  it('follows a link to the settings and writes the file behind it', async () => {
    const { world, file } = await withSettings()
    const real = join(world.home, 'dotfiles.json')
    writeFileSync(real, '{\n  "model": "opus"\n}\n', { mode: 0o600 })
    chmodSync(real, 0o600)
    symlinkSync('../dotfiles.json', file)
    await json(world, 'hook', 'install', '--apply')
    expect([lstatSync(file).isSymbolicLink(), readlinkSync(file)]).toEqual([true, '../dotfiles.json'])
    expect(ownEntries(settingsIn(readFileSync(real, 'utf8')))).toHaveLength(4)
    await json(world, 'hook', 'remove', '--apply')
    expect(readFileSync(real, 'utf8')).toBe('{\n  "model": "opus"\n}\n')
  })

  it('--project writes the local settings of this folder, and CLAUDE_CONFIG_DIR names those of the user', async () => {
    const { world, file } = await withSettings('{}')
    await json(world, 'hook', 'install', '--project', '--apply')
    expect(ownEntries(settingsIn(world.read('.claude/settings.local.json')))).toHaveLength(4)
    expect(readFileSync(file, 'utf8')).toBe('{}')
    const other = join(world.home, 'other')
    spawnSync(process.execPath, [resolve('bin/rewind-admin.js'), 'hook', 'install', '--apply'], { env: { HOME: world.home, CLAUDE_CONFIG_DIR: other } })
    expect(existsSync(join(other, 'settings.json'))).toBe(true)
  })

  it.each([
    ['comments', '{\n  // mine\n  "hooks": {}\n}\n'],
    ['nothing in it', ''],
    ['a list in it', '[]'],
    ['hooks of another shape', '{"hooks": []}'],
    ['an event of another shape', '{"hooks": {"SessionStart": {}}}'],
  ])('refuses settings with %s and leaves them as they are', async (_what, text) => {
    const { world, file } = await withSettings(text)
    const { code, stderr } = await world.program(['hook', 'install', '--apply'])
    expect([code, stderr.includes(`${file} cannot be changed`), readFileSync(file, 'utf8')]).toEqual([2, true, text])
  })

  it.each([
    ['a link that leads nowhere', (file: string) => { symlinkSync('nowhere', file) }],
    ['a folder', (file: string) => { mkdirSync(file) }],
  ])('refuses %s', async (_what, make) => {
    const { world, file } = await withSettings()
    make(file)
    expect((await world.program(['hook', 'install', '--apply'])).code).toBe(2)
  })

  it('refuses a store of an agent as the place for what is recorded', async () => {
    const { world } = await withSettings()
    mkdirSync(join(world.home, '.claude/projects'))
    const { code, stderr } = await world.program(['hook', 'install', '--root', '~/.claude'])
    expect([code, stderr.includes('is a store of claude-code')]).toEqual([2, true])
  })

  it('does not write over settings that changed while it looked at them', async () => {
    const file = join(await temporaryFolder(), 'settings.json')
    writeFileSync(file, '{}')
    const slow: readonly HookEntry[] = [{ ...entries[0], get command() {
      writeFileSync(file, '{"model": "opus"}')
      return command
    } } as HookEntry]
    expect(() => installHooks(slow, { file, apply: true, token: '00' })).toThrow(/changed meanwhile/)
    expect(readFileSync(file, 'utf8')).toBe('{"model": "opus"}')
    rmSync(file)
  })
})

describe('settings with our hooks', () => {
  const bare = fc.record({ model: fc.string(), '{"x': fc.constant([{}, [], '\\"']) }, { requiredKeys: [] })
  const group = fc.record({ matcher: fc.constantFrom('Bash', ''), hooks: fc.array(fc.record({ type: fc.constant('command'), command: fc.constantFrom('say', 'rewind-admin list', 'x; rewind-admin hook claude-code') }), { maxLength: 2 }) })
  const hooks = fc.dictionary(fc.constantFrom('SessionStart', 'PreToolUse', 'Stop'), fc.array(group, { maxLength: 2 }))
  const settings = fc.tuple(bare, fc.option(hooks, { nil: undefined }), bare).map(([one, own, two]) => ({ ...one, ...(own === undefined ? {} : { hooks: own }), ...two }))
  const texts = fc.tuple(settings, fc.constantFrom(undefined, 2, 4, '\t'), fc.constantFrom('', '\n'), fc.boolean(), fc.constantFrom('', '\ufeff')).map(([value, indent, end, crlf, mark]) => {
    const text = `${mark}${JSON.stringify(value, null, indent)}${end}`
    return crlf ? text.replaceAll('\n', '\r\n') : text
  })

  it('mean the old settings and our hooks, are made once, and give the old bytes when these are taken out', () => {
    fc.assert(fc.property(texts, (text) => {
      const after = withEntries(text, entries)
      const [old, now] = [settingsIn(text), settingsIn(after)]
      expect(ownEntries(now).map(({ event, command: line }) => [event, line]).sort()).toEqual(entries.map(({ event, command: line }) => [event, line]).sort())
      for (const [key, value] of Object.entries(old)) if (key !== 'hooks') expect(now[key]).toEqual(value)
      expect(withEntries(after, entries)).toBe(after)
      expect(withoutEntries(after)).toBe(text)
    }), { numRuns: 500 })
  })

  it('replace older ones of ours, wherever those are, and keep what others wrote beside them', () => {
    const old = { hooks: { PreToolUse: [{ matcher: '*', hooks: [{ type: 'command', command: 'say a' }, { type: 'command', command: 'rewind-admin hook claude-code --every-turn' }, { type: 'command', command: 'say b' }] }] } }
    const text = JSON.stringify(old, null, 2)
    const after = settingsIn(withEntries(text, entries)) as unknown as Settings
    expect(after.hooks.PreToolUse?.map(({ matcher, hooks: each }) => [matcher, each.map((one) => one.command)])).toEqual([['*', ['say a', 'say b']], ['Edit|Write', [command]]])
    expect(settingsIn(withoutEntries(text) ?? '')).toEqual({ hooks: { PreToolUse: [{ matcher: '*', hooks: [{ type: 'command', command: 'say a' }, { type: 'command', command: 'say b' }] }] } })
  })

  it.each([
    ["'/a b/node' '/c/rewind-admin.js' hook claude-code --exclude '*.log'", ['/a b/node', '/c/rewind-admin.js']],
    [String.raw`'/it'\''s/node' '/c/rewind-admin.js' hook claude-code`, ["/it's/node", '/c/rewind-admin.js']],
    ['rewind-admin hook claude-code', ['rewind-admin']],
    ['/usr/bin/rewind-admin hook claude-code --root /x', ['/usr/bin/rewind-admin']],
    ['echo rewind-admin hook generic', undefined],
    ['rewind-admin hook claude-code; say done', undefined],
    ['rewind-admin hook claude-code && say', undefined],
    ['/usr/bin/not-rewind-admin hook claude-code', undefined],
    ['node other.js hook claude-code', undefined],
  ])('%s is known as %j', (line, words) => {
    expect(programOf(line)).toEqual(words)
  })
})
