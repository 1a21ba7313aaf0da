import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { crontab } from '../../src/schedule/crontab.js'
import { cronLine, withEntries } from '../../src/schedule/crontab-text.js'
import { labelOf } from '../../src/schedule/entry.js'
import { temporaryFolder } from '../helpers/temp.js'
import { entry, fakeHost, hostile } from './fake-host.js'

const begin = '# BEGIN rewind-admin schedule\n'
const end = '# END rewind-admin schedule\n'
const line = '17 3 * * * /opt/node/bin/node /opt/rewind-admin/bin/rewind-admin.js run nightly # rewind-admin schedule: nightly\n'
const block = `${begin}# ${labelOf(entry())}\n${line}${end}`
const foreign = 'SHELL=/bin/bash\n\n# mine\n*/5 * * * * backup --to "x%y"\r\n'

const put = (before: string | Buffer, entries = [entry()]): string => withEntries(Buffer.from(before), entries).toString('latin1')

describe('the text of a crontab', () => {
  it('gets a block at its end; installing twice is installing once; removing gives the old bytes back', () => {
    expect(put(foreign)).toBe(foreign + block)
    expect(put(put(foreign))).toBe(foreign + block)
    expect(put(foreign + block, [])).toBe(foreign)
    expect(put('')).toBe(block)
  })

  it('keeps the block where it was, between lines of others', () => {
    const later = entry({ at: '0 5 * * *' })
    expect(put(`${foreign}${block}0 1 * * * later\n`, [later])).toBe(put(foreign, [later]) + '0 1 * * * later\n')
  })

  it.each([
    ['without its end', `${foreign}${begin}${line}0 1 * * * mine\n`, `${foreign}${block}0 1 * * * mine\n`],
    ['without its beginning', `${foreign}${line}${end}0 1 * * * mine\n`, `${foreign}${block}0 1 * * * mine\n`],
    ['twice', `${block}0 1 * * * mine\n${block}`, `${block}0 1 * * * mine\n`],
    ['inside itself', `${begin}${begin}${line}${end}${end}`, block],
    ['with a line of the user in it', `${begin}${line}0 1 * * * mine\n${end}`, `${block}0 1 * * * mine\n`],
    ['with two beginnings and a user between them', `${begin}0 1 * * * mine\n${begin}${line}${end}`, `${block}0 1 * * * mine\n`],
    ['with line ends of Windows', block.replaceAll('\n', '\r\n'), block],
  ])('mends a block that stands there %s, and loses no line of anybody else', (_, before, after) => {
    expect(put(before)).toBe(after)
  })

  it('takes lines that only look like ours for somebody else’s', () => {
    const near = ' # BEGIN rewind-admin schedule\n# BEGIN rewind-admin schedule now\n0 1 * * * x # rewind-admin schedule\nMAILTO=x # rewind-admin schedule: nightly\n# rewind-admin-entry: about it\n'
    expect(put(near)).toBe(near + block)
    expect(put(near, [])).toBe(near)
  })

  it('ends a last line that has no end before it begins its own', () => {
    expect(put('0 1 * * * mine')).toBe(`0 1 * * * mine\n${block}`)
    expect(put('0 1 * * * mine', [])).toBe('0 1 * * * mine')
  })

  it('keeps every byte of others, whatever they are, through install and remove', () => {
    const piece = fc.oneof(fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes)), fc.constantFrom(begin, end, line, block, '\n', '\r\n', 'x').map((text) => Buffer.from(text)))
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const before = Buffer.concat(pieces.flatMap((part) => [part, Buffer.from('\n')]))
        const lines = (bytes: Buffer): string[] => bytes.toString('latin1').split('\n')
        const own = new Set([begin, end, line, ...block.split('\n').map((text) => `${text}\n`)].map((text) => text.trimEnd()))
        const others = (bytes: Buffer): string => lines(bytes).filter((text) => text !== '' && !own.has(text.replace(/\r$/, ''))).join('\n')
        const installed = withEntries(before, [entry()])
        expect(others(installed)).toBe(others(before))
        expect(others(withEntries(installed, []))).toBe(others(before))
        expect(installed.includes(block)).toBe(true)
        expect(withEntries(installed, []).includes(line)).toBe(false)
      }),
      { numRuns: 300 },
    )
  })
})

describe('the line of an entry', () => {
  it('brings every word to the program as it is: blanks, quotes, unicode, percent signs', () => {
    const script = 'process.stdout.write(JSON.stringify([process.argv.slice(1), process.env.X]))'
    const command = [process.execPath, '-e', script, '--', hostile, 'zwölf 12', "a'b", '100%', '$(id)', '*']
    const text = cronLine(entry({ command, environment: { X: "it's 5 %" } }))
    // What cron does before the shell gets the line: the five fields go, and a backslash before a percent sign.
    const [, shellText = ''] = /^(?:\S+ ){5}(.*)$/.exec(text) ?? []
    expect(shellText.replaceAll('\\%', '')).not.toContain('%')
    const said = execFileSync('/bin/sh', ['-c', shellText.replaceAll('\\%', '%')], { encoding: 'utf8' })
    expect(JSON.parse(said)).toEqual([[hostile, 'zwölf 12', "a'b", '100%', '$(id)', '*'], "it's 5 %"])
  })

  it('is refused when cron would cut it off', () => {
    expect(() => cronLine(entry({ command: ['/n', '/s', 'x'.repeat(960)] }))).toThrow(/too long for a crontab/)
  })
})

