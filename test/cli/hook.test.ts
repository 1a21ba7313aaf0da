import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { commandTable } from '../../src/cli/commands/table.js'
import { globalOptions } from '../../src/cli/globals.js'
import { hookOptions } from '../../src/cli/hook/options.js'
import { parseHook } from '../../src/cli/hook/parse.js'
import { CapturedStream } from '../../src/cli/output.js'
import { parseArguments } from '../../src/cli/program.js'
import { runCli } from '../../src/cli/run-cli.js'
import { uuidOf } from '../helpers/identity.js'
import { bin, HookWorld, silent, startProgram, type HookEnd } from './hook-world.js'

const [M1, M2] = [uuidOf('hook/m1'), uuidOf('hook/m2')]

describe('hook claude-code', () => {
  it('records a session as its agent works, and the agent sees nothing of it', async () => {
    const world = await HookWorld.make()
    world.write('a.txt', 'one\n')
    const ends: HookEnd[] = []
    ends.push(await world.claude('SessionStart', { source: 'startup' }))
    ends.push(await world.prompt('Change a'))
    world.transcribe(world.userLine(M1, 'Change a'))
    ends.push(await world.before('Edit', 'a.txt'))
    world.write('a.txt', 'two\n')
    ends.push(await world.before('Write', 'new.txt'))
    world.write('new.txt', 'new\n')
    ends.push(await world.prompt('Go on'))
    world.transcribe(world.userLine(M2, 'Go on'))
    ends.push(await world.claude('SessionEnd', { reason: 'other' }))
    expect(ends).toEqual(ends.map(() => silent))

    const { cwd, originals, trackedFiles, snapshots, snapshotSequence, recorder } = world.state
    expect([cwd, trackedFiles, snapshotSequence]).toEqual([world.project, ['a.txt', 'new.txt'], 3])
    expect(snapshots.map(({ kind, key }) => [kind, key])).toEqual([['baseline', 'baseline'], ['operation', M1], ['operation', M2]])
    expect(recorder.messages[0]).toMatchObject({ id: M1, text: 'Change a' })
    expect(world.backup(originals['a.txt']?.backupFileName ?? '').toString()).toBe('one\n')
    expect(originals['new.txt']?.backupFileName).toBeNull()
    expect(world.backup(snapshots[2]?.files['a.txt']?.backupFileName ?? '').toString()).toBe('two\n')
    expect(recorder.endedAt).not.toBeNull()
  })

  it.each(['Edit', 'MultiEdit', 'Write', 'NotebookEdit'])('saves the file that %s is about to change', async (tool) => {
    const world = await HookWorld.make({ inProcess: true })
    world.write('deep/ünï "x".ipynb', 'before\n')
    expect(await world.before(tool, 'deep/ünï "x".ipynb')).toEqual(silent)
    const record = world.state.originals['deep/ünï "x".ipynb']
    expect(world.backup(record?.backupFileName ?? '').toString()).toBe('before\n')
  })

  it.each([
    ['a tool that writes no file', 'PreToolUse', { tool_name: 'Bash', tool_input: { command: 'rm a' } }],
    ['a tool after it ran', 'PostToolUse', { tool_name: 'Edit', tool_input: { file_path: '/a' } }],
    ['an event that is not known', 'SomethingNew', {}],
    ['no event at all', undefined, {}],
  ])('makes nothing for %s', async (_what, event, fields) => {
    const world = await HookWorld.make({ inProcess: true })
    expect(await world.claude(event ?? '', { ...fields, ...(event === undefined ? { hook_event_name: undefined } : {}) })).toEqual(silent)
    expect(existsSync(world.root)).toBe(false)
  })

  it('records what a subagent edits in the session that it belongs to', async () => {
    const world = await HookWorld.make()
    world.write('a.txt', 'one\n')
    await world.claude('PreToolUse', { tool_name: 'Write', tool_input: { file_path: join(world.project, 'a.txt') }, agent_id: 'agent-7', agent_type: 'general-purpose' })
    expect(world.state.trackedFiles).toEqual(['a.txt'])
  })

  it('goes on with a session that is resumed', async () => {
    const world = await HookWorld.make()
    for (const source of ['startup', 'resume', 'compact']) {
      await world.claude('SessionStart', { source })
      await world.prompt(source)
      await world.claude('SessionEnd', { reason: 'other' })
    }
    expect(world.state.snapshots.filter(({ kind }) => kind === 'baseline')).toHaveLength(1)
    await world.claude('SessionStart', { source: 'resume' })
    expect(world.state.recorder.endedAt).toBeNull()
  })

  it('records although the folder that the agent works in is gone', async () => {
    const world = await HookWorld.make()
    world.write('a.txt', 'one\n')
    await world.claude('PreToolUse', { cwd: join(world.project, 'gone'), tool_name: 'Write', tool_input: { file_path: join(world.project, 'a.txt') } })
    expect(world.state.trackedFiles).toEqual(['a.txt'])
  })
})

