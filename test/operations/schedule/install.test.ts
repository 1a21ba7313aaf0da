import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { acquireLock } from '../../../src/fs/lock.js'
import type { Report } from '../../../src/model/report.js'
import { defaultCalendar, installSchedule, type InstallOptions } from '../../../src/operations/schedule/install.js'
import type { ScheduleContext } from '../../../src/operations/schedule/installed.js'
import { removeSchedule } from '../../../src/operations/schedule/remove.js'
import { noteFile } from '../../../src/operations/schedule/first-run.js'
import { scheduleStatus } from '../../../src/operations/schedule/status.js'
import { crontab } from '../../../src/schedule/crontab.js'
import { systemd } from '../../../src/schedule/systemd.js'
import { machineWith, now, openStore } from '../../helpers/removal.js'
import { emptyRoot, writeStoreFile } from '../../helpers/store.js'
import { fakeHost, hostile, jobsIn, writeFile, type FakeHost } from '../../schedule/fake-host.js'
import { entry } from '../../schedule/fake-host.js'

const context: ScheduleContext = { now, zone: 'UTC', lock: { pid: process.pid, host: 'here', processes: machineWith({ [process.pid]: '1' }), waitMs: 0 } }

function optionsOf(options: Partial<InstallOptions> = {}): InstallOptions {
  return {
    job: 'nightly',
    at: '03:17',
    scheduler: 'auto',
    program: ['/opt/node/bin/node', '/opt/rewind-admin/bin/rewind-admin.js'],
    words: [],
    environment: {},
    machineKey: 'machine\nme',
    installation: 'aaaaaaaaaaaaaaaa',
    ...options,
  }
}

const install = (host: FakeHost, options: Partial<InstallOptions> = {}): Promise<Report> => installSchedule(optionsOf(options), host, context)
const both = (): Promise<FakeHost> => fakeHost({ programs: ['crontab', 'systemctl', 'loginctl'], crontab: '0 1 * * * mine\n' })
const unitFolder = (host: FakeHost): string => join(host.home, '.config/systemd/user')
const cronJobs = (host: FakeHost): string[] => jobsIn(host.crontab?.toString() ?? '')
const timers = (host: FakeHost): string[] => (existsSync(unitFolder(host)) ? readdirSync(unitFolder(host)).filter((name) => name.endsWith('.timer')).sort() : [])

