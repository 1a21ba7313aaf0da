import { describe, expect, it } from 'vitest'
import { chooseScheduler } from '../../src/schedule/choose.js'
import { checkJobName, checkWords, labelledEntries, labelOf } from '../../src/schedule/entry.js'
import { entry, fakeHost, hostile, type FakeOptions } from './fake-host.js'

describe('auto', () => {
  it.each<[string, FakeOptions, string]>([
    ['macOS', { platform: 'darwin', programs: ['launchctl', 'crontab'] }, 'launchd'],
    ['Windows', { platform: 'win32', programs: ['schtasks', 'crontab'] }, 'schtasks'],
    ['Linux with systemd', { programs: ['systemctl', 'crontab'] }, 'systemd'],
    ['Linux without', { programs: ['crontab'] }, 'cron'],
    ['FreeBSD', { platform: 'freebsd', programs: ['crontab', 'systemctl'] }, 'cron'],
  ])('on %s is the right one', async (_, options, expected) => {
    expect((await chooseScheduler('auto', await fakeHost(options))).name).toBe(expected)
  })

  it('takes the crontab when systemd is there and does not answer', async () => {
    const host = await fakeHost({ programs: ['systemctl', 'crontab'] })
    host.answers.set('systemctl', { failure: 'no answer within 15 s' })
    expect((await chooseScheduler('auto', host)).name).toBe('cron')
  })

  it('says of each why not, and what to use instead', async () => {
    const host = await fakeHost({ programs: [] })
    await expect(chooseScheduler('auto', host)).rejects.toMatchObject({ code: 'SCHEDULER', exitCode: 2, message: expect.stringMatching(/systemd: .*ENOENT.*cron: there is no crontab program/) as string, hint: expect.stringContaining('daemon') as string })
  })

  it('gives way to a name, and never to another scheduler than the named one', async () => {
    const host = await fakeHost({ programs: ['systemctl', 'crontab'] })
    expect((await chooseScheduler('cron', host)).name).toBe('cron')
    await expect(chooseScheduler('launchd', host)).rejects.toThrow('launchd is for macOS')
    await expect(chooseScheduler('cron', await fakeHost({ platform: 'darwin' }))).rejects.toThrow('cron is not used on this system')
  })
})

describe('the label of an entry', () => {
  it('gives the entry back from the middle of any text, and breaks no comment it stands in', () => {
    const given = entry({ command: [hostile, '\u{1f600}', '--x'], environment: { A: "'--%" } })
    expect(labelOf(given)).toMatch(/^[A-Za-z0-9:+/=-]+$/)
    expect(labelOf(given)).not.toContain('--')
    expect(labelledEntries(`<!-- ${labelOf(given)} --> ${labelOf(entry())}`)).toEqual([given, entry()])
  })

  it.each([
    ['cut', labelOf(entry()).slice(0, -9)],
    ['empty', 'rewind-admin-entry:'],
    ['of another shape', `rewind-admin-entry:${Buffer.from('{"job":1}').toString('base64')}`],
    ['with a name that is a path', labelOf(entry({ job: '../x' }))],
  ])('that is %s is no entry', (_, text) => {
    expect(labelledEntries(text)).toEqual([])
  })
})

describe('what no scheduler could hold', () => {
  it.each([['../x'], ['A'], ['a b'], ['-a'], ['a-'], [''], ['a'.repeat(41)], ['ä']])('is refused as the name of a job: %j', (name) => {
    expect(() => { checkJobName(name) }).toThrow(/cannot be scheduled/)
  })

  it('is refused as a word: a path with a line end in it', () => {
    expect(() => { checkWords(entry({ command: ['/a\nb'] })) }).toThrow(/control characters/)
    expect(() => { checkWords(entry({ environment: { A: 'x\u0000' } })) }).toThrow(/control characters/)
    expect(() => { checkWords(entry({ command: [hostile] })) }).not.toThrow()
  })
})