describe('the message that a turn is for', () => {
  /** What the turn is named after, when these lines come after a prompt and then a hook. */
  async function named(prompt: string, lines: (world: HookWorld) => readonly unknown[], before?: (world: HookWorld) => void): Promise<string | undefined> {
    const world = await HookWorld.make({ inProcess: true })
    world.transcribe(world.userLine(uuidOf('hook/older'), prompt))
    await world.prompt(prompt)
    world.transcribe(...lines(world))
    before?.(world)
    await world.before('Write', 'a.txt')
    const { recorder } = world.state
    const word = recorder.turn?.message
    expect(recorder.messages.map(({ id }) => id)).toEqual([word])
    return word
  }
  const long = `${'x'.repeat(198)}🙂${'y'.repeat(500)}`

  it.each<[string, string, (world: HookWorld) => readonly unknown[]]>([
    ['plain text', 'Change a', (world) => [world.userLine(M1, 'Change a')]],
    ['text among blocks', 'Change a', (world) => [world.userLine(M1, [{ type: 'text', text: 'Change a' }, { type: 'image', source: {} }])]],
    ['text with what the client adds in another block', 'Change a', (world) => [world.userLine(M1, [{ type: 'text', text: 'Change a' }, { type: 'text', text: '<note/>' }])]],
    ['more characters than are kept', long, (world) => [world.userLine(M1, long)]],
    ['a command', '/fix a', (world) => [world.userLine(M1, '<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>a</command-args>')]],
    ['blanks around it', ' Change a\n', (world) => [world.userLine(M1, 'Change a')]],
    ['other lines before it', 'Change a', (world) => [
      { type: 'queue-operation', content: 'Change a', user: '"user"' },
      world.userLine(uuidOf('hook/meta'), 'Change a', { isMeta: true }),
      world.userLine(uuidOf('hook/side'), 'Change a', { isSidechain: true }),
      world.userLine(uuidOf('hook/result'), [{ type: 'tool_result', content: 'Change a' }, { type: 'text', text: 'Change a' }]),
      world.userLine(uuidOf('hook/other'), 'Change all'),
      '{"type":"user", damaged',
      world.userLine(M1, 'Change a'),
      world.userLine(M2, 'Change a'),
    ]],
  ])('is found by its prompt: %s', async (_what, prompt, lines) => {
    expect(await named(prompt, lines)).toBe(M1)
  })

  it.each<[string, (world: HookWorld) => readonly unknown[], ((world: HookWorld) => void)?]>([
    ['is not written yet', () => []],
    ['is written far behind', (world) => [{ type: 'attachment', text: 'x'.repeat(1024 * 1024) }, world.userLine(M1, 'Change a')]],
    ['is written in the target of a link', (world) => [world.userLine(M1, 'Change a')], (world) => {
      const bytes = readFileSync(world.transcript)
      rmSync(world.transcript)
      writeFileSync(join(world.home, 'elsewhere'), bytes)
      symlinkSync(join(world.home, 'elsewhere'), world.transcript)
    }],
    ['would have to be read from a pipe', () => [], (world) => {
      rmSync(world.transcript)
      execFileSync('mkfifo', [world.transcript])
    }],
  ])('keeps its own word while the message %s', async (_what, lines, before) => {
    expect(await named('Change a', lines, before)).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/)
  })

  it('is found at a later event, the next prompt and the end included', async () => {
    const world = await HookWorld.make()
    await world.prompt('First')
    await world.before('Write', 'a.txt')
    world.transcribe(world.userLine(M1, 'First'))
    await world.prompt('Second')
    world.transcribe(world.userLine(M2, 'Second'))
    await world.claude('SessionEnd', { reason: 'other' })
    expect(world.state.recorder.messages.map(({ id }) => id)).toEqual([M1, M2])
    expect(world.state.recorder.turn?.transcript).toBeUndefined()
  })

  it('is not looked for where no prompt was recorded', async () => {
    const world = await HookWorld.make()
    expect(await world.prompt('')).toEqual(silent)
    world.transcribe(world.userLine(M1, ''))
    expect(await world.before('Write', 'a.txt')).toEqual(silent)
    expect(world.state.recorder.turn?.message).not.toBe(M1)
  })
})

