import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openClaudeCode } from '../../../src/formats/claude-code/index.js'
import { lockStore } from '../../../src/plan/sidecar.js'
import { extractQwen } from '../../helpers/qwen-corpus.js'
import { machineWith } from '../../helpers/removal.js'
import { H, S1, S2, snap, userLine, writeBackup, writeStoreFile, writeTranscript } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { giveAway, nobody } from '../../helpers/unprivileged.js'
import { cliIn, newTime, now, nowText, oldTime, type Cli, type Envelope } from '../world.js'

/** A home with two sessions, of yesterday and of 60 days ago. */
function makeHome(home: string): string {
  const root = join(home, '.claude')
  writeStoreFile(root, 'settings.json', '{"cleanupPeriodDays":30}')
  writeTranscript(root, '-p', S1, [userLine('m', { session: S1, cwd: '/home/u/p', time: newTime })], { mtime: newTime })
  writeTranscript(root, '-p', S2, [userLine('m', { session: S2, cwd: '/home/u/p', time: oldTime }), snap('m', { 'a.md': `${H}@v1` }, oldTime)], { mtime: oldTime })
  writeBackup(root, S2, `${H}@v1`, 'robin\n', { mtime: oldTime })
  return root
}

/** So many homes in one folder, and the command line of an administrator whose own home is elsewhere. */
async function fleet(count: number): Promise<{ readonly base: string; readonly pattern: string; readonly roots: string[]; readonly cli: Cli }> {
  const [base, admin] = [await temporaryFolder(), await temporaryFolder()]
  // Others have to come through here, as through /home.
  chmodSync(base, 0o755)
  const roots = Array.from({ length: count }, (_, index) => makeHome(join(base, `user-${String(index).padStart(2, '0')}`)))
  const env = { PATH: process.env.PATH }
  return { base, pattern: `${base}/*/.claude`, roots, cli: cliIn(admin, { env }) }
}

interface Row {
  readonly root: string
  readonly state: string
  readonly exitCode: number
  readonly runId?: string
}

function rowsOf(report: Envelope): Row[] {
  return report.homes as Row[]
}

function isGone(root: string): boolean {
  return !existsSync(join(root, `projects/-p/${S2}.jsonl`))
}