describe('crontab', () => {
  it('none yet: a new one; removed again: none', async () => {
    const host = await fakeHost()
    await crontab.write([entry()], host)
    expect(host.crontab?.toString()).toBe(block)
    expect(await crontab.installed(host)).toMatchObject([{ scheduler: 'cron', changed: false, entry: { job: 'nightly', installation: '0123456789abcdef' } }])
    await crontab.write([], host)
    expect(host.crontab).toBeUndefined()
    expect(host.calls).toEqual(['crontab -l', 'crontab -', 'crontab -l', 'crontab -l', 'crontab -l', 'crontab -r', 'crontab -l'])
  })

  it('with nothing to change is not written', async () => {
    const host = await fakeHost({ crontab: foreign })
    await crontab.write([], host)
    expect(host.calls).toEqual(['crontab -l'])
  })

  it.each([
    ['ends with an error', { code: 1, stderr: 'crontab: not allowed\n' }],
    ['takes too long', { failure: 'no answer within 15 s' }],
    ['fails after some output', { code: 1, stdout: '0 1 * * * mine\n', stderr: 'no crontab for me' }],
  ])('that cannot be read (%s) is never written', async (_, answer) => {
    const host = await fakeHost({ crontab: foreign })
    host.answers.set('crontab -l', answer)
    await expect(crontab.write([entry()], host)).rejects.toThrow(/cannot be read .* nothing was changed/)
    await expect(crontab.installed(host)).rejects.toThrow(/cannot be read/)
    expect(host.calls).toEqual(['crontab -l', 'crontab -l'])
  })

  it('that refuses leaves everything as it was', async () => {
    const host = await fakeHost({ crontab: foreign })
    host.answers.set('crontab -l', { stdout: foreign })
    host.answers.set('crontab -', { code: 1, stderr: 'bad minute' })
    await expect(crontab.write([entry()], host)).rejects.toThrow(/crontab refused \(exit code 1: bad minute\); nothing was changed/)
    expect(host.crontab?.toString()).toBe(foreign)
  })

  it('that does not hold what it was given gets back what it held', async () => {
    const host = await fakeHost({ crontab: foreign })
    let reads = 0
    const lossy = { ...host, run: (...call: Parameters<typeof host.run>) => {
      if (call[1][0] === '-l' && (reads += 1) === 2) return Promise.resolve({ code: 0, stdout: Buffer.from('half'), stderr: '' })
      return host.run(...call)
    } }
    await expect(crontab.write([entry()], lossy)).rejects.toThrow(/the old one was put back/)
    expect(host.crontab?.toString()).toBe(foreign)
  })

  it('changed by hand says so', async () => {
    const host = await fakeHost({ crontab: block.replace('17 3', '18 3') })
    expect(await crontab.installed(host)).toMatchObject([{ changed: true }])
  })

  it('is not for macOS and Windows, and is unavailable without its program', async () => {
    for (const platform of ['darwin', 'win32'] as const) {
      const host = await fakeHost({ platform })
      expect([await crontab.unavailable(host), await crontab.installed(host), host.calls]).toEqual([expect.stringContaining('not used'), [], []])
    }
    const host = await fakeHost({ programs: [] })
    expect(await crontab.unavailable(host)).toBe('there is no crontab program')
    await expect(crontab.write([entry()], host)).rejects.toThrow('no crontab program')
    await expect(crontab.write([], host)).resolves.toBeUndefined()
  })
})

// Debian's crontab can check a file without installing it.
// Asked for by its help, because the same letter means something else to others.
const help = spawnSync('crontab', ['-h'], { encoding: 'utf8' })
const checks = `${help.stdout}${help.stderr}`.includes('dry run')
it.skipIf(!checks)(`the crontab program takes our block${checks ? '' : ' (skipped: no crontab here that can check a file without installing it)'}`, async () => {
  const file = join(await temporaryFolder(), 'crontab')
  const entries = [entry({ command: [hostile, hostile, 'run'] }), entry({ job: 'weekly', at: '*/7 1-5 1,15 jan-jun mon-fri' })]
  writeFileSync(file, withEntries(Buffer.from(foreign.replace('\r', '')), entries))
  expect(spawnSync('crontab', ['-n', file], { encoding: 'utf8' })).toMatchObject({ status: 0 })
  writeFileSync(file, '99 3 * * * x\n')
  expect(spawnSync('crontab', ['-n', file], { encoding: 'utf8' }).status).not.toBe(0)
})