describe('hook generic', () => {
  it('records an edit that comes before anything else of its session', async () => {
    const world = await HookWorld.make()
    world.write('a.txt', 'one\n')
    expect(await world.generic({ event: 'edit', paths: ['a.txt'] }, '--verbose')).toMatchObject({ code: 0, stderr: expect.stringContaining('a.txt: recorded') as string })
    expect(world.state.snapshots.map(({ kind }) => kind)).toEqual(['baseline'])
    expect(world.backup(world.state.originals['a.txt']?.backupFileName ?? '').toString()).toBe('one\n')
  })


  it('records for any agent: messages by their ids, files by path', async () => {
    const world = await HookWorld.make({ session: 'any session of 2026' })
    world.write('a.txt', 'one\n')
    const ends = [
      await world.generic({ event: 'session-start' }),
      await world.generic({ event: 'turn', message: 'message-1', text: 'Change a' }),
      await world.generic({ event: 'edit', paths: ['a.txt', join(world.project, 'a.txt'), 'b/new.txt'] }),
      await world.generic({ event: 'turn', message: 'message-1', text: 'Change a' }),
      await world.generic({ event: 'session-end' }),
    ]
    expect(ends).toEqual(ends.map(() => silent))
    const { snapshots, trackedFiles, recorder } = world.state
    expect(snapshots.map(({ key }) => key)).toEqual(['baseline', 'message-1'])
    expect(recorder.messages[0]).toMatchObject({ id: 'message-1', text: 'Change a' })
    expect(trackedFiles).toEqual(['a.txt', join('b', 'new.txt')])
    expect(recorder.endedAt).not.toBeNull()
  })
})