describe('run --roots-from', () => {
  it('of 50 homes with 3 broken ones does 47, reports 3, and ends with 3', { timeout: 300_000 }, async () => {
    const { pattern, roots, cli } = await fleet(50)
    const [unreadable = '', locked = '', newer = ''] = [roots[7], roots[23], roots[41]]
    writeStoreFile(newer, '.rewind-admin/first-seen.jsonl', '{"schemaVersion":99}\n')
    const store = openClaudeCode(locked, { home: join(locked, '..'), env: {}, platform: 'linux' })
    const held = await lockStore(store, { pid: 1, host: `${hostname()} elsewhere`, processes: machineWith(), command: 'x', now, token: 'ab', waitMs: 0 })
    giveAway(join(unreadable, '..'))
    chmodSync(unreadable, 0o000)
    const report = await cli.json('run', 'nightly', '--apply', '--roots-from', pattern)
    held.release()
    chmodSync(unreadable, 0o700)
    expect(report).toMatchObject({ exitCode: 3, summary: { job: 'nightly', homes: 50, done: 47, failed: 3, leftOut: 0, actions: 47 } })
    const failed = rowsOf(report).filter(({ state }) => state === 'failed')
    expect(failed.map(({ root, exitCode }) => [root, exitCode])).toEqual([[unreadable, 3], [locked, 11], [newer, 12]])
    expect(report.errors.map(({ code, path }) => [path, code])).toEqual([[unreadable, 'EACCES'], [locked, 'LOCKED'], [newer, 'NEWER_FORMAT']])
    expect(roots.filter((root) => !isGone(root))).toEqual([unreadable, locked, newer])
    // Each has a result, a lock and a trash of its own.
    for (const { root, runId = '' } of rowsOf(report).filter(({ state }) => state === 'done')) {
      expect(existsSync(join(root, '.rewind-admin/status.json'))).toBe(true)
      expect(readdirSync(join(root, '.rewind-admin/trash'))).toEqual([`${runId}02`])
    }
  })

  it('split into 4 parts does every home exactly once, by index and count of an indexed Job as well', { timeout: 300_000 }, async () => {
    const { base, pattern, roots } = await fleet(8)
    const worked: string[] = []
    for (const index of [0, 1, 2, 3]) {
      const pod = cliIn(base, { env: { PATH: process.env.PATH, JOB_COMPLETION_INDEX: String(index), JOB_COMPLETION_COUNT: '4' } })
      const report = await pod.json('run', 'nightly', '--apply', '--roots-from', pattern)
      expect([report.exitCode, report.shard]).toEqual([0, `${String(index + 1)}/4`])
      worked.push(...rowsOf(report).map(({ root }) => root))
    }
    expect(worked.sort()).toEqual(roots)
    expect(roots.every(isGone)).toBe(true)
  })

  it('without --apply changes nothing in any home, and says what it would do', async () => {
    const { pattern, roots, cli } = await fleet(2)
    const { exitCode, stdout } = await cli('run', 'nightly', '--roots-from', pattern)
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/^root +result +exit +time +actions +size/m)
    expect(stdout).toMatch(/^2 homes: 2 done, 0 failed, 0 left out$/m)
    expect(stdout).toContain('Plan: 2 actions')
    expect(roots.map((root) => [isGone(root), existsSync(join(root, '.rewind-admin'))])).toEqual([[false, false], [false, false]])
  })

  it('as root works on the home of another user as that user', async (context) => {
    if (process.getuid?.() !== 0) context.skip('only root can become another user')
    const { base, roots, cli } = await fleet(1)
    const [root = ''] = roots
    giveAway(join(root, '..'))
    writeFileSync(join(base, 'homes'), `${root}\n`)
    const report = await cli.json('run', 'nightly', '--apply', '--roots-from', join(base, 'homes'))
    expect(report).toMatchObject({ exitCode: 0, errors: [], summary: { done: 1 } })
    for (const path of ['.rewind-admin', '.rewind-admin/status.json', '.rewind-admin/trash']) expect([path, statSync(join(root, path)).uid]).toEqual([path, nobody])
  })

  it('ends a home that takes too long, and goes on with the next', async () => {
    const { base, roots, cli } = await fleet(2)
    const [one = '', two = ''] = roots
    const store = openClaudeCode(one, { home: join(one, '..'), env: {}, platform: 'linux' })
    // Whoever waits for a lock does not look at the clock: the process has to be ended.
    const held = await lockStore(store, { pid: 1, host: 'elsewhere', processes: machineWith(), command: 'x', now, token: 'ab', waitMs: 0 })
    writeFileSync(join(base, 'homes'), `${one}\n${two}\n`)
    const report = await cli.json('run', 'nightly', '--apply', '--roots-from', join(base, 'homes'), '--home-timeout', '3s')
    held.release()
    expect(rowsOf(report).map(({ state, exitCode }) => [state, exitCode])).toEqual([['failed', 3], ['done', 0]])
    expect(report).toMatchObject({ exitCode: 3, errors: [{ code: 'TIME_LIMIT', path: one }] })
    expect([isGone(one), isGone(two)]).toEqual([false, true])
  })

  it('takes a job of the one who runs it, not of the homes', async () => {
    const { pattern, roots, cli } = await fleet(1)
    writeStoreFile(cli.home, '.config/rewind-admin/rewind-admin.config.json', '{"jobs":{"look":["status"]}}')
    writeStoreFile(join(roots[0] ?? '', '..'), '.config/rewind-admin/rewind-admin.config.json', '{"jobs":{"look":["recover","expire"]}}')
    expect(await cli.json('run', 'look', '--apply', '--roots-from', pattern)).toMatchObject({ exitCode: 0, plan: [] })
    expect(isGone(roots[0] ?? '')).toBe(false)
  })

  it('with --scheduled previews each home at first and says so; the next run acts there, and a home that came later is previewed', async () => {
    const { base, pattern, roots, cli } = await fleet(2)
    const words = ['run', 'nightly', '--apply', '--scheduled', '0123456789abcdef', '--roots-from', pattern]
    const first = await cli.json(...words)
    expect(first).toMatchObject({ exitCode: 0, plan: [], errors: [], summary: { done: 2, actions: 0, previewed: 2 }, firstRun: { roots } })
    expect((first.firstRun as { plan: { session: string }[] }).plan.map(({ session }) => session)).toEqual([S2, S2])
    expect(first.findings.filter(({ id }) => id === 'first-run-preview')).toHaveLength(2)
    expect(roots.map(isGone)).toEqual([false, false])

    const late = makeHome(join(base, 'user-02'))
    const { exitCode, stdout } = await cli(...words)
    expect([exitCode, [...roots, late].map(isGone)]).toEqual([0, [true, true, false]])
    expect(stdout).toContain('a preview, as it is the first scheduled run here: 1 actions would have been taken')
    expect(stdout).toContain('Done: 2 actions')
    expect(stdout).toContain('The first scheduled run on a home is a preview; the next one acts on 1 more.')
    const last = await cli.json(...words)
    expect([last.exitCode, isGone(late), last.firstRun]).toEqual([0, true, undefined])
  })

  it('--runtime-root that begins with {home} means a folder of each home', async () => {
    const [base, admin] = [await temporaryFolder(), await temporaryFolder()]
    chmodSync(base, 0o755)
    for (const name of ['one', 'two']) {
      const { home } = await extractQwen('basic')
      cpSync(home, join(base, name), { recursive: true, preserveTimestamps: true })
      mkdirSync(join(base, name, 'elsewhere'))
      renameSync(join(base, name, '.qwen/projects'), join(base, name, 'elsewhere/projects'))
    }
    const cli = cliIn(admin, { env: { PATH: process.env.PATH } })
    const orphans = async (...more: readonly string[]): Promise<unknown[]> => {
      const report = await cli.json('run', 'integrity', '--roots-from', `${base}/*/.qwen`, ...more)
      expect(report.summary).toMatchObject({ homes: 2, done: 2 })
      return report.findings.filter(({ id }) => id === 'orphan-backups').map(({ place }) => String(place).slice(base.length + 1).split('/')[0])
    }
    expect(await orphans('--runtime-root', '{home}/nowhere')).toEqual(['one', 'two'])
    expect(await orphans('--runtime-root', '{home}/elsewhere')).toEqual([])
  })

  it.each([
    [['run', 'nightly', '--shard', '1/4'], 2],
    [['run', 'nightly', '--roots-from', '/*', '--conversations', '/srv/sessions'], 2],
    [['run', 'nightly', '--roots-from', '/*', '--runtime-root', 'runtime'], 2],
    [['run', 'nightly', '--roots-from', '/*', '--cwd', '{home}/../other'], 2],
    [['run', 'nightly', '--roots-from', '/*', '--scheduled', 'tonight'], 2],
    [['run', 'nightly', '--home-timeout', '5m'], 2],
    [['run', 'nightly', '--roots-from', 'x', '--root', '/y'], 2],
    [['run', 'nightly', '--roots-from', '/nowhere/*/.claude'], 10],
    [['run', 'nightly', '--roots-from', '/nowhere/list'], 2],
    [['run', 'nightly', '--roots-from', '/*', '--shard', '5/4'], 2],
    [['run', 'nightly', '--roots-from', '/*', '--home-timeout', '0s'], 2],
    [['run', 'nightly', '--roots-from', '/*', '--home-timeout', '52w'], 2],
  ])('%j ends with %i', async (argv, exitCode) => {
    const home = await temporaryFolder()
    mkdirSync(join(home, '.claude/projects'), { recursive: true })
    expect((await cliIn(home)(...argv, '--now', nowText)).exitCode).toBe(exitCode)
  })
})
