import { existsSync, lstatSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Machine, Store } from '../../../src/formats/format.js'
import { effectiveRetention } from '../../../src/model/retention.js'
import { openQwen, QwenSession, qwenRoot } from '../../helpers/qwen.js'
import { S1, S2, setTime, writeStoreFile } from '../../helpers/store.js'

const now = Date.parse('2026-11-30T12:00:00.000Z')
const hour = 3_600_000

function machine(running: Readonly<Record<number, { readonly ticks: string; readonly began: number }>>): Machine {
  return {
    processExists: (pid) => running[pid] !== undefined,
    processStart: (pid) => running[pid]?.ticks,
    processStartedAt: (pid) => running[pid]?.began,
    pidDomain: undefined,
    hostname: 'birdhouse',
  }
}

async function empty(): Promise<Store> {
  const root = await qwenRoot()
  mkdirSync(join(root, 'file-history'))
  return openQwen(root)
}

describe('the lock of the agent’s housekeeping', () => {
  it('R105: is made exclusively and empty, and is gone at the end', async () => {
    const store = await empty()
    const path = join(store.root, '.file-history-cleanup.lock')
    const lock = store.takeAgentLock?.(now)
    expect(lstatSync(path).size).toBe(0)
    expect(() => store.takeAgentLock?.(lstatSync(path).mtimeMs + 60_000)).toThrow(expect.objectContaining({ code: 'LOCKED' }))
    lock?.release()
    expect(existsSync(path)).toBe(false)
  })

  it('is taken over after an hour, and not a moment before', async () => {
    const store = await empty()
    const path = join(store.root, '.file-history-cleanup.lock')
    writeFileSync(path, '')
    setTime(path, now - hour)
    expect(() => store.takeAgentLock?.(now)).toThrow(expect.objectContaining({ code: 'LOCKED' }))
    store.takeAgentLock?.(now + 1).release()
    expect(existsSync(path)).toBe(false)
  })

  it('what took its place meanwhile is left alone, and so is what is no lock', async () => {
    const store = await empty()
    const path = join(store.root, '.file-history-cleanup.lock')
    const lock = store.takeAgentLock?.(now)
    writeFileSync(`${path}.new`, '')
    renameSync(`${path}.new`, path)
    lock?.release()
    expect(existsSync(path)).toBe(true)
    rmSync(path)
    symlinkSync('/nowhere', path)
    expect(() => store.takeAgentLock?.(now + 10 * hour)).toThrow(/a symbolic link/)
  })
})

describe('running sessions', () => {
  async function withEntry(path: string, entry: unknown): Promise<Store> {
    const store = await empty()
    writeStoreFile(store.root, path, typeof entry === 'string' ? entry : JSON.stringify(entry))
    return store
  }
  const live = (store: Store, running: Parameters<typeof machine>[0]): string[] => store.live(machine(running), now).live.map(({ session }) => session)
  const running = { 7: { ticks: '500', began: now - hour } }

  it('R104: a terminal UI is known by pid and start time', async () => {
    const store = await withEntry('sessions/7.json', { pid: 7, procStart: '500', sessionId: S1, token: 'secret' })
    expect(live(store, running)).toEqual([S1])
    expect(live(store, { 7: { ticks: '501', began: now } })).toEqual([])
    expect(live(store, {})).toEqual([])
    expect(JSON.stringify(store.live(machine(running), now))).not.toContain('secret')
  })

  it('the file beside a transcript counts only on its own host, and for a process that is not younger than it', async () => {
    const path = `projects/-home-u-notes/chats/${S1}.runtime.json`
    const entry = { schema_version: 1, pid: 7, session_id: S1, hostname: 'birdhouse', started_at: new Date(now - hour).toISOString() }
    const store = await withEntry(path, entry)
    expect(live(store, running)).toEqual([S1])
    expect(live(store, { 7: { ticks: '900', began: now - hour + 120_000 } })).toEqual([])
    expect(live(await withEntry(path, { ...entry, hostname: 'elsewhere' }), running)).toEqual([])
  })

  it('a writer lock counts, and an entry that cannot be read is a finding and keeps its session', async () => {
    const lock = await withEntry(`tmp/session-writer-locks/${S2}.lock`, { state: 'active', pid: 7, session_id: S2 })
    expect(live(lock, running)).toEqual([S2])
    const damaged = await withEntry('sessions/7.json', `{"pid":7,"sessionId":"${S1}","cw`)
    expect(live(damaged, running)).toEqual([S1])
    expect(damaged.live(machine(running), now).findings.map(({ id }) => id)).toEqual(['registry-damaged'])
  })

  it('an entry that is written anew is read anew by the same store', async () => {
    const path = `projects/-home-u-notes/chats/${S1}.runtime.json`
    const store = await withEntry(path, { pid: 8, session_id: S1 })
    expect(live(store, running)).toEqual([])
    writeStoreFile(store.root, path, JSON.stringify({ pid: 7, session_id: S1 }), { mtime: now })
    expect(live(store, running)).toEqual([S1])
    rmSync(join(store.root, path))
    expect(live(store, running)).toEqual([])
  })

  it('entries of another runtime root count as well', async () => {
    const runtime = await qwenRoot()
    writeStoreFile(runtime, `projects/-n/chats/${S1}.runtime.json`, JSON.stringify({ pid: 7, session_id: S1 }))
    const store = openQwen((await empty()).root, { runtimeRoot: runtime })
    expect(live(store, running)).toEqual([S1])
  })
})