describe('what a hook does when something is wrong', () => {
  const wrong: readonly (readonly [string, string])[] = [
    ['nothing', ''],
    ['no JSON', '{"session_id": "s",'],
    ['a list', '[]'],
    ['no session', '{"hook_event_name":"SessionStart","cwd":"/"}'],
    ['a session that is a path', '{"hook_event_name":"SessionStart","session_id":"../../x","cwd":"/"}'],
    ['no file', '{"hook_event_name":"PreToolUse","tool_name":"Edit","session_id":"s","cwd":"/"}'],
  ]
  it.each(wrong)('holds nobody up for an input that is %s', async (_what, input) => {
    const world = await HookWorld.make()
    expect(await world.program(['hook', 'claude-code'], input)).toEqual(silent)
    const { code, stdout, stderr } = await world.program(['hook', 'claude-code', '--verbose'], input)
    expect([code, stdout]).toEqual([0, ''])
    expect(stderr).toMatch(/"level":"warn".*nothing was recorded/)
  })

  it.each([
    [{ event: 'typo' }, /no event that is known/],
    [{ event: 'edit' }, /names no file/],
    [{ event: 'edit', paths: ['a', 7] }, /names no file/],
  ])('tells an agent of its own what is wrong with %j when asked', async (fields, words) => {
    const world = await HookWorld.make()
    const { code, stderr } = await world.generic(fields, '--verbose')
    expect([code, words.test(stderr)]).toEqual([0, true])
  })

  it('writes what went wrong to the log file', async () => {
    const world = await HookWorld.make()
    const log = join(world.home, 'hook.log')
    expect(await world.program(['hook', 'claude-code', '--log-file', log], 'no JSON')).toEqual(silent)
    expect(JSON.parse(readFileSync(log, 'utf8'))).toMatchObject({ level: 'warn', msg: 'nothing was recorded: the input of the hook is no JSON' })
    expect(await world.program(['hook', 'claude-code', '--log-file', join(world.home, 'no/folder/log')], 'no JSON')).toEqual(silent)
  })

  it.each([
    [['claude-code', '--evry-turn'], "Unknown option '--evry-turn'"],
    [['claude-kode'], 'hook cannot use "claude-kode"'],
    [[], 'hook cannot use ""'],
    [['generic', 'more'], 'hook cannot use "more"'],
    [['generic', '--time-limit', 'soon'], '--time-limit soon'],
    [['generic', '--time-limit', '0s'], '--time-limit 0s leaves no time'],
    [['generic', '--time-limit', '1s', '--time-limit', '2s'], '--time-limit was given twice'],
    [['generic', '--max-file-bytes', 'many'], '--max-file-bytes needs a number'],
    [['generic', '--max-file-bytes=-1'], '--max-file-bytes must be a whole number'],
    [['generic', '--root', '/a', '--root', '/b'], 'a hook records in one store: --root was given twice'],
    [['generic', '--root='], '--root is empty'],
    [['generic', '--store', 'nonsense'], 'store cannot be nonsense'],
  ])('ends with 1 for the command line hook %j, never with 2, which would stop the agent', async (words, message) => {
    const world = await HookWorld.make()
    const { code, stdout, stderr } = await world.program(['hook', ...words])
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain(`rewind-admin: ${message}`)
  })

  it('does not wait for the end of its input once the JSON is whole', async () => {
    const world = await HookWorld.make()
    const { child, end } = startProgram(['hook', 'generic', '--time-limit', '60s'], { HOME: world.home }, world.project)
    child.stdin.write('{"event":"session-start","session":"s","cwd":')
    await new Promise((resolve) => child.stdin.write(`${JSON.stringify(world.project)}}\n`, resolve))
    expect(await end).toEqual(silent)
    expect(existsSync(join(world.root, 's/state.json'))).toBe(true)
  })

  it('ends when its time is over although no input came', async () => {
    const world = await HookWorld.make()
    const { end } = startProgram(['hook', 'generic', '--time-limit', '1s', '--verbose'], { HOME: world.home }, world.project)
    const { code, stderr } = await end
    expect(code).toBe(0)
    expect(stderr).toContain('did not come in time')
  })
})

