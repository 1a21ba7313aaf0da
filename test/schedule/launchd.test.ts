import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { launchd, plistOf } from '../../src/schedule/launchd.js'
import { entry, fakeHost, hostile, writeFile, type FakeHost } from './fake-host.js'

const mac = (): Promise<FakeHost> => fakeHost({ platform: 'darwin', programs: ['launchctl'] })
const folder = (host: FakeHost): string => join(host.home, 'Library/LaunchAgents')
const names = (host: FakeHost): string[] => (existsSync(folder(host)) ? readdirSync(folder(host)).sort() : [])
const file = (host: FakeHost, job = 'nightly'): string => join(folder(host), `io.rewind-admin.${job}.plist`)

describe('launchd', () => {
  it('gets the file first, then the old job out and the new one in', async () => {
    const host = await mac()
    await launchd.write([entry()], host)
    const service = 'gui/501/io.rewind-admin.nightly'
    expect(host.calls).toEqual([`launchctl bootout ${service}`, `launchctl bootstrap gui/501 ${file(host)}`])
    expect(readFileSync(file(host), 'utf8')).toBe(plistOf(entry()))
    host.calls.length = 0
    await launchd.write([entry({ at: '0 5 * * *' })], host)
    // It is waited for until the old one has gone.
    expect(host.calls).toEqual([`launchctl bootout ${service}`, `launchctl print ${service}`, `launchctl bootstrap gui/501 ${file(host)}`])
    expect(await launchd.installed(host)).toMatchObject([{ active: true, changed: false, where: file(host), entry: { calendar: { expression: '0 5 * * *' } } }])
  })

  it('that refuses has its old file back and the old job in', async () => {
    const host = await mac()
    await launchd.write([entry()], host)
    const old = readFileSync(file(host), 'utf8')
    host.answers.set('launchctl bootstrap', { code: 5, stderr: 'Bootstrap failed: 5: Input/output error' })
    await expect(launchd.write([entry({ at: '0 5 * * *' }), entry({ job: 'weekly' })], host)).rejects.toThrow(/launchd refused io.rewind-admin.nightly .*Input\/output error.*as they were/)
    expect(names(host)).toEqual(['io.rewind-admin.nightly.plist'])
    expect(readFileSync(file(host), 'utf8')).toBe(old)
    expect(host.calls.at(-1)).toBe(`launchctl bootstrap gui/501 ${file(host)}`)
  })

  it('a first installation that is refused leaves nothing', async () => {
    const host = await mac()
    host.answers.set('launchctl bootstrap', { code: 5 })
    await expect(launchd.write([entry()], host)).rejects.toThrow('launchd refused')
    expect(names(host)).toEqual([])
  })

  it('never writes over a file of somebody else, and removes only its own', async () => {
    const host = await mac()
    writeFile(file(host), '<plist/>')
    await expect(launchd.write([entry()], host)).rejects.toThrow(/is in the way/)
    await launchd.write([], host)
    expect(readFileSync(file(host), 'utf8')).toBe('<plist/>')
    await launchd.write([entry({ job: 'weekly' })], host)
    await launchd.write([], host)
    expect(names(host)).toEqual(['io.rewind-admin.nightly.plist'])
  })

  it('says when the file was changed, and when the job is not loaded', async () => {
    const host = await mac()
    await launchd.write([entry()], host)
    writeFile(file(host), plistOf(entry()).replace('<integer>3<', '<integer>4<'))
    host.answers.set('launchctl print', { code: 113 })
    expect(await launchd.installed(host)).toMatchObject([{ active: false, changed: true }])
  })

  it('is only for macOS, and there only when it answers', async () => {
    const linux = await fakeHost()
    expect([await launchd.unavailable(linux), await launchd.installed(linux), linux.calls]).toEqual(['launchd is for macOS', [], []])
    const host = await mac()
    expect(await launchd.unavailable(host)).toBeUndefined()
    host.answers.set('launchctl print', { code: 113, stderr: 'Could not find domain' })
    expect(await launchd.unavailable(host)).toContain('Could not find domain')
  })

  it('refuses a time of more single moments than a file should name', () => {
    expect(() => plistOf(entry({ at: '*/2 1-23/2 * * 1-6' }))).toThrow(/2160 single moments/)
  })
})

const parser = spawnSync('python3', ['-c', 'import plistlib']).status === 0

describe(`the property list, read by a parser${parser ? '' : ' (skipped: no python3 with plistlib here)'}`, () => {
  function parsed(given: ReturnType<typeof entry>): Record<string, unknown> {
    const read = 'import plistlib,sys,json;print(json.dumps(plistlib.loads(sys.stdin.buffer.read(),fmt=plistlib.FMT_XML)))'
    const { stdout, status, stderr } = spawnSync('python3', ['-c', read], { input: plistOf(given), encoding: 'utf8' })
    if (status !== 0) throw new Error(stderr)
    return JSON.parse(stdout) as Record<string, unknown>
  }

  it.skipIf(!parser)('holds every word as it is, and runs in the background', () => {
    const command = [hostile, '/s "x" & <y>', 'run']
    expect(parsed(entry({ command, environment: { CLAUDE_CONFIG_DIR: '/a & b' } }))).toEqual({
      Label: 'io.rewind-admin.nightly',
      ProgramArguments: command,
      EnvironmentVariables: { CLAUDE_CONFIG_DIR: '/a & b' },
      StartCalendarInterval: [{ Hour: 3, Minute: 17 }],
      ProcessType: 'Background',
      LowPriorityIO: true,
      Nice: 19,
      ExitTimeOut: 300,
    })
  })

  it.skipIf(!parser).each([
    ['@hourly', [{ Minute: 0 }]],
    ['* * * * *', [{}]],
    ['0 3,5 * * 0', [{ Weekday: 0, Hour: 3, Minute: 0 }, { Weekday: 0, Hour: 5, Minute: 0 }]],
    ['5 4 1 2 *', [{ Month: 2, Day: 1, Hour: 4, Minute: 5 }]],
    ['0 0 13 * 5', [{ Day: 13, Hour: 0, Minute: 0 }, { Weekday: 5, Hour: 0, Minute: 0 }]],
  ])('%s is %j', (at, expected) => {
    expect(parsed(entry({ at })).StartCalendarInterval).toEqual(expected)
  })
})
