import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { CommandContext } from '../../src/cli/context.js'
import { StoppedError } from '../../src/cli/errors.js'
import { CapturedStream } from '../../src/cli/output.js'
import { runCli } from '../../src/cli/run-cli.js'
import * as errors from '../../src/model/errors.js'
import { finding } from '../../src/model/finding.js'
import { emptyReport, hostWith } from './reports.js'

const folder = mkdtempSync(join(tmpdir(), 'rewind-admin-cli-'))
afterAll(() => {
  rmSync(folder, { recursive: true })
})

/** Runs `try` with these words and hands back what the command was given. */
async function given(argv: readonly string[]): Promise<{ context: CommandContext; options: Readonly<Record<string, unknown>> }> {
  let seen: { context: CommandContext; options: Readonly<Record<string, unknown>> } | undefined
  const result = await runCli(
    argv,
    hostWith((context, options) => {
      seen = { context, options }
      return Promise.resolve({ report: emptyReport({ command: 'try' }) })
    }),
  )
  if (seen === undefined) throw new Error(`the command did not run: ${result.stderr}`)
  return seen
}

function failing(error: unknown): ReturnType<typeof hostWith> {
  return hostWith(() => {
    throw error
  })
}

class TerminalStream extends CapturedStream {
  override readonly isTTY = true as never
}

describe('the command line', () => {
  it('keeps ids as text, also those that look like numbers', async () => {
    expect((await given(['try', '1e5', '0x10', '007'])).options).toMatchObject({ session: ['1e5', '0x10', '007'] })
  })

  it('takes global options before and after the command, and aliases', async () => {
    const { context } = await given(['--root', 'a', 't', 'one', '--root=/b', '--root=~/c', '--store', 'qwen-code', '--cwd', 'sub'])
    expect(context.globals).toMatchObject({
      roots: ['/cwd/a', '/b', '/home/u/c'],
      store: 'qwen-code',
      baseFolder: '/cwd/sub',
      json: false,
      now: undefined,
    })
  })

  it('gives options by camel-case name, with numbers as numbers', async () => {
    expect((await given(['try', '--fail-on', 'warn', '--top=3', '--apply'])).options).toMatchObject({ failOn: 'warn', top: 3, apply: true })
  })

  it.each([
    [['tyr'], 'did you mean try?'],
    [[], 'no command was given'],
    [['try', '--aply'], 'aply'],
    [['try', '--fail-on', 'bad'], 'fail-on cannot be "bad"'],
    [['try', '--top', 'x'], '--top needs a number'],
    [['try', '--top', '1', '--top', '2'], '--top was given twice'],
    [['try', '--now', '2026-01-01', '--now', '2026-01-02'], '--now was given twice'],
    [['try', '--top'], 'Not enough arguments following: top'.toLowerCase()],
    [['try', '--root', ''], 'root'],
    [['try', '--root', '', 'x'], 'root'],
    [['try', ''], 'session is empty'],
    [['try', '--', '-x'], 'what follows --: -x'],
    [['try', '--now', 'yesterday'], '--now is no time: yesterday'],
    [['try', '--now', '2026-13-01'], '--now is no time'],
    [['try', '--quiet', '--verbose'], '--quiet and --verbose'],
    [['try', '--store', 'claude'], 'store cannot be "claude"'],
    [['help', 'nonsense'], 'no'],
  ])('%j ends with 2, says why on stderr and runs nothing', async (argv, words) => {
    let ran = false
    const result = await runCli(
      argv,
      hostWith(() => {
        ran = true
        return Promise.resolve({ report: emptyReport() })
      }),
    )
    expect(result).toMatchObject({ exitCode: 2, stdout: '' })
    expect(result.stderr.toLowerCase()).toContain(words.toLowerCase())
    expect(result.stderr).toMatch(/^rewind-admin: .+\n/)
    expect(ran).toBe(false)
  })

  it.each([[['try', '--help']], [['help', 'try']], [['help', 't']]])('%j explains the command, with its example', async (argv) => {
    const result = await runCli(argv, failing(new Error('must not run')))
    expect(result.exitCode).toBe(0)
    expect(result.stdout).toContain('rewind-admin try [session..] [options]')
    expect(result.stdout).toContain('rewind-admin try one')
    expect(result.stdout).toContain('--fail-on')
    expect(result.stdout).not.toContain('--now')
  })

  it('lists commands with --help and the version with --version, wherever it stands', async () => {
    expect((await runCli(['--help'], failing(''))).stdout).toMatch(/rewind-admin try \[session\.\.\] +Try it/)
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
    expect((await runCli(['try', '--version'], failing(''))).stdout).toBe(`${version}\n`)
  })

  it('works with the time of --now, so that runs can be repeated', async () => {
    const { context } = await given(['try', '--now', '2026-01-31T04:00:00+01:00'])
    expect(context.now()).toBe(Date.UTC(2026, 0, 31, 3))
    const { stdout } = await runCli(
      ['try', '--json', '--now', '2026-01-31'],
      hostWith(() => Promise.resolve({ report: emptyReport() })),
    )
    expect(JSON.parse(stdout)).toMatchObject({ startedAt: '2026-01-31T00:00:00.000Z' })
  })
})