describe('schedule install', () => {
  it('writes a command line of full paths that acts, by the name of its installation, with its options', async () => {
    const host = await fakeHost()
    const report = await install(host, { words: ['--root', hostile], environment: { CLAUDE_CONFIG_DIR: '/d' } })
    expect(report).toMatchObject({
      applied: true,
      exitCode: 0,
      summary: { job: 'nightly', scheduler: 'cron', where: 'crontab', at: '17 3 * * *', next: '2026-12-01T03:17:00.000Z', installation: 'new' },
      extra: { commandLine: ['/opt/node/bin/node', '/opt/rewind-admin/bin/rewind-admin.js', 'run', 'nightly', '--apply', '--scheduled', 'aaaaaaaaaaaaaaaa', '--quiet', '--root', hostile] },
    })
    const [found] = await crontab.installed(host)
    expect(found?.entry).toMatchObject({ command: report.extra?.commandLine, environment: { CLAUDE_CONFIG_DIR: '/d' } })
  })

  it('without --at is after three at a minute that is always the same on one machine and differs between machines', async () => {
    const expressions = Array.from({ length: 200 }, (_, index) => defaultCalendar(`machine ${String(index)}\nme`).expression)
    expect(expressions.every((expression) => /^[0-9]+ 3 \* \* \*$/.test(expression))).toBe(true)
    expect(new Set(expressions).size).toBeGreaterThan(40)
    expect(defaultCalendar('a\nb').expression).toBe(defaultCalendar('a\nb').expression)
    expect((await install(await fakeHost(), { at: undefined, machineKey: 'a\nb' })).summary.at).toBe(defaultCalendar('a\nb').expression)
  })

  it('again keeps the name of the installation, so that nothing is previewed anew, and changes the rest', async () => {
    const host = await fakeHost()
    await install(host)
    const { summary, extra } = await install(host, { at: '05:00', installation: 'bbbbbbbbbbbbbbbb' })
    expect(summary).toMatchObject({ at: '0 5 * * *', installation: 'kept' })
    expect(extra?.commandLine).toContain('aaaaaaaaaaaaaaaa')
    expect(cronJobs(host)).toEqual(['nightly'])
  })

  it('in one scheduler takes it out of the other, both ways; other jobs move along and lines of others stay', async () => {
    const host = await both()
    await install(host, { scheduler: 'cron' })
    await install(host, { scheduler: 'cron', job: 'weekly', at: '@weekly', installation: 'cccccccccccccccc' })
    const there = await install(host, { scheduler: 'systemd', installation: 'bbbbbbbbbbbbbbbb' })
    expect(there).toMatchObject({ exitCode: 0, summary: { scheduler: 'systemd', installation: 'kept' }, extra: { moved: ['weekly'], replaced: ['cron'] } })
    expect(host.crontab?.toString()).toBe('0 1 * * * mine\n')
    expect(timers(host)).toEqual(['rewind-admin-nightly.timer', 'rewind-admin-weekly.timer'])
    expect((await systemd.installed(host)).map((one) => one.entry.installation)).toEqual(['aaaaaaaaaaaaaaaa', 'cccccccccccccccc'])
    await install(host, { scheduler: 'cron' })
    expect(timers(host)).toEqual([])
    expect(cronJobs(host).sort()).toEqual(['nightly', 'weekly'])
    expect(host.crontab?.toString().startsWith('0 1 * * * mine\n')).toBe(true)
  })

  it('that the scheduler refuses changes nothing anywhere: the other scheduler keeps its entry', async () => {
    const host = await both()
    await install(host, { scheduler: 'cron' })
    const before = host.crontab?.toString()
    host.answers.set('systemctl --user --no-pager enable', { code: 1, stderr: 'refused' })
    await expect(install(host, { scheduler: 'systemd' })).rejects.toMatchObject({ code: 'SCHEDULER', exitCode: 2 })
    expect(host.crontab?.toString()).toBe(before)
    expect(timers(host)).toEqual([])
  })

  it('says when another scheduler could not be cleared: exit 3, and what it said', async () => {
    const host = await both()
    host.answers.set('crontab -l', { code: 1, stderr: 'crontab: not allowed' })
    const report = await install(host, { scheduler: 'systemd' })
    expect(report).toMatchObject({ exitCode: 3, summary: { scheduler: 'systemd' }, errors: [{ code: 'SCHEDULER', message: expect.stringMatching(/^cron: the crontab cannot be read .*not allowed/) as string }] })
    expect(timers(host)).toEqual(['rewind-admin-nightly.timer'])
  })

  it.each([
    [{ at: '* * * * * *' }, /counts in minutes/],
    [{ at: '25:00' }, /no time to run at/],
    [{ job: '../x' }, /cannot be scheduled/],
    [{ words: ['--root', '/a\nb'] }, /control characters/],
  ])('refuses %j before it asks any scheduler', async (options, message) => {
    const host = await both()
    await expect(install(host, options)).rejects.toThrow(message)
    expect([host.calls, existsSync(join(host.home, '.local'))]).toEqual([[], false])
  })

  it('is one at a time', async () => {
    const host = await fakeHost()
    const folder = join(host.home, '.local/state/rewind-admin')
    mkdirSync(folder, { recursive: true })
    const held = await acquireLock(join(folder, 'schedule.lock'), { ...context.lock, command: 'x', now, token: 'ff' })
    await expect(install(host)).rejects.toMatchObject({ code: 'LOCKED' })
    expect(host.calls).toEqual([])
    held.release()
    await install(host)
    expect(readdirSync(folder)).toEqual([])
  })
})

describe('schedule remove', () => {
  it('takes out what is ours and nothing else, from every scheduler', async () => {
    const host = await both()
    await install(host, { scheduler: 'cron' })
    await systemd.write([entry({ job: 'weekly' })], host)
    const report = await removeSchedule(undefined, host, context)
    expect(report).toMatchObject({ exitCode: 0, summary: { removed: 2 }, extra: { removed: [{ job: 'weekly', scheduler: 'systemd' }, { job: 'nightly', scheduler: 'cron', where: 'crontab' }] } })
    expect(host.crontab?.toString()).toBe('0 1 * * * mine\n')
    expect(timers(host)).toEqual([])
    await expect(removeSchedule(undefined, host, context)).rejects.toMatchObject({ code: 'NO_MATCH', exitCode: 1 })
  })

  it('of one job leaves the others', async () => {
    const host = await fakeHost()
    await install(host)
    await install(host, { job: 'weekly', at: '@weekly' })
    await removeSchedule('nightly', host, context)
    expect(cronJobs(host)).toEqual(['weekly'])
    await expect(removeSchedule('nightly', host, context)).rejects.toThrow('the job nightly is not scheduled')
  })

  it('clears what is left of a broken block, and lets a new installation be a new one', async () => {
    const host = await fakeHost({ crontab: '# BEGIN rewind-admin schedule\n0 1 * * * mine\n' })
    await expect(removeSchedule(undefined, host, context)).rejects.toMatchObject({ code: 'NO_MATCH' })
    expect(host.crontab?.toString()).toBe('0 1 * * * mine\n')
    await install(host)
    await removeSchedule(undefined, host, context)
    expect((await install(host, { installation: 'bbbbbbbbbbbbbbbb' })).extra?.commandLine).toContain('bbbbbbbbbbbbbbbb')
  })
})

