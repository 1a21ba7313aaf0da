import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ConfigError } from '../../src/model/errors.js'
import { configLayers, defaultConfigFile, parseConfig, pinReason, readConfig, type ConfigPlace } from '../../src/settings/config.js'
import { temporaryFolder } from '../helpers/temp.js'

const day = 86_400_000

const defaults = {
  file: undefined,
  roots: [],
  pins: { sessions: [], projects: [] },
  periods: [],
  cap: undefined,
  graceMs: 7 * day,
  brake: { sessions: 50, percent: 20 },
  floorMs: day,
  quietPeriodMs: 3_600_000,
  jobs: {},
  notify: {},
}

async function place(): Promise<ConfigPlace> {
  return { env: {}, home: await temporaryFolder(), platform: 'linux' }
}

function problemOf(value: unknown): string {
  try {
    parseConfig(value, '/home/u', '/c.json')
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  return 'accepted'
}

describe('the merged defaults', () => {
  it('R16: without a file every guard is on and nothing is set that makes a command act', async () => {
    expect(readConfig(await place())).toEqual(defaults)
  })

  it('R16: an empty object is the same as no file', () => {
    expect(parseConfig({}, '/home/u')).toEqual(defaults)
  })

  it('R16: a section that sets one key keeps the guards of its other keys', () => {
    expect(parseConfig({ brake: { percent: 5 } }, '/h').brake).toEqual({ sessions: 50, percent: 5 })
    expect(parseConfig({ pins: { sessions: ['a'] } }, '/h').pins).toEqual({ sessions: ['a'], projects: [] })
    expect(parseConfig({ brake: {}, pins: {} }, '/h')).toEqual(defaults)
  })

  it.each(['apply', 'noTrash', 'enabled', 'delete'])('R16: there is no key %s by which a file could make a command act', (key) => {
    expect(problemOf({ [key]: true })).toContain(`${key} is not a known key`)
  })
})

describe('parseConfig', () => {
  it('reads every key, durations as milliseconds, ~ as the home folder', () => {
    const config = parseConfig(
      {
        $schema: 'x',
        roots: ['~/.claude', '/srv/agent', 'D:\\agent'],
        pins: { sessions: ['0198'], projects: ['~/keep/**', '/p'] },
        periods: [{ project: '~/p', days: 365 }],
        cap: 250,
        grace: '1d12h',
        brake: { sessions: 0, percent: 12.5 },
        floor: '2w',
        quietPeriod: '0s',
        jobs: { weekly: ['verify', { step: 'cap', when: 'no-errors-found', every: '7d' }, { step: 'verify', buckets: 7 }] },
        notify: {
          ping: { url: 'https://ping.example/abc/?rid=1', fail: 'https://other.example/down', timeout: '5s' },
          before: { command: ['/bin/on-ac', '-q'] },
          after: { command: ['mail-me'], timeout: '2m' },
          metrics: '/var/lib/metrics',
        },
      },
      '/home/u',
      '/c.json',
    )
    expect(config).toEqual({
      file: '/c.json',
      roots: ['/home/u/.claude', '/srv/agent', 'D:\\agent'],
      pins: { sessions: ['0198'], projects: ['/home/u/keep/**', '/p'] },
      periods: [{ project: '/home/u/p', days: 365 }],
      cap: 250,
      graceMs: 1.5 * day,
      brake: { sessions: 0, percent: 12.5 },
      floorMs: 14 * day,
      quietPeriodMs: 0,
      jobs: { weekly: [{ step: 'verify' }, { step: 'cap', when: 'no-errors-found', everyMs: 7 * day }, { step: 'verify', buckets: 7 }] },
      notify: {
        ping: { start: 'https://ping.example/abc/start?rid=1', success: 'https://ping.example/abc/?rid=1', fail: 'https://other.example/down', timeoutMs: 5000 },
        before: { command: ['/bin/on-ac', '-q'], timeoutMs: 60_000 },
        after: { command: ['mail-me'], timeoutMs: 120_000 },
        metrics: '/var/lib/metrics',
      },
    })
  })

  it.each([
    [{ quietperiod: '1h' }, 'quietperiod is not a known key; did you mean quietPeriod?'],
    [{ brake: { sesions: 3 } }, 'brake.sesions is not a known key; did you mean sessions?'],
    [{ pins: { project: [] } }, 'pins.project is not a known key; did you mean projects?'],
    [{ periods: [{ project: '/p', day: 1, days: 2 }] }, 'periods.0.day is not a known key; did you mean days?'],
    [{ zzzzzzzz: 1 }, 'zzzzzzzz is not a known key'],
    [{ jobs: { n: ['verify', { step: 'verify', bucket: 7 }] } }, 'jobs.n.1.bucket is not a known key; did you mean buckets?'],
    [{ notify: { pings: {} } }, 'notify.pings is not a known key; did you mean ping?'],
    [{ notify: { ping: { ulr: 'x' } } }, 'notify.ping.ulr is not a known key; did you mean url?'],
    [{ notify: { after: { command: ['x'], timeuot: '1s' } } }, 'notify.after.timeuot is not a known key; did you mean timeout?'],
  ])('an unknown key in %j is an error with the nearest name', (value, problem) => {
    expect(problemOf(value)).toBe(`/c.json: ${problem}`)
  })

  it.each([
    [[], '(top level) must be an object, not []'],
    ['x', '(top level) must be an object, not "x"'],
    [{ roots: '/a' }, 'roots must be a list, not "/a"'],
    [{ roots: [1] }, 'roots.0 must be text, not 1'],
    [{ roots: [''] }, 'roots.0 must not be empty, not ""; roots.0 must be an absolute path, not ""'],
    [{ roots: ['rel/path'] }, 'roots.0 must be an absolute path, not "rel/path"'],
    [{ pins: { sessions: [''] } }, 'pins.sessions.0 must not be empty, not ""'],
    [{ pins: { projects: ['p'] } }, 'pins.projects.0 must be an absolute path, not "p"'],
    [{ pins: { projects: ['/a/*/b'] } }, 'pins.projects.0 may hold a star only as a trailing /**, not "/a/*/b"'],
    [{ pins: { projects: ['/a/*'] } }, 'pins.projects.0 may hold a star only as a trailing /**, not "/a/*"'],
    [{ pins: null }, 'pins must be an object, not null'],
    [{ pins: [] }, 'pins must be an object, not []'],
    [{ brake: [] }, 'brake must be an object, not []'],
    [{ jobs: [] }, 'jobs must be an object, not []'],
    [{ periods: [[]] }, 'periods.0 must be an object, not []'],
    [{ jobs: { n: 'verify' } }, 'jobs.n must be a list, not "verify"'],
    [{ periods: [{ project: '/p' }] }, 'periods.0.days is missing'],
    [{ periods: [{ project: '/p', days: 0 }] }, 'periods.0.days must be a whole number of days, 1 or more, not 0'],
    [{ periods: [{ project: '/p', days: '30' }] }, 'periods.0.days must be a number, not "30"'],
    [{ cap: 0 }, 'cap must be 1 or more, not 0'],
    [{ cap: 1.5 }, 'cap must be a whole number, not 1.5'],
    [{ grace: 7 }, 'grace must be a duration like 7d, 24h, 60m or 1d12h, not 7'],
    [{ floor: '24' }, 'floor must be a duration like 7d, 24h, 60m or 1d12h, not "24"'],
    [{ brake: { percent: 101 } }, 'brake.percent must be 100 or less, not 101'],
    [{ brake: { sessions: -1 } }, 'brake.sessions must be 0 or more, not -1'],
    [{ jobs: { n: [] } }, 'jobs.n must name at least one step, not []'],
    [{ jobs: { n: [7] } }, 'jobs.n.0 must be an object, not 7'],
    [{ jobs: { n: [{}] } }, 'jobs.n.0.step is missing'],
    [{ jobs: { n: [{ step: 'verify', buckets: 257 }] } }, 'jobs.n.0.buckets must be 256 or less, not 257'],
    [{ jobs: { n: [{ step: 'verify', every: '7' }] } }, 'jobs.n.0.every must be a duration like 7d, 24h, 60m or 1d12h, not "7"'],
    [{ notify: { ping: { url: 'ftp://x' } } }, 'notify.ping.url must be an http or https address, not "ftp://x"'],
    [{ notify: { ping: { url: 'https://x', timeout: '0s' } } }, 'notify.ping.timeout must be longer than nothing, not 0'],
    [{ notify: { before: { command: 'rm -rf /' } } }, 'notify.before.command must be a list, not "rm -rf /"'],
    [{ notify: { before: { command: [] } } }, 'notify.before.command must name a program, not []'],
    [{ notify: { before: {} } }, 'notify.before.command is missing'],
    [{ notify: { metrics: 'here' } }, 'notify.metrics must be an absolute path, not "here"'],
    [{ notify: [] }, 'notify must be an object, not []'],
  ])('%j is refused, naming key and value', (value, problem) => {
    expect(problemOf(value)).toBe(`/c.json: ${problem}`)
  })

  it('names every problem at once', () => {
    expect(problemOf({ cap: 0, flor: '1d' })).toBe('/c.json: cap must be 1 or more, not 0; flor is not a known key; did you mean floor?')
  })

  it('ends with the exit code of a wrong configuration', () => {
    expect(() => parseConfig({ cap: 0 }, '/h')).toThrow(expect.objectContaining({ code: 'CONFIG', exitCode: 2 }) as Error)
  })
})

describe('readConfig', () => {
  it.each([
    [{ XDG_CONFIG_HOME: '/xdg' }, 'linux', '/xdg/rewind-admin/rewind-admin.config.json'],
    [{}, 'linux', '/home/u/.config/rewind-admin/rewind-admin.config.json'],
    [{ XDG_CONFIG_HOME: 'relative' }, 'linux', '/home/u/.config/rewind-admin/rewind-admin.config.json'],
    [{ XDG_CONFIG_HOME: '' }, 'darwin', '/home/u/.config/rewind-admin/rewind-admin.config.json'],
    [{ APPDATA: 'C:\\Users\\u\\AppData\\Roaming' }, 'win32', 'C:\\Users\\u\\AppData\\Roaming\\rewind-admin\\rewind-admin.config.json'],
  ] as const)('with %j on %s the place is %s', (env, platform, file) => {
    expect(defaultConfigFile({ env, home: '/home/u', platform })).toBe(file)
  })

  it('on Windows without APPDATA the place is below the home folder', () => {
    expect(defaultConfigFile({ env: {}, home: 'C:\\Users\\u', platform: 'win32' })).toBe(
      'C:\\Users\\u\\AppData\\Roaming\\rewind-admin\\rewind-admin.config.json',
    )
  })

  it('reads the usual place, a BOM is accepted', async () => {
    const around = await place()
    const file = defaultConfigFile(around)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, '\ufeff{"cap":7}')
    expect(readConfig(around)).toEqual({ ...defaults, file, cap: 7 })
  })

  it('a file that was named must exist; ~ is the home folder', async () => {
    const around = await place()
    expect(() => readConfig(around, join(around.home, 'none.json'))).toThrow(/none\.json does not exist/)
    writeFileSync(join(around.home, 'mine.json'), '{"cap":7}')
    expect(readConfig(around, '~/mine.json').cap).toBe(7)
  })

  it.each(['', '{"cap":7,}', '[]'])('a file holding %j is an error, never defaults', async (text) => {
    const around = await place()
    const file = defaultConfigFile(around)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    expect(() => readConfig(around)).toThrow(ConfigError)
  })
})

