import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { labelOf } from '../../src/schedule/entry.js'
import { lingers } from '../../src/schedule/lingering.js'
import { systemd } from '../../src/schedule/systemd.js'
import { serviceUnit, timerUnit } from '../../src/schedule/systemd-units.js'
import { temporaryFolder } from '../helpers/temp.js'
import { entry, fakeHost, hostile, writeFile, type FakeHost } from './fake-host.js'

const withSystemd = (): Promise<FakeHost> => fakeHost({ programs: ['systemctl', 'loginctl'] })
const folder = (host: FakeHost): string => join(host.home, '.config/systemd/user')
const calls = (host: FakeHost): string[] => host.calls.map((line) => line.replace('systemctl --user --no-pager ', ''))
const names = (host: FakeHost): string[] => (existsSync(folder(host)) ? readdirSync(folder(host)).sort() : [])

describe('the units', () => {
  it('the service runs once at the lowest priority, may compile code, and says whose it is', () => {
    const text = serviceUnit(entry({ environment: { CLAUDE_CONFIG_DIR: '/data/my agent' } }))
    const lines = text.split('\n').filter((line) => !line.startsWith('#') && line !== '')
    expect(lines).toEqual([
      '[Unit]',
      'Description=rewind-admin nightly',
      '[Service]',
      'Type=oneshot',
      'ExecStart="/opt/node/bin/node" "/opt/rewind-admin/bin/rewind-admin.js" "run" "nightly"',
      'Environment="CLAUDE_CONFIG_DIR=/data/my agent"',
      'Nice=19',
      'IOSchedulingClass=idle',
      'TimeoutStopSec=5min',
      'NoNewPrivileges=yes',
      'LockPersonality=yes',
      'RestrictRealtime=yes',
      'SystemCallArchitectures=native',
    ])
    expect(text).not.toContain('MemoryDenyWriteExecute')
    expect(text.split('\n').slice(0, 3).join('\n')).toMatch(/schedule install[\s\S]*drop-in/)
  })

  it('the timer catches up on what was missed and spreads the machines', () => {
    const lines = timerUnit(entry()).split('\n').filter((line) => !line.startsWith('#') && line !== '')
    expect(lines).toEqual([
      '[Unit]',
      'Description=rewind-admin nightly: when it runs',
      '[Timer]',
      'OnCalendar=*-*-* 03:17:00',
      'Persistent=true',
      'RandomizedDelaySec=5min',
      '[Install]',
      'WantedBy=timers.target',
    ])
  })

  it.each([
    ['*/30 2,4 * * *', ['*-*-* 02,04:00,30:00']],
    ['0 3 * * sun,sat', ['Sun,Sat *-*-* 03:00:00']],
    ['0 3 1,15 jan *', ['*-01-01,15 03:00:00']],
    ['* * * * *', ['*-*-* *:*:00']],
    // Cron runs on the 13th and on every Friday, systemd on a Friday the 13th: two lines are needed.
    ['0 0 13 * 5', ['*-*-13 00:00:00', 'Fri *-*-* 00:00:00']],
  ])('%s is %j', (at, expected) => {
    expect([...timerUnit(entry({ at })).matchAll(/^OnCalendar=(.*)$/gm)].map(([, line]) => line)).toEqual(expected)
  })
})

