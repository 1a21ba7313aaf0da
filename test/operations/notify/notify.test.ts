import { describe, expect, it } from 'vitest'
import { noItems, type Report } from '../../../src/model/report.js'
import type { CommandEnd, NotifyMeans } from '../../../src/operations/notify/means.js'
import { withNotifications } from '../../../src/operations/notify/notify.js'
import type { NotifySettings } from '../../../src/settings/notify-settings.js'

const good: Report = { command: 'run', roots: ['/r'], applied: true, summary: {}, ...noItems, exitCode: 0 }

const everything: NotifySettings = {
  ping: { start: 'https://p/start', success: 'https://p', fail: 'https://p/fail', timeoutMs: 1000 },
  before: { command: ['before', 'x'], timeoutMs: 1000 },
  after: { command: ['after'], timeoutMs: 2000 },
}

interface Hooked {
  readonly command: string
  readonly input: Report
  readonly env: Readonly<Record<string, string>>
}

/** Runs a job that gives `result`, and notes in order what was done around it. */
async function told(
  settings: NotifySettings,
  result: Report | Error,
  ends: Readonly<Record<string, CommandEnd>> = {},
  status = 200,
): Promise<{ readonly order: string[]; readonly hooks: Hooked[]; readonly report: Report | undefined; readonly error: unknown }> {
  const order: string[] = []
  const hooks: Hooked[] = []
  const means: NotifyMeans = {
    fetch: (address) => {
      order.push(address)
      return Promise.resolve({ ok: status < 400, status })
    },
    runCommand: ([program = ''], { input, env }) => {
      order.push(program)
      hooks.push({ command: program, input: JSON.parse(input) as Report, env })
      return Promise.resolve(ends[program] ?? { kind: 'exit', code: 0, complaint: '' })
    },
    clock: () => 0,
    json: (report) => JSON.stringify(report),
    failed: (error) => ({ errors: [{ code: 'X', message: String(error) }], exitCode: 10 }),
  }
  const run = (): Promise<Report> => {
    order.push('job')
    return result instanceof Error ? Promise.reject(result) : Promise.resolve(result)
  }
  try {
    const report = await withNotifications(settings, { name: 'nightly', roots: ['/r'], apply: true, run }, means)
    return { order, hooks, report, error: undefined }
  } catch (error) {
    return { order, hooks, report: undefined, error }
  }
}

const words = (report: Report | undefined): unknown => report?.findings.map(({ id, severity, message }) => `${severity} ${id}: ${message}`)

describe('a job that nobody is told about', () => {
  it('is the default: nothing is asked for and nothing is started', async () => {
    const { order, report } = await told({}, good)
    expect([order, report]).toEqual([['job'], good])
  })
})

describe('those who are told', () => {
  it('are told in order: the hook before, start, the job, success, the hook after', async () => {
    const { order, report } = await told(everything, good)
    expect(order).toEqual(['before', 'https://p/start', 'job', 'https://p', 'after'])
    expect(report).toEqual(good)
  })

  it.each([1, 3, 4, 65, 143] as const)('get fail instead of success for exit code %i', async (exitCode) => {
    expect((await told(everything, { ...good, exitCode })).order[3]).toBe('https://p/fail')
  })

  it('get the report on standard input, with job, event and exit code in the environment', async () => {
    const { hooks } = await told(everything, { ...good, exitCode: 3 })
    expect(hooks).toMatchObject([
      { command: 'before', input: { command: 'run', roots: ['/r'], summary: { job: 'nightly' }, exitCode: 0 }, env: { REWIND_ADMIN_EVENT: 'before', REWIND_ADMIN_JOB: 'nightly' } },
      { command: 'after', input: { exitCode: 3 }, env: { REWIND_ADMIN_EVENT: 'after', REWIND_ADMIN_EXIT_CODE: '3' } },
    ])
    expect(hooks[0]?.env).not.toHaveProperty('REWIND_ADMIN_EXIT_CODE')
  })

  it('are told of a job that threw, which is thrown all the same', async () => {
    const thrown = new Error('no store')
    const { order, hooks, error } = await told(everything, thrown)
    expect(order).toEqual(['before', 'https://p/start', 'job', 'https://p/fail', 'after'])
    expect(hooks[1]?.input).toMatchObject({ exitCode: 10, applied: false, errors: [{ message: 'Error: no store' }], extra: { job: 'nightly', steps: [] } })
    expect(error).toBe(thrown)
  })
})

describe('a hook before the job', () => {
  it('that ends with 75 puts it off: nothing is done, nobody else is told, and the exit code is 75', async () => {
    const { order, report } = await told(everything, good, { before: { kind: 'exit', code: 75, complaint: '' } })
    expect(order).toEqual(['before'])
    expect(report).toMatchObject({ exitCode: 75, applied: false, errors: [{ code: 'PUT_OFF' }] })
  })

  it('that ends with 75 after the job puts nothing off', async () => {
    const { report } = await told(everything, good, { after: { kind: 'exit', code: 75, complaint: '' } })
    expect(report?.exitCode).toBe(0)
  })
})

describe('what fails around a job', () => {
  const ends: readonly (readonly [CommandEnd, string])[] = [
    [{ kind: 'exit', code: 1, complaint: '' }, 'ended with exit code 1'],
    [{ kind: 'exit', code: 127, complaint: 'no such host' }, 'ended with exit code 127: no such host'],
    [{ kind: 'signal', signal: 'SIGSEGV', complaint: '' }, 'was ended by SIGSEGV'],
    [{ kind: 'too long' }, 'was ended, because it took longer than 1 s'],
    [{ kind: 'not started', reason: 'ENOENT' }, 'could not be started: ENOENT'],
  ]
  it.each(ends)('is a finding and never breaks the job: a hook with %j', async (end, how) => {
    const { order, report } = await told(everything, good, { before: end })
    expect(order).toContain('job')
    expect(report?.exitCode).toBe(0)
    expect(words(report)).toEqual([`warn notification-failed: the hook before the job (before) ${how}`])
  })

  it('is a finding: pings, metrics and the hook after, and the last one is told of the others', async () => {
    const { report, hooks } = await told({ ...everything, metrics: '/nowhere/at/all' }, { ...good, exitCode: 1 }, { after: { kind: 'exit', code: 9, complaint: '' } }, 500)
    expect(report?.exitCode).toBe(1)
    expect(words(report)).toEqual([
      'warn notification-failed: the ping for start was answered with status 500',
      'warn notification-failed: the metrics could not be written to /nowhere/at/all/rewind_admin_nightly.prom (ENOENT)',
      'warn notification-failed: the ping for fail was answered with status 500',
      'warn notification-failed: the hook after the job (after) ended with exit code 9',
    ])
    expect(hooks[1]?.input.findings).toHaveLength(3)
  })
})