describe('the retention period', () => {
  async function layers(files: Readonly<Record<string, string>>, project?: string): Promise<ReturnType<Store['retention']>> {
    const store = await empty()
    for (const [name, text] of Object.entries(files)) writeStoreFile(store.root, name, text)
    const system = { QWEN_CODE_SYSTEM_DEFAULTS_PATH: join(store.root, 'system-defaults.json'), QWEN_CODE_SYSTEM_SETTINGS_PATH: join(store.root, 'system.json') }
    return openQwen(store.root, { env: system }).retention(project === undefined ? undefined : join(store.root, project))
  }
  const days = (value: unknown): string => JSON.stringify({ general: { cleanupPeriodDays: value } })

  it('R01: every layer is read, comments and all, and the longest wins', async () => {
    const found = await layers(
      { 'settings.json': `// mine\n{"general":{"cleanupPeriodDays":10 /* "short" */}}`, 'system.json': days(5), 'p/.qwen/settings.json': days(45), 'system-defaults.json': '{"general":{}}' },
      'p',
    )
    expect(found.map(({ layer, state }) => [layer, state.kind])).toEqual([['system-defaults', 'silent'], ['user', 'days'], ['project', 'days'], ['system', 'days']])
    expect(effectiveRetention(found)).toMatchObject({ kind: 'known', days: 45, source: { layer: 'project' } })
  })

  it.each([[1.5, 2], [0.2, 1], [30, 30]])('%s days are %s whole days: never shorter than said', async (value, whole) => {
    expect(effectiveRetention(await layers({ 'settings.json': days(value) }))).toMatchObject({ days: whole })
  })

  it.each(['0', '-1', '"30"', 'null', '1e400'])('R05, R06: %s cannot be followed, and then nothing expires', async (value) => {
    const found = await layers({ 'settings.json': `{"general":{"cleanupPeriodDays":${value}}}` })
    expect(effectiveRetention(found).kind).toBe('unknowable')
  })

  it('without a word it is the agent’s own 30 days, and a file that cannot be read says nothing certain', async () => {
    expect(effectiveRetention(await layers({}))).toMatchObject({ kind: 'known', days: 30, source: 'default' })
    expect(effectiveRetention(await layers({ 'settings.json': '{' })).kind).toBe('unknowable')
  })
})

describe('the project of a session', () => {
  it('is that of the first record; a worktree of the agent belongs to the project it was made from', async () => {
    const root = await qwenRoot()
    const session = new QwenSession({ root, id: S1, project: '/home/u/notes/.qwen/worktrees/blue' })
    session.turn(1, 'one')
    session.record({ type: 'user', cwd: '/somewhere/else', message: { role: 'user', parts: [{ text: 'two' }] } })
    session.save()
    const store = openQwen(root)
    const [ref] = store.inventory().sessions
    if (ref === undefined) throw new Error('no session')
    expect(store.head?.(ref).folders).toEqual(['/home/u/notes'])
    expect(store.read(ref, { now }).project).toBe('/home/u/notes/.qwen/worktrees/blue')
  })
})
