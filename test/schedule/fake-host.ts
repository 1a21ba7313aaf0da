import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { labelledEntries, type ScheduledEntry } from '../../src/schedule/entry.js'
import { parseSystemCalendar } from '../../src/schedule/calendar.js'
import type { ProgramEnd } from '../../src/schedule/program.js'
import type { ScheduleHost } from '../../src/schedule/scheduler.js'
import { temporaryFolder } from '../helpers/temp.js'

type Answer = Partial<Omit<ProgramEnd, 'stdout'>> & { readonly stdout?: string | Buffer }

/** What stands in for the scheduler programs: every call is written down, then answered; what nobody answers is not installed. */
export interface FakeHost extends ScheduleHost {
  /** Command lines in order. */
  readonly calls: string[]
  /** What the crontab holds; `undefined` when there is none. */
  crontab: Buffer | undefined
  /** Answers that come before all others, by the start of the command line. */
  readonly answers: Map<string, Answer>
}

export interface FakeOptions {
  readonly platform?: NodeJS.Platform
  /** Programs that are there. */
  readonly programs?: readonly ('crontab' | 'systemctl' | 'loginctl' | 'launchctl' | 'schtasks')[]
  readonly env?: Readonly<Record<string, string>>
  readonly crontab?: string | Buffer
}

export async function fakeHost(options: FakeOptions = {}): Promise<FakeHost> {
  const home = await temporaryFolder()
  const calls: string[] = []
  const answers = new Map<string, Answer>()
  const programs = new Set<string>(options.programs ?? ['crontab'])
  const loaded = new Set<string>()
  const tasks = new Map<string, Buffer>()
  let tokens = 0
  const given = options.crontab
  const host: FakeHost = {
    platform: options.platform ?? 'linux',
    home,
    env: options.env ?? {},
    uid: 501,
    calls,
    answers,
    crontab: given === undefined ? undefined : Buffer.from(given),
    token: () => (tokens += 1).toString(16).padStart(8, '0'),
    run: (file, words, { timeoutMs, input }) => {
      const line = [file, ...words].join(' ')
      calls.push(line)
      if (timeoutMs <= 0 || timeoutMs > 60_000) throw new Error(`no time limit for ${line}`)
      const prepared = [...answers].find(([start]) => line.startsWith(start))?.[1]
      if (prepared !== undefined) return Promise.resolve(answer(prepared))
      if (!programs.has(file)) return Promise.resolve(answer({ code: undefined, failure: 'ENOENT' }))
      return Promise.resolve(answer(simulated(line, words, input)))
    },
  }
  const simulated = (line: string, words: readonly string[], input: Buffer | undefined): Answer => {
    if (line === 'crontab -l') return host.crontab === undefined ? { code: 1, stderr: 'no crontab for me\n' } : { stdout: host.crontab }
    if (line === 'crontab -') host.crontab = input
    if (line === 'crontab -r') host.crontab = undefined
    if (line.startsWith('loginctl')) return { stdout: 'yes\n' }
    if (line.startsWith('systemctl')) return systemctl(words.slice(2), loaded)
    if (line.startsWith('launchctl')) return launchctl(words, loaded)
    return line.startsWith('schtasks') ? schtasks(words, tasks) : {}
  }
  return host
}

function answer({ code, failure, stdout = '', stderr = '' }: Answer): ProgramEnd {
  const end = { stdout: Buffer.from(stdout), stderr }
  return failure === undefined ? { code: code ?? 0, ...end } : { code: undefined, failure, ...end }
}

function systemctl([verb = '', ...words]: readonly string[], loaded: Set<string>): Answer {
  const units = words.filter((word) => !word.startsWith('--'))
  if (verb === 'enable' || verb === 'restart') for (const unit of units) loaded.add(unit)
  if (verb === 'disable') for (const unit of units) loaded.delete(unit)
  if (verb === 'is-active') return { code: loaded.has(units[0] ?? '') ? 0 : 3 }
  if (verb === 'list-timers' && words.includes('--output=json')) {
    return { stdout: JSON.stringify([...loaded].map((unit) => ({ next: Date.parse('2026-12-01T03:33:33.000Z') * 1000, left: 1, last: 0, passed: 0, unit, activates: unit }))) }
  }
  return {}
}

function launchctl([verb = '', ...words]: readonly string[], loaded: Set<string>): Answer {
  const [service = ''] = words
  if (verb === 'print') return { code: /^gui\/501$/.test(service) || loaded.has(service) ? 0 : 113 }
  if (verb === 'bootout') return { code: loaded.delete(service) ? 0 : 3 }
  if (verb === 'bootstrap') loaded.add(`${service}/${(words[1] ?? '').replace(/^.*\/|\.plist$/g, '')}`)
  return {}
}

function schtasks(words: readonly string[], tasks: Map<string, Buffer>): Answer {
  const after = (word: string): string => words[words.indexOf(word) + 1] ?? ''
  if (words[0] === '/create') tasks.set(after('/tn'), readFileSync(after('/xml')))
  if (words[0] === '/delete') return { code: tasks.delete(after('/tn')) ? 0 : 1 }
  if (words[0] === '/query' && words.includes('/xml')) return { stdout: tasks.get(after('/tn')) ?? '' }
  return words[0] === '/query' ? { stdout: ['"\\Microsoft\\Foreign","N/A","Ready"', ...[...tasks.keys()].map((name) => `"${name}","N/A","Bereit"`)].join('\r\n') } : {}
}

/** An entry whose every word is known. */
export function entry(fields: Partial<ScheduledEntry> & { readonly at?: string } = {}): ScheduledEntry {
  const { at = '17 3 * * *', ...rest } = fields
  return {
    job: 'nightly',
    calendar: parseSystemCalendar(at),
    command: ['/opt/node/bin/node', '/opt/rewind-admin/bin/rewind-admin.js', 'run', 'nightly'],
    environment: {},
    installation: '0123456789abcdef',
    ...rest,
  }
}

/** Words in which every scheduler's own rules can be broken. */
export const hostile = `/opt/it's 100% "née" $HOME \\ <a&b>;#'/node`

export function writeFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

export function jobsIn(text: string): string[] {
  return labelledEntries(text).map(({ job }) => job)
}
