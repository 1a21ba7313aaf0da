import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { StoppedError } from '../../../src/cli/errors.js'
import { emptyRoot, S1, S2, setTime, writeStoreFile } from '../../helpers/store.js'
import { agentsView, cliIn, dayMs, manyOld, notes, oldTime, young } from '../world.js'

describe('expire --apply', () => {
  it('moves whole sessions into the trash, and trash restore brings back every byte, mode and time', async () => {
    const { root, cli } = await notes()
    const before = agentsView(root)
    const { runId = '', summary } = await cli.json('expire', '--apply', '--root', root)
    expect(summary).toMatchObject({ expired: 1, kept: 1 })
    expect(existsSync(join(root, `projects/-home-u-notes/${S2}.jsonl`))).toBe(false)
    expect(existsSync(join(root, `file-history/${S2}`))).toBe(false)
    const restored = await cli('trash', 'restore', runId, '--root', root)
    expect([restored.exitCode, restored.stderr]).toEqual([0, ''])
    expect(agentsView(root)).toEqual(before)
  })

  it('says in words what was done and what was kept, with reasons', async () => {
    const { root, cli } = await notes()
    const { exitCode, stdout } = await cli('expire', '--apply', '--root', root)
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/^Done: 1 action, \d+ B\n/m)
    expect(stdout).toContain('older than 30 days (user settings')
    expect(stdout).toMatch(/Kept: 1 session\n.*within the period of 30 days/)
    expect(stdout).not.toContain('--apply')
  })

  it('R86: --max-bytes takes the oldest sessions until the limit, and names it as the reason', async () => {
    const { root, cli, transcripts } = await notes()
    const limit = String(transcripts.new + 23)
    const report = await cli.json('expire', '--max-bytes', limit, '--apply', '--root', root)
    expect(report).toMatchObject({ exitCode: 0, plan: [{ session: S2 }], summary: { budget: { maxBytes: Number(limit), left: Number(limit) } } })
    expect(String(report.plan[0]?.reason)).toContain('older than 1 day (the floor of --max-bytes); the oldest go until')
    expect(await cli.json('expire', '--max-bytes', limit, '--root', root)).toMatchObject({ exitCode: 0, plan: [] })
  })

  it('does nothing more the second time', async () => {
    const { root, cli } = await notes()
    await cli('expire', '--apply', '--root', root)
    const after = agentsView(root)
    expect(await cli.json('expire', '--apply', '--root', root)).toMatchObject({ exitCode: 0, plan: [], summary: { sessions: 1 } })
    expect(agentsView(root)).toEqual(after)
  })

  it('--no-trash removes for good, and the tombstone stays', async () => {
    const { root, cli } = await notes()
    expect((await cli('expire', '--apply', '--no-trash', '--root', root)).exitCode).toBe(0)
    expect(existsSync(join(root, `projects/-home-u-notes/${S2}.jsonl`))).toBe(false)
    expect((await cli.json('trash', 'list', '--root', root)).summary).toEqual({ entries: 0, bytes: 0 })
    expect(await cli.json('status', S2, '--root', root)).toMatchObject({ exitCode: 1, summary: { state: 'expired' } })
  })

  it('R124: --removed-out names the sessions that are gone, one a line', async () => {
    const { home, root, cli } = await notes()
    await cli('expire', '--apply', '--removed-out', 'gone.txt', '--root', root)
    expect(readFileSync(join(home, 'gone.txt'), 'utf8')).toBe(`${S2}\n`)
    expect(statSync(join(home, 'gone.txt')).mode & 0o777).toBe(0o600)
  })

  it('--removed-out that cannot be written is an error of the report, which still says what was done', async () => {
    const { home, root, cli } = await notes()
    const report = await cli.json('expire', '--apply', '--removed-out', join(home, 'none/gone.txt'), '--root', root)
    expect(report).toMatchObject({ exitCode: 3, applied: true, plan: [{ session: S2 }], errors: [{ code: 'ENOENT', path: join(home, 'none/gone.txt') }] })
  })

  it('R05: with a retention that cannot be known ends with 65 and removes nothing', async () => {
    const { root, cli } = await notes()
    writeFileSync(join(root, 'settings.json'), '{"cleanupPeriodDays":0}')
    const before = agentsView(root)
    for (const more of [[], ['--older-than', '1d']]) {
      expect(await cli.json('expire', '--apply', ...more, '--root', root)).toMatchObject({ exitCode: 65, errors: [{ code: 'RETENTION_UNKNOWABLE' }], plan: [] })
    }
    expect(agentsView(root)).toEqual(before)
  })

  it('R07: a plan above the brake ends with 4 and removes nothing until a flag names the limit', async () => {
    const root = await emptyRoot()
    const cli = cliIn(dirname(root))
    manyOld(root, 51)
    young(root)
    const before = agentsView(root)
    const stopped = await cli('expire', '--apply', '--root', root)
    expect([stopped.exitCode, stopped.stdout]).toEqual([4, ''])
    expect(stopped.stderr).toContain('removes 51 of 52 sessions; at most 50')
    expect(stopped.stderr).toContain('--max-delete 51')
    for (const limit of ['50', '97%']) expect([limit, (await cli('expire', '--apply', '--max-delete', limit, '--root', root)).exitCode]).toEqual([limit, 4])
    expect(agentsView(root)).toEqual(before)
    expect((await cli.json('expire', '--apply', '--max-delete', '51', '--root', root)).plan).toHaveLength(51)
  })

  it('the brake of the configuration counts where no flag does', async () => {
    const { home, root, cli } = await notes()
    writeStoreFile(home, '.config/rewind-admin/rewind-admin.config.json', '{"brake": {"sessions": 0, "percent": 10}}')
    expect((await cli('expire', '--apply', '--root', root)).exitCode).toBe(4)
    expect((await cli('expire', '--apply', '--max-delete', '1', '--root', root)).exitCode).toBe(0)
  })

  it.each([
    ['--older-than 58d', 1],
    ['--older-than 61d', 0],
    ['--older-than 1d --quiet-period 0s', 2],
    ['--older-than 1d --floor 30d', 1],
    ['--older-than 1d --quiet-period 40d', 1],
  ])('%s expires %i of a session of yesterday and one of 60 days ago', async (words, count) => {
    const { root, cli } = await notes()
    expect((await cli.json('expire', ...words.split(' '), '--root', root)).plan).toHaveLength(count)
  })

  it('--now stands for the clock everywhere: exactly at the threshold a session stays, a millisecond later it goes', async () => {
    const { root, cli } = await notes()
    const at = (ms: number): string => new Date(Date.parse(oldTime) + 30 * dayMs + ms).toISOString()
    for (const folder of [`file-history/${S1}`, `projects/-home-u-notes/${S1}.jsonl`]) setTime(join(root, folder), oldTime)
    const take = async (time: string): Promise<unknown[]> =>
      (await cli.json('expire', '--no-clock-check', '--root', root, '--now', time)).plan.map(({ session }) => session)
    expect(await take(at(0))).toEqual([])
    expect(await take(at(1))).toEqual([S2])
    const { runId } = await cli.json('expire', '--no-clock-check', '--apply', '--root', root, '--now', at(1))
    expect(runId).toMatch(/^20261031T090000001Z-/)
    expect((await cli.json('trash', 'list', '--root', root)).entries).toMatchObject([{ trashedAt: '2026-10-31T09:00:00.001Z' }])
  })

  it('R08: a clock that looks wrong stops it, unless told to go on', async () => {
    const { root, cli } = await notes()
    const late = ['--now', '2028-03-01T00:00:00Z', '--root', root]
    expect(await cli.json('expire', '--apply', ...late)).toMatchObject({ exitCode: 1, plan: [], findings: [{ id: 'clock-looks-wrong' }] })
    expect((await cli.json('expire', '--no-clock-check', ...late)).plan).toHaveLength(2)
  })

  it('R04: a session that appeared after the first run with old dates gets a period of its own, unless told otherwise', async () => {
    const { root, cli } = await notes()
    await cli('expire', '--apply', '--root', root)
    const [copied = ''] = manyOld(root, 1, 'copied')
    expect((await cli.json('expire', '--root', root)).plan).toEqual([])
    expect((await cli.json('expire', '--no-grace', '--root', root)).plan).toMatchObject([{ session: copied }])
  })

  it('R104: a session that a process has open stays, also when it is old', async () => {
    const { root, cli } = await notes()
    writeStoreFile(root, `sessions/${String(process.pid)}.json`, JSON.stringify({ pid: process.pid, sessionId: S2 }))
    const { plan, kept } = await cli.json('expire', '--apply', '--root', root)
    expect(plan).toEqual([])
    expect(kept).toContainEqual({ session: S2, reason: expect.stringContaining(`open in process ${String(process.pid)}`) as string })
  })

  it.each([
    [['--older-than', '30'], '--older-than 30: give a duration'],
    [['--older-than', 'soon'], 'give a duration like 7d'],
    [['--floor', '1y'], '--floor 1y: give a duration'],
    [['--quiet-period', '-1h'], 'quiet-period'],
    [['--max-delete', 'all'], '"all" is not a limit'],
    [['--max-delete', '101%'], '"101%" is not a limit'],
  ])('%j ends with 2 and says why', async (argv, words) => {
    const { root, cli } = await notes()
    const before = agentsView(root)
    const { exitCode, stderr } = await cli('expire', '--apply', ...argv, '--root', root)
    expect([exitCode, stderr.split('\n')[0]]).toEqual([2, expect.stringContaining(words)])
    expect(agentsView(root)).toEqual(before)
  })

  it('one store that cannot be worked on does not keep the others from being done, and the report has both', async () => {
    const [one, two, three] = [await notes(), await notes(), await notes()]
    writeFileSync(join(two.root, 'settings.json'), '{"cleanupPeriodDays":0}')
    const roots = [one, two, three].flatMap(({ root }) => ['--root', root])
    const report = await one.cli.json('expire', '--apply', ...roots)
    expect(report).toMatchObject({ exitCode: 65, errors: [{ code: 'RETENTION_UNKNOWABLE', path: two.root }] })
    expect(report.plan.map(({ session }) => session)).toEqual([S2, S2])
    for (const { root } of [one, three]) expect(existsSync(join(root, `projects/-home-u-notes/${S2}.jsonl`))).toBe(false)
  })

  it('R125: a signal ends it after the session in work; the report says what was done, and the next run does the rest', async () => {
    const root = await emptyRoot()
    manyOld(root, 20)
    young(root)
    const controller = new AbortController()
    const stopping = cliIn(dirname(root), {
      signal: controller.signal,
      stderr: {
        isTTY: true,
        write: (text) => {
          if (text.includes('expire 25%')) controller.abort(new StoppedError('SIGTERM'))
        },
      },
      // The progress line is written at most every so many milliseconds: here each look at the clock is a second later.
      monotonic: ((): (() => number) => {
        let time = 0
        return () => (time += 1000)
      })(),
    })
    const { exitCode, stdout } = await stopping('expire', '--apply', '--json', '--root', root)
    expect(exitCode).toBe(143)
    const { plan } = JSON.parse(stdout) as { plan: unknown[] }
    expect(plan.length).toBeGreaterThan(0)
    expect(plan.length).toBeLessThan(20)
    const rest = await cliIn(dirname(root)).json('expire', '--apply', '--root', root)
    expect(rest.plan).toHaveLength(20 - plan.length)
    expect((await cliIn(dirname(root)).json('trash', 'list', '--root', root)).summary).toMatchObject({ entries: 20 })
  })
})