describe('results', () => {
  it('go to stdout in the format asked for, with the exit code of the report', async () => {
    const host = hostWith(() =>
      Promise.resolve({ report: emptyReport({ exitCode: 1, next: 'rewind-admin repair' }), text: () => ({ body: 'own text\n' }) }),
    )
    expect(await runCli(['try'], host)).toEqual({ exitCode: 1, stdout: 'own text\n\nrewind-admin repair\n', stderr: '' })
    const { stdout, exitCode } = await runCli(['try', '--json'], host)
    expect([JSON.parse(stdout), exitCode]).toMatchObject([{ command: 'verify', exitCode: 1 }, 1])
  })

  it.each([
    ['always', {}, false, true],
    ['never', {}, true, false],
    ['auto', {}, true, true],
    ['auto', {}, false, false],
    ['auto', { NO_COLOR: '1' }, true, false],
    ['auto', { NO_COLOR: '' }, true, true],
    ['always', { NO_COLOR: '1' }, true, true],
    ['auto', { TERM: 'dumb' }, true, false],
  ] as const)('with --color %s, %j, terminal %s: colours %s', async (color, env, terminal, coloured) => {
    const stdout = terminal ? new TerminalStream() : new CapturedStream()
    const host = hostWith(() => Promise.resolve({ report: emptyReport({ findings: [finding('busy', 'x')] }) }), { env, stdout })
    await runCli(['try', '--color', color], host)
    expect(stdout.text.includes('\u001b[')).toBe(coloured)
  })

  it('--no-color is --color never', async () => {
    const stdout = new TerminalStream()
    await runCli(
      ['try', '--no-color'],
      hostWith(() => Promise.resolve({ report: emptyReport({ findings: [finding('busy', 'x')] }) }), { stdout }),
    )
    expect(stdout.text).not.toContain('\u001b[')
  })
})