describe('pinReason', () => {
  const config = parseConfig({ pins: { sessions: ['0198-ab'], projects: ['/grp-b/**', '/one'] } }, '/h')

  it.each([
    ['0198-abcd', ['/x'], 'pinned by session 0198-ab'],
    ['0198-ac', ['/x', '/grp-b/deep'], 'pinned by project /grp-b/**'],
    ['1', ['/one/'], 'pinned by project /one'],
    ['1', ['/one/below'], undefined],
    ['1', ['/grp-b-extra'], undefined],
    ['1', [], undefined],
  ])('R09: session %s of %j: %s', (session, projects, reason) => {
    expect(pinReason(config, session, projects)).toBe(reason)
  })
})

describe('configLayers', () => {
  it('R09: gives every period that names the project, as layers of their own', () => {
    const config = parseConfig({ periods: [{ project: '/p/**', days: 400 }, { project: '/p/a', days: 5 }, { project: '/q', days: 9 }] }, '/h', '/c')
    expect(configLayers(config, '/p/a')).toEqual([
      { layer: 'config', file: '/c', state: { kind: 'days', days: 400 } },
      { layer: 'config', file: '/c', state: { kind: 'days', days: 5 } },
    ])
    expect(configLayers(config, '/elsewhere')).toEqual([])
    expect(configLayers(config, undefined)).toEqual([])
  })
})