describe('the command line', () => {
  /** The words that systemd makes of a line (systemd.service(5), "Command lines"). */
  function wordsOf(line: string): string[] {
    return [...line.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(([, quoted, bare]) => (quoted?.replace(/\\(.)/g, '$1') ?? bare ?? '').replaceAll('%%', '%'))
  }
  const lineOf = (given: ReturnType<typeof entry>): string => /^ExecStart=(.*)$/m.exec(serviceUnit(given))?.[1] ?? ''

  it('brings every word to the program as it is', () => {
    const command = ['/opt/my node 100%/node', hostile, '$X', '%h', 'a"b', 'é']
    const [program, ...words] = wordsOf(lineOf(entry({ command })))
    expect([program, ...words.map((word) => word.replaceAll('$$', '$'))]).toEqual(command)
    // No single dollar is left that systemd would take for a variable.
    expect(words.join(' ').replaceAll('$$', '')).not.toContain('$')
  })

  it('starts a program whose path systemd does not allow through a shell, which gets it as it is', async () => {
    const program = join(await temporaryFolder(), `it's "q" b\\s $HOME`, 'node')
    mkdirSync(dirname(program))
    symlinkSync(process.execPath, program)
    const script = 'console.log(JSON.stringify(process.argv.slice(1)))'
    const [shell = '', ...words] = wordsOf(lineOf(entry({ command: [program, '-e', script, '--', hostile, '$X'] }))).map((word) => word.replaceAll('$$', '$'))
    expect(shell).toBe('/bin/sh')
    expect(JSON.parse(spawnSync(shell, words, { encoding: 'utf8' }).stdout)).toEqual([hostile, '$X'])
  })
})

describe('systemd', () => {
  it('gets both files whole, then reads them anew, enables and starts the timer', async () => {
    const host = await withSystemd()
    await systemd.write([entry()], host)
    expect(calls(host)).toEqual(['daemon-reload', 'enable rewind-admin-nightly.timer', 'restart rewind-admin-nightly.timer'])
    expect(names(host)).toEqual(['rewind-admin-nightly.service', 'rewind-admin-nightly.timer'])
    expect(readFileSync(join(folder(host), 'rewind-admin-nightly.timer'), 'utf8')).toBe(timerUnit(entry()))
    expect(await systemd.installed(host)).toMatchObject([{ active: true, changed: false, next: Date.parse('2026-12-01T03:33:33Z'), entry: { job: 'nightly' } }])
  })

  it('has its files where XDG_CONFIG_HOME says', async () => {
    const elsewhere = await temporaryFolder()
    const host = await fakeHost({ programs: ['systemctl'], env: { XDG_CONFIG_HOME: elsewhere } })
    await systemd.write([entry()], host)
    expect(existsSync(join(elsewhere, 'systemd/user/rewind-admin-nightly.timer'))).toBe(true)
  })

  it('when a job is no longer wanted it is stopped and its files and its link go; other units stay', async () => {
    const host = await withSystemd()
    await systemd.write([entry(), entry({ job: 'weekly' })], host)
    writeFile(join(folder(host), 'rewind-admin-mine.timer'), '[Timer]\n')
    mkdirSync(join(folder(host), 'timers.target.wants'))
    const link = join(folder(host), 'timers.target.wants/rewind-admin-weekly.timer')
    symlinkSync('../rewind-admin-weekly.timer', link)
    host.calls.length = 0
    await systemd.write([entry()], host)
    expect(calls(host)[0]).toBe('disable --now rewind-admin-weekly.timer')
    expect(names(host)).toEqual(['rewind-admin-mine.timer', 'rewind-admin-nightly.service', 'rewind-admin-nightly.timer', 'timers.target.wants'])
    expect(readdirSync(dirname(link))).toEqual([])
    await systemd.write([], host)
    expect(names(host)).toEqual(['rewind-admin-mine.timer', 'timers.target.wants'])
  })

  it.each(['daemon-reload', 'enable', 'restart'])('that refuses %s has its old files back, byte for byte', async (step) => {
    const host = await withSystemd()
    await systemd.write([entry()], host)
    const old = names(host).map((name) => readFileSync(join(folder(host), name), 'utf8'))
    host.answers.set(`systemctl --user --no-pager ${step}`, { code: 1, stderr: 'Failed to connect to bus' })
    await expect(systemd.write([entry({ at: '0 5 * * *' }), entry({ job: 'weekly' })], host)).rejects.toThrow(new RegExp(`systemd refused ${step}.*Failed to connect to bus.*as they were`))
    expect(names(host)).toEqual(['rewind-admin-nightly.service', 'rewind-admin-nightly.timer'])
    expect(names(host).map((name) => readFileSync(join(folder(host), name), 'utf8'))).toEqual(old)
    host.answers.clear()
    expect(await systemd.installed(host)).toMatchObject([{ active: true, changed: false }])
  })

  it('a first installation that is refused leaves nothing', async () => {
    const host = await withSystemd()
    host.answers.set('systemctl --user --no-pager restart', { failure: 'no answer within 15 s' })
    await expect(systemd.write([entry()], host)).rejects.toThrow('no answer within 15 s')
    expect(names(host)).toEqual([])
    expect(calls(host)).toContain('disable --now rewind-admin-nightly.timer')
  })

  it.each([
    ['a unit of somebody else', (path: string) => { writeFile(path, '[Timer]\n') }],
    ['a masked unit', (path: string) => { mkdirSync(dirname(path), { recursive: true }); symlinkSync('/dev/null', path) }],
  ])('never writes over %s with the same name', async (_, make) => {
    const host = await withSystemd()
    const path = join(folder(host), 'rewind-admin-nightly.timer')
    make(path)
    await expect(systemd.write([entry()], host)).rejects.toThrow(/is in the way .* and was kept/)
    expect(names(host)).toEqual(['rewind-admin-nightly.timer'])
    expect(calls(host)).toEqual([])
  })

  it('says when a unit was changed by hand, and when the timer is not loaded', async () => {
    const host = await withSystemd()
    await systemd.write([entry()], host)
    writeFile(join(folder(host), 'rewind-admin-nightly.timer'), timerUnit(entry()).replace('03:17', '04:17'))
    await host.run('systemctl', ['--user', '--no-pager', 'disable', 'rewind-admin-nightly.timer'], { timeoutMs: 1 })
    const [found] = await systemd.installed(host)
    expect([found?.changed, found?.active, found?.next]).toEqual([true, false, undefined])
  })

  it('that does not answer is unavailable; what is installed is still found, and can be removed', async () => {
    const host = await withSystemd()
    await systemd.write([entry()], host)
    host.answers.set('systemctl', { code: 1, stderr: 'Failed to connect to bus: No medium found' })
    expect(await systemd.unavailable(host)).toBe('systemd of the user does not answer (exit code 1: Failed to connect to bus: No medium found)')
    const [found] = await systemd.installed(host)
    expect([found?.entry.job, found?.active]).toEqual(['nightly', undefined])
    await systemd.write([], host)
    expect(names(host)).toEqual([])
  })

  it('an older one that knows no JSON leaves the next time to the calendar', async () => {
    const host = await withSystemd()
    await systemd.write([entry()], host)
    host.answers.set('systemctl --user --no-pager list-timers --all', { code: 1, stderr: 'Unknown output mode' })
    const [found] = await systemd.installed(host)
    expect([found?.active, found?.next]).toEqual([true, undefined])
  })
})

describe('lingering', () => {
  it.each([
    [{ stdout: 'yes\n' }, true],
    [{ stdout: 'no\n' }, false],
    [{ code: 1, stderr: 'no such user' }, undefined],
    [{ failure: 'ENOENT' }, undefined],
  ])('as loginctl says: %j is %s', async (said, expected) => {
    const host = await withSystemd()
    host.answers.set('loginctl', said)
    expect(await lingers(host)).toBe(expected)
    expect(host.calls).toEqual(['loginctl show-user 501 --property=Linger --value'])
  })
})

const analyze = spawnSync('systemd-analyze', ['--version']).status === 0
const why = analyze ? '' : ' (skipped: no systemd-analyze here)'

describe('the real systemd', () => {
  /** What `systemd-analyze verify` says of the two units of an entry. */
  async function verified(given: ReturnType<typeof entry>): Promise<string> {
    const place = await temporaryFolder()
    const files = [join(place, `rewind-admin-${given.job}.service`), join(place, `rewind-admin-${given.job}.timer`)] as const
    writeFile(files[0], serviceUnit(given))
    writeFile(files[1], timerUnit(given))
    const { stdout, stderr, status } = spawnSync('systemd-analyze', ['verify', '--user', '--man=no', ...files], { encoding: 'utf8', env: { ...process.env, XDG_RUNTIME_DIR: place } })
    return `${String(status)} ${stdout}${stderr}`.trim()
  }

  it.skipIf(!analyze).each([
    ['plain', 'bin'],
    ['blanks, unicode and percent signs', 'my bin 100% née'],
    ['dollar signs, quotes and backslashes', `it's "q" b\\s $HOME`],
  ])(`finds nothing to say about units whose program lies in a folder of %s${why}`, async (_, name) => {
    const program = join(await temporaryFolder(), name, 'node')
    mkdirSync(dirname(program))
    copyFileSync('/bin/true', program)
    const good = entry({ command: [program, hostile, 'run', '$X', '100%'], environment: { X: `a "b" 5% \\ é` } })
    expect(await verified(good)).toBe('0')
    // The check can fail: a program that is not there is seen, through the same quoting.
    if (!name.includes('$')) expect(await verified(entry({ command: [`${program}-gone`, 'x'] }))).toContain('node-gone')
  })

  it.skipIf(!analyze).each(['0 0 13 * 5', '*/7 1-5 1,15 jan-jun mon-fri', '* * * * *', '0 3 29 2 *'])(`understands when %s is${why}`, (at) => {
    for (const [, line = ''] of timerUnit(entry({ at })).matchAll(/^OnCalendar=(.*)$/gm)) {
      expect(spawnSync('systemd-analyze', ['calendar', line], { encoding: 'utf8' })).toMatchObject({ status: 0, stdout: expect.stringContaining('Next elapse') as string })
    }
  })

  it(`keeps a label that can be read again: ${labelOf(entry()).slice(0, 19)}`, () => {
    expect(serviceUnit(entry())).toContain(labelOf(entry()))
  })
})