describe('the options of a hook', () => {
  it('--root and REWIND_ADMIN_RECORDS say where the store is', async () => {
    const world = await HookWorld.make()
    await world.program(['--root', '~/records', 'hook', 'generic'], JSON.stringify({ event: 'session-start', session: 's', cwd: world.project }))
    expect(existsSync(join(world.home, 'records/s/state.json'))).toBe(true)
    const { child, end } = startProgram(['hook', 'generic'], { HOME: world.home, REWIND_ADMIN_RECORDS: join(world.home, 'other') }, world.project)
    child.stdin.end(JSON.stringify({ event: 'session-start', session: 's', cwd: world.project }))
    await end
    expect(existsSync(join(world.home, 'other/s/state.json'))).toBe(true)
  })

  it('--exclude leaves out, --no-default-excludes takes back in', async () => {
    const world = await HookWorld.make()
    for (const name of ['a.log', '.env', 'a.txt']) world.write(name, 'x')
    const all = { event: 'edit', paths: ['a.log', '.env', 'a.txt'] }
    await world.generic(all, '--exclude', '*.log', '--exclude', '*.tmp')
    expect(world.state.trackedFiles).toEqual(['a.txt'])
    await world.generic(all, '--no-default-excludes')
    expect(world.state.trackedFiles).toEqual(['a.txt', 'a.log', '.env'])
  })

  it('--max-file-bytes leaves a gap for what is larger', async () => {
    const world = await HookWorld.make()
    world.write('a.txt', 'twelve bytes')
    world.write('b.txt', 'twelve byte')
    await world.generic({ event: 'edit', paths: ['a.txt', 'b.txt'] }, '--max-file-bytes', '11')
    expect(world.state.originals['a.txt']?.gap).toBe('it had 12 bytes, more than the limit of 11')
    expect(world.state.originals['b.txt']?.gap).toBeUndefined()
  })

  it('--every-turn gives each message a checkpoint of its own', async () => {
    const counts: number[] = []
    for (const options of [[], ['--every-turn']]) {
      const world = await HookWorld.make()
      world.write('a.txt', 'one\n')
      await world.generic({ event: 'edit', paths: ['a.txt'] })
      for (const message of ['m1', 'm2', 'm3']) await world.generic({ event: 'turn', message }, ...options)
      counts.push(world.state.snapshots.length)
    }
    expect(counts).toEqual([2, 4])
  })

  it('are understood as the parser of the other commands understands them', async () => {
    const value = (name: string, option: { readonly type?: string; readonly choices?: readonly string[] }): string[] =>
      option.type === 'boolean' ? [`--${name}`] : [`--${name}`, option.choices?.[0] ?? (option.type === 'number' ? '7' : '2026-11-30')]
    for (const [name, option] of Object.entries({ ...hookOptions, ...globalOptions })) {
      const words = value(name, option)
      const request = await parseArguments(['hook', 'generic', ...words], { commands: commandTable, stdout: new CapturedStream(), cwd: '/' })
      if (request.kind !== 'command') throw new Error(name)
      expect([name, parseHook(['hook', 'generic', ...words]).argv]).toEqual([name, { [name]: request.argv[name] }])
    }
  })

  it('are in the help of the command, which is asked for as for any other', async () => {
    const world = await HookWorld.make()
    const { code, stdout } = await world.program(['hook', '--help'])
    expect(code).toBe(0)
    for (const name of Object.keys(hookOptions)) expect(stdout).toContain(`--${name}`)
    expect((await world.program(['hook', 'claude-code', '-h'])).stdout).toBe(stdout)
  })

  it('a session that is called hook is no hook', async () => {
    const world = await HookWorld.make()
    mkdirSync(dirname(world.transcript), { recursive: true })
    const { code, stderr } = await world.program(['show', 'hook', '--root', join(world.home, '.claude')])
    expect([code, stderr.includes('no session begins with hook')]).toEqual([1, true])
  })

  it('in a program that runs command lines itself, a hook is refused: it is for a process of its own', async () => {
    expect(await runCli(['hook', 'generic'], { env: {}, cwd: '/', home: '/' })).toMatchObject({ exitCode: 2, stdout: '' })
  })
})

describe('the way of a hook', () => {
  it('loads neither the parser, nor the log, nor what checks configurations', async () => {
    const world = await HookWorld.make()
    const loader = join(world.home, 'loader.mjs')
    const source = 'export async function load(url, context, next) { process._rawDebug("loaded " + url); return next(url, context) }'
    writeFileSync(loader, `import { register } from 'node:module'\nregister('data:text/javascript,' + encodeURIComponent(${JSON.stringify(source)}))`)
    const { stderr, status } = spawnSync(process.execPath, ['--import', pathToFileURL(loader).href, bin, 'hook', 'generic'], {
      encoding: 'utf8',
      input: JSON.stringify({ event: 'edit', paths: ['a.txt'], session: 's', cwd: world.project }),
      env: { HOME: world.home },
    })
    const loaded = stderr.split('\n').filter((line) => line.startsWith('loaded file:'))
    expect(status).toBe(0)
    expect(loaded.some((line) => line.endsWith('/recorder/recorder.js'))).toBe(true)
    const packages = new Set(loaded.flatMap((line) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(line)?.[1] ?? []))
    expect([...packages].sort()).toEqual(['ignore', 'p-limit', 'yocto-queue'])
    expect(loaded.length).toBeLessThan(70)
  })
})
