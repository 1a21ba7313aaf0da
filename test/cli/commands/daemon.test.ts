import { spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { StoppedError } from '../../../src/cli/errors.js'
import { runCli, type CliResult } from '../../../src/cli/run-cli.js'
import { S1, S2 } from '../../helpers/store.js'
import { notes, now, type Envelope } from '../world.js'

/** The daemon of a home with a clock that goes on only while it sleeps and no run is at work; SIGTERM after so many hours. */
async function daemon(home: string, hours: number, ...argv: readonly string[]): Promise<CliResult & { readonly status: Record<string, unknown> }> {
  const controller = new AbortController()
  const file = join(home, 'health.json')
  const read = (): Record<string, unknown> => JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
  let time = now
  const result = await runCli(['daemon', '--status-file', file, ...argv], {
    env: {},
    cwd: home,
    home,
    clock: () => time,
    signal: controller.signal,
    sleep: async (ms) => {
      while (read().state === 'running') await pause(2)
      time += ms
      if (time >= now + hours * 3_600_000) controller.abort(new StoppedError('SIGTERM'))
    },
  })
  return { ...result, status: read() }
}

describe('daemon', () => {
  it('runs the job whenever it is due as run would, says each on stderr, and ends with 143 after SIGTERM', async () => {
    const { home, root, cli } = await notes()
    const { exitCode, stdout, stderr, status } = await daemon(home, 3.5, '--at', '@hourly', '--apply', '--root', root, '--json')
    expect(exitCode).toBe(143)
    const report = JSON.parse(stdout) as Envelope
    expect(report).toMatchObject({ command: 'daemon', applied: true, summary: { job: 'nightly', at: '0 * * * *', runs: 3, failed: 0, skipped: 0, missed: 0 } })
    expect(stderr.match(/nightly: exit code 0, 1 actions/g)).toHaveLength(1)
    expect(stderr.match(/nightly: exit code 0, 0 actions/g)).toHaveLength(2)
    expect(status).toMatchObject({ state: 'stopped', counts: { runs: 3 } })
    expect(await cli.json('status', S2)).toMatchObject({ summary: { state: 'expired' } })
    expect(await cli.json('status', S1)).toMatchObject({ summary: { state: 'there' } })
  })

  it('without --apply only looks', async () => {
    const { home, root, cli } = await notes()
    await daemon(home, 1, '--at', '@hourly', '--root', root)
    expect(existsSync(join(root, '.rewind-admin'))).toBe(false)
    expect(await cli.json('status', S2)).toMatchObject({ summary: { state: 'there' } })
  })

  it('goes on when the store cannot be worked on, says why, and removes nothing after that', async () => {
    const { home, root } = await notes()
    writeFileSync(join(root, 'settings.json'), '{')
    const { stderr, status } = await daemon(home, 2.5, '--at', '@hourly', '--apply', '--root', root)
    // The second run is held back by the failure of the first one, which is no failure of its own.
    expect(status).toMatchObject({ counts: { runs: 2, failed: 1 }, lastRun: { exitCode: 0 } })
    expect(stderr).toContain('settings.json')
    const gone = await daemon(home, 1.5, '--at', '@hourly', '--root', join(home, 'none'))
    expect(gone.status).toMatchObject({ counts: { runs: 1, failed: 1 }, lastRun: { exitCode: 10 } })
  })

  it.each([
    [['--job', 'nigthly'], 'there is no job called nigthly'],
    [['--at', '25:00'], 'no time to run at'],
    [['--status-file', '/no/such/folder/x'], 'the status file cannot be written'],
  ])('is refused at once, not at night: %j', async (argv, message) => {
    const { home } = await notes()
    const { exitCode, stderr } = await runCli(['daemon', ...argv], { env: {}, cwd: home, home, sleep: () => Promise.reject(new Error('it waited')) })
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(message)])
  })

  it('as a true process runs every second until SIGTERM, and leaves a status file and no lock', async () => {
    const { home, root } = await notes()
    const file = join(home, 'health.json')
    const child = spawn(process.execPath, [resolve('bin/rewind-admin.js'), 'daemon', '--at', '* * * * * *', '--apply', '--root', root, '--status-file', file], { stdio: ['ignore', 'pipe', 'pipe'], cwd: home, env: { PATH: process.env.PATH, HOME: home } })
    child.stdout.resume()
    child.stderr.resume()
    const closed = new Promise<number | null>((done) => child.on('close', done))
    const runs = (): number => (existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { counts: { runs: number } }).counts.runs : 0)
    while (child.exitCode === null && runs() < 2) await pause(50)
    child.kill('SIGTERM')
    expect(await closed).toBe(143)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ state: 'stopped', counts: { failed: 0 } })
    expect(existsSync(join(root, '.rewind-admin/lock'))).toBe(false)
  })
})