describe('errors', () => {
  it.each([
    [new errors.UsageError('m'), 2, 'USAGE'],
    [new errors.ConfigError('m'), 2, 'CONFIG'],
    [new errors.NoMatchError('m'), 1, 'NO_MATCH'],
    [new errors.FenceError('m'), 3, 'FENCE'],
    [new errors.BrakeError('m'), 4, 'BRAKE'],
    [new errors.NoStoreError('m'), 10, 'NO_STORE'],
    [new errors.LockedError('m'), 11, 'LOCKED'],
    [new errors.NewerFormatError('m'), 12, 'NEWER_FORMAT'],
    [new errors.NoSpaceError('m'), 28, 'NO_SPACE'],
    [new errors.RetentionUnknowableError('m'), 65, 'RETENTION_UNKNOWABLE'],
    [Object.assign(new Error('m'), { code: 'ENOSPC' }), 28, 'NO_SPACE'],
    [Object.assign(new Error('m'), { code: 'EDQUOT' }), 28, 'NO_SPACE'],
    [Object.assign(new Error('m'), { code: 'EACCES' }), 2, 'EACCES'],
    [new Error('m'), 2, 'INTERNAL'],
    ['m', 2, 'INTERNAL'],
  ])('%s ends with %i, in words and in the envelope as %s (R123)', async (error, exitCode, code) => {
    const plain = await runCli(['try'], failing(error))
    expect(plain).toMatchObject({ exitCode, stdout: '' })
    expect(plain.stderr).toMatch(/^rewind-admin: m\n/)
    const asJson = await runCli(['try', '--json', '--root', '/r'], failing(error))
    expect(JSON.parse(asJson.stdout)).toMatchObject({
      schemaVersion: 1,
      command: 'try',
      root: '/r',
      applied: false,
      errors: [{ code, message: 'm' }],
      exitCode,
    })
    expect(asJson.exitCode).toBe(exitCode)
  })

  it('give the hint, and the path of a system error', async () => {
    expect((await runCli(['try'], failing(new errors.LockedError('held', { hint: 'wait' })))).stderr).toBe('rewind-admin: held\n  wait\n')
    const { stdout } = await runCli(['try', '--json'], failing(Object.assign(new Error('m'), { code: 'EIO', path: '/p' })))
    expect(JSON.parse(stdout)).toHaveProperty('errors', [{ code: 'EIO', path: '/p', message: 'm' }])
  })

  it('show a stack only with --verbose', async () => {
    expect((await runCli(['try'], failing(new Error('m')))).stderr).not.toContain('    at ')
    expect((await runCli(['try', '--verbose'], failing(new Error('m')))).stderr).toContain('    at ')
  })

  it('never drive the terminal with what they quote', async () => {
    expect((await runCli(['try'], failing(new errors.NoMatchError('no \u001b[2J\nx', { hint: '\u0007' })))).stderr).toBe(
      'rewind-admin: no \\u001b[2J\\u000ax\n  \\u0007\n',
    )
  })

  it('answer in JSON even when the command line cannot be understood', async () => {
    const { stdout, exitCode } = await runCli(['try', '--bogus', '--json'], failing(''))
    expect(JSON.parse(stdout)).toMatchObject({ command: 'try', errors: [{ code: 'USAGE' }], exitCode: 2 })
    expect(exitCode).toBe(2)
  })

  it('a module that cannot be loaded is an internal error', async () => {
    const host = {
      ...failing(''),
      commands: [{ name: 'try', usage: '', describe: 'd', example: 'try', load: () => Promise.reject(new Error('broken')) }],
    }
    expect(await runCli(['try'], host)).toMatchObject({ exitCode: 2 })
  })
})

describe('signals', () => {
  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s lets the command hand back what it did and ends with %i', async (name, code) => {
    const controller = new AbortController()
    const host = hostWith(
      (context) => {
        controller.abort(new StoppedError(name))
        return Promise.resolve({ report: emptyReport({ summary: { stopped: context.signal.aborted } }) })
      },
      { signal: controller.signal },
    )
    const { exitCode, stdout } = await runCli(['try', '--json'], host)
    expect([exitCode, JSON.parse(stdout)]).toMatchObject([code, { exitCode: code, summary: { stopped: true } }])
  })

  it('a command may also throw the reason', async () => {
    const host = hostWith(
      (context) => {
        context.signal.throwIfAborted()
        return Promise.reject(new Error('not aborted'))
      },
      { signal: AbortSignal.abort(new StoppedError('SIGTERM')) },
    )
    expect(await runCli(['try'], host)).toMatchObject({ exitCode: 143, stderr: expect.stringContaining('stopped by SIGTERM') as string })
  })
})

describe('the log', () => {
  const logging = hostWith(
    (context) => {
      context.logger.debug({ n: 1 }, 'fine')
      context.logger.warn({ path: 'a\u001bb' }, 'odd')
      return Promise.resolve({ report: emptyReport() })
    },
    { clock: () => Date.UTC(2026, 0, 31) },
  )

  it('is lines of JSON on stderr: warnings, all with --verbose, none of these with --quiet', async () => {
    const levels = async (...argv: string[]): Promise<unknown[]> =>
      (await runCli(['try', ...argv], logging)).stderr
        .split('\n')
        .filter(Boolean)
        .map((line) => (JSON.parse(line) as { level: unknown }).level)
    expect(await levels()).toEqual(['warn'])
    expect(await levels('--verbose')).toEqual(['debug', 'warn'])
    expect(await levels('--quiet')).toEqual([])
  })

  it('goes to --log-file instead, readable by its owner only, and is appended', async () => {
    const file = join(folder, 'run.log')
    for (const time of ['first', 'second'])
      expect(await runCli(['try', '--log-file', file], logging), time).toMatchObject({ stderr: '', exitCode: 0 })
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
    expect(lines).toEqual(Array(2).fill('{"level":"warn","time":"2026-01-31T00:00:00.000Z","path":"a\\u001bb","msg":"odd"}'))
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it('a log file that cannot be opened is a usage error, before anything runs', async () => {
    const result = await runCli(['try', '--log-file', join(folder, 'none/run.log')], failing(new Error('ran')))
    expect(result).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('the log file cannot be opened') as string })
  })
})
