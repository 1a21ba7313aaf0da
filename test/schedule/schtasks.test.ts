import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { schtasks } from '../../src/schedule/schtasks.js'
import { taskXml, windowsQuoted } from '../../src/schedule/schtasks-xml.js'
import { entry, fakeHost, hostile, type FakeHost } from './fake-host.js'

const windows = async (): Promise<FakeHost> => {
  const host = await fakeHost({ platform: 'win32', programs: ['schtasks'] })
  return Object.assign(host, { env: { LOCALAPPDATA: join(host.home, 'local') } })
}

describe('Windows tasks', () => {
  it('are made from a file that is gone afterwards, and found again by their name whatever the language', async () => {
    const host = await windows()
    await schtasks.write([entry()], host)
    expect(await schtasks.installed(host)).toMatchObject([{ scheduler: 'schtasks', where: '\\rewind-admin\\nightly', active: true, changed: false, entry: { job: 'nightly' } }])
    expect(existsSync(host.home) ? readdirSync(join(host.home), { recursive: true }).filter((name) => String(name).endsWith('.xml')) : []).toEqual([])
    await schtasks.write([], host)
    expect(host.calls.at(-1)).toBe('schtasks /delete /tn \\rewind-admin\\nightly /f')
    expect(await schtasks.installed(host)).toEqual([])
  })

  it('that are refused leave the old ones', async () => {
    const host = await windows()
    await schtasks.write([entry()], host)
    let creates = 0
    const refusing = { ...host, run: (...call: Parameters<typeof host.run>) => {
      if (call[1][0] === '/create' && (creates += 1) === 2) return Promise.resolve({ code: 1, stdout: Buffer.from(''), stderr: 'ERROR: Access is denied.' })
      return host.run(...call)
    } }
    await expect(schtasks.write([entry({ at: '0 5 * * *' }), entry({ job: 'weekly' })], refusing)).rejects.toThrow(/refused \\rewind-admin\\weekly .*Access is denied/)
    expect((await schtasks.installed(host)).map((one) => one.entry.calendar.expression)).toEqual(['17 3 * * *'])
  })

  it('refuses more times of the day than one task may have', () => {
    expect(() => taskXml(entry({ at: '*/15 * * * *' }))).toThrow(/96 times of the day/)
  })
})

/** The words of a command line by the rules of the C runtime (its documentation, "Parsing C command-line arguments"). */
function wordsOf(line: string): string[] {
  const words: string[] = []
  let word = ''
  let quoted = false
  let open = false
  for (let at = 0; at < line.length; at += 1) {
    let slashes = 0
    while (line[at] === '\\') { slashes += 1; at += 1 }
    const next = line[at]
    word += '\\'.repeat(next === '"' ? Math.floor(slashes / 2) : slashes)
    if (slashes > 0) open = true
    if (next === '"' && slashes % 2 === 1) word += '"'
    else if (next === '"') { quoted = !quoted; open = true }
    else if (next !== undefined && /[ \t]/.test(next) && !quoted) {
      if (open) words.push(word)
      word = ''
      open = false
    } else if (next !== undefined) { word += next; open = true }
  }
  return open ? [...words, word] : words
}

it('words survive the command line of Windows, whatever quotes and backslashes they hold', () => {
  fc.assert(
    fc.property(fc.array(fc.array(fc.constantFrom('a', ' ', '"', '\\', 'é', '%')).map((parts) => parts.join('')), { maxLength: 5 }), (words) => {
      expect(wordsOf(words.map(windowsQuoted).join(' '))).toEqual(words)
    }),
  )
})

const parser = spawnSync('python3', ['-c', 'import xml.etree.ElementTree']).status === 0

describe(`the task, read by an XML parser${parser ? '' : ' (skipped: no python3 here)'}`, () => {
  const read = `
import sys, json, xml.etree.ElementTree as E
def tree(e): return [e.tag.split('}')[1], (e.text or '').strip(), [tree(c) for c in e]]
print(json.dumps(tree(E.fromstring(sys.stdin.buffer.read()))))`
  type Node = [tag: string, text: string, children: Node[]]

  function parsed(given: ReturnType<typeof entry>): Node {
    const { stdout, stderr, status } = spawnSync('python3', ['-c', read], { input: Buffer.from(`\ufeff${taskXml(given)}`, 'utf16le'), encoding: 'utf8' })
    if (status !== 0) throw new Error(stderr)
    return JSON.parse(stdout) as Node
  }
  const child = ([, , children]: Node, ...[tag, ...rest]: string[]): Node => {
    const found = children.find(([name]) => name === tag)
    if (found === undefined) throw new Error(`no ${tag ?? ''}`)
    return rest.length === 0 ? found : child(found, ...rest)
  }

  it.skipIf(!parser)('starts what it was given, only once at a time, and catches up', () => {
    const task = parsed(entry({ command: [hostile, 'C:\\My Files\\x.js', 'run'] }))
    const exec = child(task, 'Actions', 'Exec')
    expect(child(exec, 'Command')[1]).toBe(hostile)
    expect(wordsOf(child(exec, 'Arguments')[1])).toEqual(['C:\\My Files\\x.js', 'run'])
    expect(child(task, 'Settings', 'MultipleInstancesPolicy')[1]).toBe('IgnoreNew')
    expect(child(task, 'Settings', 'StartWhenAvailable')[1]).toBe('true')
    // The order of elements is part of the schema.
    expect(task[2].map(([tag]) => tag)).toEqual(['RegistrationInfo', 'Triggers', 'Principals', 'Settings', 'Actions'])
    expect(child(task, 'Triggers')[2]).toEqual([
      ['CalendarTrigger', '', [['StartBoundary', '2026-01-01T03:17:00', []], ['Enabled', 'true', []], ['RandomDelay', 'PT5M', []], ['ScheduleByDay', '', [['DaysInterval', '1', []]]]]],
    ])
  })

  it.skipIf(!parser).each([
    ['0 3 * * 1', ['ScheduleByWeek']],
    ['0 3 * 2 1', ['ScheduleByMonthDayOfWeek']],
    ['0 3 1 * *', ['ScheduleByMonth']],
    ['0 3 * 2 *', ['ScheduleByMonth']],
    ['0 3 13 * 5', ['ScheduleByMonth', 'ScheduleByWeek']],
    ['0 3,4 * * *', ['ScheduleByDay', 'ScheduleByDay']],
  ])('%s is made of %j', (at, expected) => {
    const triggers = child(parsed(entry({ at })), 'Triggers')[2]
    expect(triggers.map(([, , parts]) => parts.at(-1)?.[0])).toEqual(expected)
  })
})
