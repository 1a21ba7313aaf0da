import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readRegistry } from '../../../src/formats/claude-code/registry.js'
import type { Machine } from '../../../src/formats/format.js'
import { S1, S2 } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { asNobody, giveAway, needs } from '../../helpers/unprivileged.js'

const hour = 3_600_000
const now = Date.parse('2026-11-30T12:00:00Z')
const here = 'linux:0123:pid:[4026531836]'
const elsewhere = 'linux:9999:pid:[4026531836]'

/** A machine on which pid 100 runs since tick 5000 and nothing else. */
const machine: Machine = {
  processExists: (pid) => pid === 100,
  processStart: (pid) => (pid === 100 ? '5000' : undefined),
  pidDomain: here,
}
const unknownMachine: Machine = { ...machine, pidDomain: undefined }

async function rootWith(files: Readonly<Record<string, unknown>>): Promise<string> {
  const root = await temporaryFolder()
  mkdirSync(join(root, 'sessions'))
  for (const [name, value] of Object.entries(files)) {
    const path = join(root, 'sessions', name)
    writeFileSync(path, typeof value === 'string' ? value : JSON.stringify(value))
    utimesSync(path, now / 1000, now / 1000)
  }
  return root
}

const entry = (fields: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> => ({
  pid: 100,
  sessionId: S1,
  cwd: '/p',
  startedAt: now - 400 * 24 * hour,
  procStart: '5000',
  pidDomain: here,
  updatedAt: now - 400 * 24 * hour,
  ...fields,
})

describe('readRegistry', () => {
  it('R104: protects the session of a process that runs, however old all its times are', async () => {
    const root = await rootWith({ '100.json': entry() })
    expect(readRegistry(root, machine, now)).toEqual({
      live: [{ session: S1, pid: 100, registry: 'sessions/100.json' }],
      findings: [],
      complete: true,
    })
  })

  it.each([
    ['the pid is gone', { pid: 200, updatedAt: now }, '200.json'],
    ['the pid was given to another process', { procStart: '4999', updatedAt: now }, '100.json'],
    ['an old entry without a domain names a pid that is gone', { pid: 200, pidDomain: undefined, updatedAt: now }, '200.json'],
  ])('R104: does not protect a session when %s', async (_, fields, name) => {
    const root = await rootWith({ [name]: entry(fields) })
    expect(readRegistry(root, machine, now)).toEqual({ live: [], findings: [], complete: true })
  })

  it.each([
    ['no start time is recorded', { procStart: undefined }],
    ['the start time is a date in words', { procStart: 'Mon Nov 30 09:00:00 2026' }],
    ['the start time is a number', { procStart: 5000 }],
    ['no domain is recorded', { pidDomain: undefined }],
    ['no pid is recorded', { pid: undefined }],
    ['the domain is of no known kind', { pidDomain: 7 }],
  ])('R104: a pid that exists counts as running when %s', async (_, fields) => {
    const root = await rootWith({ '100.json': entry(fields) })
    expect(readRegistry(root, machine, now).live.map(({ session }) => session)).toEqual([S1])
  })

  it('takes an existing pid as running where start times cannot be known', async () => {
    const root = await rootWith({ '100.json': entry() })
    expect(readRegistry(root, { ...machine, processStart: () => undefined }, now).live).toHaveLength(1)
  })

  it.each([
    ['another machine', machine, elsewhere],
    ['a machine when ours has no name', unknownMachine, here],
  ])('an entry of %s is running until 24 hours after its last update', async (_, on, pidDomain) => {
    for (const [age, running] of [[hour, true], [24 * hour - 1, true], [24 * hour, false], [-hour, true]] as const) {
      const root = await rootWith({ '200.json': entry({ pid: 200, pidDomain, updatedAt: now - age }) })
      expect(readRegistry(root, on, now).live.map(({ session }) => session), `age ${String(age)}`).toEqual(running ? [S1] : [])
    }
  })

  it('an entry of another machine without times is as old as its file', async () => {
    const root = await rootWith({ '200.json': entry({ pid: 200, pidDomain: elsewhere, updatedAt: undefined, startedAt: undefined }) })
    expect(readRegistry(root, machine, now).live).toHaveLength(1)
    expect(readRegistry(root, machine, now + 25 * hour).live).toHaveLength(0)
  })

  it('an entry whose file carries another pid is running when either exists', async () => {
    const root = await rootWith({ '100.json': entry({ pid: 200 }), '300.json': entry({ sessionId: S2 }) })
    expect(readRegistry(root, machine, now).live).toEqual([
      { session: S1, pid: 100, registry: 'sessions/100.json' },
      { session: S2, pid: 100, registry: 'sessions/300.json' },
    ])
  })

  it('a cut entry protects the session that it still names, and is reported', async () => {
    const root = await rootWith({ '200.json': JSON.stringify(entry({ pid: 200, sessionId: S2 })).slice(0, 80) })
    const registry = readRegistry(root, machine, now)
    expect(registry.live).toEqual([{ session: S2, pid: 200, registry: 'sessions/200.json' }])
    expect(registry.findings).toMatchObject([{ id: 'registry-damaged', severity: 'warn', place: { path: 'sessions/200.json' } }])
    expect(registry.complete).toBe(true)
  })

  it.each([
    ['is empty', ''],
    ['is no object', '[]'],
    ['names no session', entry({ sessionId: undefined })],
    ['names a session by something that is no id', entry({ sessionId: '../../x' })],
  ])('an entry that %s says that some session may run, and is reported', async (_, value) => {
    const root = await rootWith({ '100.json': value })
    const registry = readRegistry(root, machine, now)
    expect(registry).toMatchObject({ live: [], complete: false, findings: [{ id: 'registry-damaged' }] })
  })

  it('reads only names of digits: keys and other files are nobody’s business', async () => {
    const root = await rootWith({ '100.key': 'x', 'index.json': 'x', '100.json.tmp': 'x', '-1.json': 'x' })
    expect(readRegistry(root, machine, now)).toEqual({ live: [], findings: [], complete: true })
  })

  it('no registry folder means that nothing is known to run', async () => {
    expect(readRegistry(await temporaryFolder(), machine, now)).toEqual({ live: [], findings: [], complete: true })
  })

  it('R61: a FIFO, a link and a folder in place of an entry are reported, never opened', async (context) => {
    needs(context, 'fifo')
    const root = await rootWith({ 'target': entry() })
    execFileSync('mkfifo', [join(root, 'sessions/1.json')])
    symlinkSync('target', join(root, 'sessions/2.json'))
    mkdirSync(join(root, 'sessions/3.json'))
    const registry = readRegistry(root, machine, now)
    expect(registry.live).toEqual([])
    expect(registry.complete).toBe(false)
    expect(registry.findings.map(({ id, place }) => [id, place?.path])).toEqual([
      ['registry-damaged', 'sessions/1.json'],
      ['registry-damaged', 'sessions/2.json'],
      ['registry-damaged', 'sessions/3.json'],
    ])
  })

  it('R108: a registry that cannot be listed is reported, and nothing is taken for dead', async (context) => {
    needs(context, 'unprivileged')
    const root = await rootWith({ '100.json': entry() })
    chmodSync(join(root, 'sessions'), 0)
    giveAway(root)
    const registry = await asNobody(() => readRegistry(root, machine, now))
    expect(registry).toMatchObject({ live: [], complete: false, findings: [{ id: 'unreadable', place: { path: 'sessions' } }] })
  })
})
