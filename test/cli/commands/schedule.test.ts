import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { cliIn, dayMs, notes, now, type Cli, type Notes } from '../world.js'

interface Place extends Notes {
  readonly at: Cli
  /** What the crontab holds; '' when there is none. */
  readonly crontab: () => string
}

/** A home whose `crontab` is a file, and whose systemd does not answer: both are programs on the path. */
async function place(crontab?: string, env: Readonly<Record<string, string>> = {}): Promise<Place> {
  const store = await notes()
  const folder = join(store.home, 'programs')
  mkdirSync(folder)
  const table = join(store.home, 'table')
  if (crontab !== undefined) writeFileSync(table, crontab)
  const script = (name: string, text: string): void => {
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}`)
    chmodSync(join(folder, name), 0o755)
  }
  script('crontab', `case $1 in -l) cat '${table}' 2>/dev/null || { echo 'no crontab for me' >&2; exit 1; };; -r) rm '${table}';; *) cat > '${table}';; esac\n`)
  script('systemctl', 'echo "Failed to connect to bus" >&2; exit 1\n')
  const at = cliIn(store.home, { env: { ...env, PATH: `${folder}${delimiter}${process.env.PATH ?? ''}` } })
  return { ...store, at, crontab: () => (existsSync(table) ? readFileSync(table, 'utf8') : '') }
}

const jobLine = (text: string): string => text.split('\n').find((line) => line.includes(' run ')) ?? ''

describe('schedule install', () => {
  it('gives the nightly job to the crontab where systemd does not answer, with full paths of node and of the script', async () => {
    const { at, crontab, root } = await place('0 1 * * * mine\n')
    const { exitCode, stdout, stderr } = await at('schedule', 'install', '--at', '03:30')
    expect([exitCode, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^scheduler +cron$/m)
    expect(stdout).toContain('The first run on each store is a preview; the next one acts.')
    expect(crontab().startsWith('0 1 * * * mine\n# BEGIN rewind-admin schedule\n')).toBe(true)
    expect(jobLine(crontab())).toMatch(/^30 3 \* \* \* \S+ \S+ run nightly --apply --scheduled [0-9a-f]{16} --quiet # rewind-admin schedule: nightly$/)
    const [, , , , , node, script] = jobLine(crontab()).split(' ')
    expect([node, script]).toEqual([process.execPath, resolve('bin/rewind-admin.js')])
    const status = await at.json('schedule', 'status')
    expect(status).toMatchObject({ exitCode: 0, findings: [], root, entries: [{ job: 'nightly', scheduler: 'cron', at: '30 3 * * *', gone: [], firstRunPending: [root] }] })
  })

  it('takes the options that decide what is worked on along, and the variables that would be missing at night', async () => {
    const { at, crontab, root, home } = await place(undefined, { CLAUDE_CONFIG_DIR: '/my data' })
    writeFileSync(join(home, 'my config.json'), '{"jobs":{"weekly":["recover","expire"]}}')
    await at('schedule', 'install', '--job', 'weekly', '--at', '@weekly', '--root', root, '--config', join(home, 'my config.json'))
    expect(jobLine(crontab())).toContain(`CLAUDE_CONFIG_DIR='/my data' ${process.execPath}`)
    expect(jobLine(crontab())).toContain(`--quiet --root ${root} --config '${join(home, 'my config.json')}' # `)
  })

  it('the line that was written works: the first night is a preview that says so, the next one acts, status tells both', async () => {
    const { at, crontab, root, cli } = await place()
    await at('schedule', 'install', '--root', root)
    const words = jobLine(crontab()).split(' ').slice(7, -4)
    const first = await cli(...words)
    expect(first.exitCode).toBe(0)
    expect(first.stdout).toContain('The first scheduled run on a store is a preview; the next one acts')
    expect((await cli.json('trash', 'list', '--root', root)).entries).toEqual([])
    expect(await at.json('schedule', 'status')).toMatchObject({ entries: [{ firstRunPending: [] }], lastRuns: [{ lastRun: null }] })
    expect((await cli(...words, '--now', new Date(now + dayMs).toISOString())).stdout).toMatch(/^Done: 1 action/m)
    expect(await at.json('schedule', 'status')).toMatchObject({ lastRuns: [{ root, lastRun: { job: 'nightly', exitCode: 0, actions: 1 } }] })
  })

  it('refuses a job that there is not, and a time that is none, with code 2 and nothing written', async () => {
    const { at, crontab } = await place()
    expect((await at('schedule', 'install', '--job', 'nigthly')).exitCode).toBe(2)
    expect((await at('schedule', 'install', '--at', '* * * * * *')).stderr).toContain('rewind-admin daemon')
    expect((await at('schedule', 'install', '--scheduler', 'launchd')).stderr).toContain('launchd is for macOS')
    expect((await at('schedule', 'install', 'cron')).exitCode).toBe(2)
    expect(crontab()).toBe('')
  })
})

describe('schedule remove', () => {
  it('gives the crontab back as it was; a second time there is nothing: code 1', async () => {
    const { at, crontab } = await place('0 1 * * * mine\n')
    await at('schedule', 'install')
    const { exitCode, stdout } = await at('schedule', 'remove')
    expect([exitCode, crontab()]).toEqual([0, '0 1 * * * mine\n'])
    expect(stdout).toContain('nightly  cron       crontab')
    expect((await at('schedule', 'remove')).exitCode).toBe(1)
    expect(await at('schedule', 'status')).toMatchObject({ exitCode: 1, stdout: expect.stringContaining('Nothing is scheduled.') as string })
  })
})

describe('schedule print', () => {
  it.each([
    ['kubernetes', /^kind: "CronJob"$/m],
    ['systemd', /^OnCalendar=\*-\*-\* 03:30:00$/m],
    ['launchd', /<key>StartCalendarInterval<\/key>/],
    ['cron', /^30 3 \* \* \* /m],
    ['schtasks', /<ScheduleByDay>/],
  ])('%s shows what would be written, and writes nothing', async (what, expected) => {
    const { at, crontab, home } = await place()
    const { exitCode, stdout } = await at('schedule', 'print', what, '--at', '03:30')
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(expected)
    expect([crontab(), existsSync(join(home, '.config'))]).toEqual(['', false])
  })

  it('needs to know for what, and takes no odd number of shards', async () => {
    const { at } = await place()
    expect((await at('schedule', 'print')).exitCode).toBe(2)
    for (const shards of ['0', '1.5', '-1']) expect((await at('schedule', 'print', 'kubernetes', `--shards=${shards}`)).exitCode).toBe(2)
    expect((await at('schedule', 'print', 'kubernetes', '--shards', '7', '--image', 'x:1', '--claim', 'all')).stdout).toMatch(/completions: 7[\s\S]*image: "x:1"[\s\S]*claimName: "all"/)
  })
})