describe('schedule status', () => {
  const program = (host: FakeHost): readonly [string, string] => [process.execPath, join(host.home, 'rewind admin.js')]

  it('says where, when next, what it starts, how the last run went, and whose first run is still to come', async () => {
    const host = await both()
    writeFile(program(host)[1], '')
    const root = await emptyRoot()
    const store = openStore(root)
    await install(host, { scheduler: 'systemd', program: program(host) })
    writeStoreFile(root, '.rewind-admin/status.json', '{"job":"nightly","exitCode":0}')
    const report = await scheduleStatus([store], undefined, host, context)
    expect(report).toMatchObject({
      exitCode: 0,
      findings: [],
      summary: { scheduled: 1 },
      extra: {
        lingering: true,
        entries: [{ job: 'nightly', scheduler: 'systemd', where: join(unitFolder(host), 'rewind-admin-nightly.timer'), at: '17 3 * * *', next: '2026-12-01T03:33:33.000Z', active: true, changed: false, gone: [], firstRunPending: [root] }],
        lastRuns: [{ root, lastRun: { job: 'nightly', exitCode: 0 } }],
      },
    })
    writeFileSync(noteFile(store), JSON.stringify({ schemaVersion: 1, previewed: [{ installation: 'aaaaaaaaaaaaaaaa', job: 'nightly', previewedAt: 'x' }] }))
    expect((await scheduleStatus([store], undefined, host, context)).extra).toMatchObject({ entries: [{ firstRunPending: [] }] })
  })

  it('with nothing scheduled says so: exit 1, and how to begin', async () => {
    const report = await scheduleStatus([], undefined, await fakeHost(), context)
    expect(report).toMatchObject({ exitCode: 1, summary: { scheduled: 0 }, next: 'rewind-admin schedule install' })
  })

  it('of a node or a script that has moved is exit 1 and names the path', async () => {
    const host = await fakeHost()
    await install(host, { program: [process.execPath, join(host.home, 'gone.js')] })
    const report = await scheduleStatus([], undefined, host, context)
    expect(report.exitCode).toBe(1)
    expect(report.findings).toMatchObject([{ id: 'schedule-path-gone', severity: 'error', place: { path: join(host.home, 'gone.js') } }])
  })

  it.each<[string, (host: FakeHost) => void, string, number]>([
    ['lingering that is off', (host) => host.answers.set('loginctl', { stdout: 'no\n' }), 'linger-off', 0],
    ['a timer that is not loaded', (host) => host.answers.set('systemctl --user --no-pager is-active', { code: 3 }), 'schedule-inactive', 1],
    ['a unit that was changed', (host) => { writeFileSync(join(unitFolder(host), 'rewind-admin-nightly.service'), `${readFileSync(join(unitFolder(host), 'rewind-admin-nightly.service'), 'utf8')}#\n`) }, 'schedule-changed', 0],
    ['a scheduler that cannot be asked', (host) => host.answers.set('crontab -l', { failure: 'no answer within 15 s' }), 'scheduler-silent', 0],
  ])('says of %s what it is', async (_, break_, id, exitCode) => {
    const host = await both()
    writeFile(program(host)[1], '')
    await install(host, { scheduler: 'systemd', program: program(host) })
    break_(host)
    const report = await scheduleStatus([], undefined, host, context)
    expect([report.exitCode, report.findings.map((found) => found.id)]).toEqual([exitCode, [id]])
  })

  it('of a job in two schedulers says so', async () => {
    const host = await both()
    const command = [process.execPath, process.execPath]
    await systemd.write([entry({ command })], host)
    await crontab.write([entry({ command })], host)
    expect((await scheduleStatus([], undefined, host, context)).findings).toMatchObject([{ id: 'schedule-twice', message: 'nightly is in systemd and in cron' }])
    expect((await scheduleStatus([], 'weekly', host, context)).summary).toEqual({ scheduled: 0 })
  })

  it('writes nothing', async () => {
    const host = await fakeHost()
    await scheduleStatus([], undefined, host, context)
    expect([readdirSync(host.home), host.calls.filter((line) => !/ -l$| list-timers| --property| print | \/query/.test(line))]).toEqual([[], []])
  })
})
