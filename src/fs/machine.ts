import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'

import { systemErrorCode } from '../model/errors.js'

/** Facts of this machine about processes; the shape that formats ask for. */
export interface ProcessFacts {
  /** Start time in clock ticks since boot as decimal text, `undefined` when there is no such process or no way to know. */
  processStart(pid: number): string | undefined
  processExists(pid: number): boolean
  /** `linux:<machine id>:pid:[<namespace>]`, `undefined` where either part is unknown. */
  readonly pidDomain: string | undefined
  /** Start time of a process in milliseconds since 1970, to about a second; `undefined` when unknown. */
  processStartedAt(pid: number): number | undefined
  readonly hostname: string
}

/** Where the facts are read; replaced in tests only. */
export interface MachineSources {
  readonly platform: NodeJS.Platform
  readonly processFolder: string
  readonly machineIdFile: string
  /** Sends signal 0; throws as `process.kill` does. */
  readonly probe: (pid: number) => void
}

/** Linux has shown times to programs in this unit since 2.6. */
const ticksPerSecond = 100

const realSources: MachineSources = {
  platform: process.platform,
  processFolder: '/proc',
  machineIdFile: '/etc/machine-id',
  probe: (pid) => {
    process.kill(pid, 0)
  },
}

/**
 * Reads this machine. Start times and the pid domain are known on Linux only; elsewhere they are `undefined`, and a
 * process that exists counts as the one that was recorded.
 */
export function thisMachine(sources: MachineSources = realSources): ProcessFacts {
  return {
    processStart: (pid) => (isPid(pid) && sources.platform === 'linux' ? readStart(sources.processFolder, pid) : undefined),
    processExists: (pid) => isPid(pid) && exists(sources.probe, pid),
    pidDomain: sources.platform === 'linux' ? readPidDomain(sources) : undefined,
    processStartedAt: (pid) => {
      const ticks = isPid(pid) && sources.platform === 'linux' ? readStart(sources.processFolder, pid) : undefined
      const boot = ticks === undefined ? undefined : readBootTime(sources.processFolder)
      return ticks === undefined || boot === undefined ? undefined : (boot + Number(ticks) / ticksPerSecond) * 1000
    },
    hostname: hostname(),
  }
}

/**
 * Field 22 of a line of `/proc/<pid>/stat`. The second field is the program's name in parentheses and may itself hold
 * spaces and parentheses, so counting starts after the last one.
 */
export function startFromStat(stat: string): string | undefined {
  const end = stat.lastIndexOf(')')
  if (end < 0) return undefined
  const afterName = stat.slice(end + 1).trim().split(/\s+/)
  const start = afterName[22 - 3]
  return start !== undefined && /^[0-9]+$/.test(start) ? start : undefined
}

// 0 and negative numbers mean groups of processes to the kernel.
function isPid(pid: number): boolean {
  return Number.isInteger(pid) && pid > 0 && pid <= 0x7fff_ffff
}

function exists(probe: (pid: number) => void, pid: number): boolean {
  try {
    probe(pid)
    return true
  } catch (error) {
    // EPERM: it is there and belongs to somebody else. An error we do not know must not make a session look dead.
    return systemErrorCode(error) !== 'ESRCH'
  }
}

function readStart(processFolder: string, pid: number): string | undefined {
  try {
    return startFromStat(readFileSync(join(processFolder, String(pid), 'stat'), 'latin1'))
  } catch {
    return undefined
  }
}

/** When this machine was started, in seconds since 1970. */
function readBootTime(processFolder: string): number | undefined {
  try {
    const seconds = /^btime ([0-9]+)$/m.exec(readFileSync(join(processFolder, 'stat'), 'latin1'))?.[1]
    return seconds === undefined ? undefined : Number(seconds)
  } catch {
    return undefined
  }
}

function readPidDomain(sources: MachineSources): string | undefined {
  try {
    const machineId = readFileSync(sources.machineIdFile, 'latin1').trim()
    const namespace = readlinkSync(join(sources.processFolder, 'self', 'ns', 'pid'))
    return machineId === '' ? undefined : `linux:${machineId}:${namespace}`
  } catch {
    return undefined
  }
}
