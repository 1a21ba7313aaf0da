import { spawn } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { startFromStat, thisMachine, type MachineSources } from '../../src/fs/machine.js'
import { temporaryFolder } from '../helpers/temp.js'

const tail = 'S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 11 0 987654 1000 20 18446744073709551615'

function failing(code: string): () => never {
  return () => {
    throw Object.assign(new Error(code), { code })
  }
}

async function fakeSources(overrides: Partial<MachineSources> = {}): Promise<MachineSources> {
  const folder = await temporaryFolder()
  mkdirSync(join(folder, 'proc/self/ns'), { recursive: true })
  symlinkSync('pid:[4026531836]', join(folder, 'proc/self/ns/pid'))
  writeFileSync(join(folder, 'machine-id'), '0123456789abcdef0123456789abcdef\n')
  return { platform: 'linux', processFolder: join(folder, 'proc'), machineIdFile: join(folder, 'machine-id'), probe: () => undefined, ...overrides }
}

describe('startFromStat', () => {
  it.each(['node', 'a b', 'a) S 1 2 (b', ')', '', 'x\ny)'])('finds field 22 whatever the program is called (%j)', (name) => {
    expect(startFromStat(`42 (${name}) ${tail}\n`)).toBe('987654')
  })

  it.each(['', '42 node S 1', '42 (node) S 1 2', `42 (node) ${tail.replace('987654', 'x')}`])('says nothing about %j', (stat) => {
    expect(startFromStat(stat)).toBeUndefined()
  })
})

describe('thisMachine', () => {
  it('knows that this very process exists, and one that has ended does not', async () => {
    const machine = thisMachine()
    expect(machine.processExists(process.pid)).toBe(true)
    const child = spawn(process.execPath, ['-e', '0'])
    await new Promise((resolve) => child.on('close', resolve))
    expect(machine.processExists(child.pid ?? -1)).toBe(false)
    expect(machine.processStart(child.pid ?? -1)).toBeUndefined()
  })

  it.runIf(process.platform === 'linux')('knows when this process started: not before its parent', () => {
    const machine = thisMachine()
    expect(machine.processStart(process.pid)).toMatch(/^[0-9]+$/)
    expect(Number(machine.processStart(process.pid))).toBeGreaterThanOrEqual(Number(machine.processStart(process.ppid)))
  })

  it.each([0, -1, 1.5, Number.NaN, 2 ** 40])('asks the kernel nothing about %d, which is no process', async (pid) => {
    const asked: number[] = []
    const machine = thisMachine(await fakeSources({ probe: (one) => asked.push(one) }))
    expect(machine.processExists(pid)).toBe(false)
    expect(machine.processStart(pid)).toBeUndefined()
    expect(asked).toEqual([])
  })

  it('R104: a process of another user exists; only "no such process" is gone', async () => {
    expect(thisMachine(await fakeSources({ probe: failing('EPERM') })).processExists(42)).toBe(true)
    expect(thisMachine(await fakeSources({ probe: failing('ESRCH') })).processExists(42)).toBe(false)
    expect(thisMachine(await fakeSources({ probe: failing('EWHATEVER') })).processExists(42)).toBe(true)
  })

  it('names machine id and pid namespace on Linux', async () => {
    expect(thisMachine(await fakeSources()).pidDomain).toBe('linux:0123456789abcdef0123456789abcdef:pid:[4026531836]')
  })

  it('has no domain where a part of it is unknown, and none on other systems', async () => {
    const sources = await fakeSources()
    expect(thisMachine({ ...sources, machineIdFile: join(sources.processFolder, 'none') }).pidDomain).toBeUndefined()
    expect(thisMachine({ ...sources, processFolder: join(sources.processFolder, 'none') }).pidDomain).toBeUndefined()
    writeFileSync(sources.machineIdFile, '\n')
    expect(thisMachine(sources).pidDomain).toBeUndefined()
    expect(thisMachine(await fakeSources({ platform: 'darwin' })).pidDomain).toBeUndefined()
  })

  it('does not read /proc where there is none', async () => {
    const sources = await fakeSources({ platform: 'darwin' })
    mkdirSync(join(sources.processFolder, '42'))
    writeFileSync(join(sources.processFolder, '42/stat'), `42 (node) ${tail}`)
    expect(thisMachine(sources).processStart(42)).toBeUndefined()
    expect(thisMachine({ ...sources, platform: 'linux' }).processStart(42)).toBe('987654')
  })

  it('tells when a process began from the ticks since boot, and nothing where one of the two is unknown', async () => {
    const sources = await fakeSources()
    mkdirSync(join(sources.processFolder, '42'))
    writeFileSync(join(sources.processFolder, '42/stat'), `42 (node) ${tail}`)
    expect(thisMachine(sources).processStartedAt(42)).toBeUndefined()
    writeFileSync(join(sources.processFolder, 'stat'), 'cpu 1 2 3\nbtime 1000000000\nprocesses 9\n')
    expect(thisMachine(sources).processStartedAt(42)).toBe(1_000_009_876_540)
    expect(thisMachine(sources).processStartedAt(43)).toBeUndefined()
    expect(thisMachine({ ...sources, platform: 'darwin' }).processStartedAt(42)).toBeUndefined()
  })
})
