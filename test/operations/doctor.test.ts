import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openClaudeCode } from '../../src/formats/claude-code/index.js'
import type { Machine } from '../../src/formats/format.js'
import type { Report } from '../../src/model/report.js'
import { doctor, type DoctorInput } from '../../src/operations/doctor.js'
import { parseConfig } from '../../src/settings/config.js'
import { S1, S2, setTime, T, userLine, writeBackup, writeTranscript } from '../helpers/store.js'
import { temporaryFolder } from '../helpers/temp.js'
import { sameTree, snapshotTree } from '../helpers/tree.js'

const now = Date.parse(T) + 86_400_000
const hour = 3_600_000

const machine: Machine = { processExists: (pid) => pid === 100, processStart: () => undefined, pidDomain: undefined }

interface Fixture {
  readonly home: string
  readonly root: string
  readonly project: string
  readonly run: (overrides?: Partial<DoctorInput>) => Report
}

/** A home with a store of one session, started in `project`. */
async function fixture(): Promise<Fixture> {
  const home = await temporaryFolder()
  const root = join(home, '.claude')
  const project = join(home, 'project')
  mkdirSync(join(project, '.claude'), { recursive: true })
  mkdirSync(join(root, 'file-history'), { recursive: true, mode: 0o700 })
  writeTranscript(root, '-p', S1, [userLine('u1', { cwd: project })], { mtime: T })
  const around = { home, env: {}, platform: 'linux' } as const
  return {
    home,
    root,
    project,
    run: (overrides = {}) => {
      const store = openClaudeCode(root, overrides.around ?? around)
      const retention = (folder?: string): ReturnType<typeof store.retention> =>
        store.retention(folder).filter(({ layer }) => layer !== 'managed')
      return doctor({
        stores: [{ ...store, retention }],
        config: parseConfig({}, home),
        around,
        machine,
        nodeVersion: 'v20.20.2',
        now,
        ...overrides,
      })
    },
  }
}

function ids(report: Report): string[] {
  return report.findings.map(({ id }) => id)
}

function stores(report: Report): unknown {
  return report.extra?.stores
}

describe('doctor', () => {
  it('finds nothing to say about a good store, and shows what counts', async () => {
    const { root, run } = await fixture()
    const report = run()
    expect(report).toMatchObject({
      command: 'doctor',
      roots: [root],
      applied: false,
      summary: { node: 'v20.20.2', platform: 'linux', config: 'none (defaults)', stores: 1 },
      findings: [],
      exitCode: 0,
    })
    expect(stores(report)).toMatchObject([
      {
        root,
        format: 'claude-code',
        sessions: 1,
        newestActivity: T,
        retention: { days: 30, source: 'default', layers: [{ layer: 'user', state: 'missing', wins: false }], projects: [] },
        gates: [
          { gate: 'fileCheckpointingEnabled', value: null, effect: 'checkpoints are made (the default)' },
          { gate: 'CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING', value: null },
          { gate: 'CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING', value: null },
        ],
        live: [],
        sidecar: { path: join(root, '.rewind-admin'), exists: false },
        leftovers: [],
        backupFolderMode: '0700',
      },
    ])
  })

  it('without any store it still shows the environment, and ends with 10', async () => {
    const { run } = await fixture()
    expect(run({ stores: [] })).toMatchObject({ exitCode: 10, summary: { stores: 0, node: 'v20.20.2' } })
  })

  it('R01: shows every layer of a project, which one wins, and our own periods among them', async () => {
    const { home, root, project, run } = await fixture()
    writeFileSync(join(root, 'settings.json'), '{"cleanupPeriodDays":1200}')
    writeFileSync(join(project, '.claude/settings.local.json'), '{"cleanupPeriodDays":10}')
    const config = parseConfig({ periods: [{ project, days: 2000 }] }, home, '/c.json')
    const report = run({ config })
    expect(report).toMatchObject({ findings: [], summary: { config: '/c.json' } })
    expect(stores(report)).toMatchObject([
      {
        retention: {
          days: 1200,
          source: `user: ${root}/settings.json`,
          projects: [
            {
              project,
              days: 2000,
              source: 'config: /c.json',
              layers: [
                { layer: 'config', days: 2000, wins: true },
                { layer: 'local', days: 10, wins: false },
                { layer: 'project', state: 'missing' },
                { layer: 'user', days: 1200, wins: false },
              ],
            },
          ],
        },
      },
    ])
  })

  it('R05: an unusable layer is one error with file and key, however many sessions there are', async () => {
    const { root, project, run } = await fixture()
    writeTranscript(root, '-q', S2, [userLine('u2', { cwd: join(project, 'other') })], { mtime: T })
    writeFileSync(join(root, 'settings.json'), '{"cleanupPeriodDays":"365"}')
    const report = run()
    expect(ids(report)).toEqual(['settings-unknowable'])
    expect(report.findings[0]).toMatchObject({ severity: 'error', place: { path: join(root, 'settings.json') } })
    expect(report.findings[0]?.message).toMatch(/settings\.json \(user settings\): cleanupPeriodDays: the text "365"/)
    expect(report.exitCode).toBe(1)
    expect(stores(report)).toMatchObject([{ retention: { days: null, source: 'unknowable' } }])
  })

  it('R05: an unusable layer of a single project is found too', async () => {
    const { project, run } = await fixture()
    writeFileSync(join(project, '.claude/settings.json'), '')
    const report = run()
    expect(ids(report)).toEqual(['settings-unknowable'])
    expect(stores(report)).toMatchObject([{ retention: { days: 30, projects: [{ project, days: null, source: 'unknowable' }] } }])
  })

  it('R121: names the gate that stops checkpoints, wherever it is set', async () => {
    const { project, run } = await fixture()
    writeFileSync(join(project, '.claude/settings.json'), '{"fileCheckpointingEnabled":false}')
    const around = { home: project, env: { CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING: '1' }, platform: 'linux' } as const
    const report = run({ around })
    expect(ids(report)).toEqual(['checkpointing-off', 'checkpointing-off'])
    expect(report.exitCode).toBe(0)
    expect(stores(report)).toMatchObject([
      {
        gates: [
          { gate: 'CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING', value: '"1"', from: 'environment', effect: 'no checkpoints are made' },
          { gate: 'CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING', value: null },
          { gate: 'fileCheckpointingEnabled', value: 'false', from: join(project, '.claude/settings.json') },
        ],
      },
    ])
  })

  it('R104: shows running sessions and reports a damaged registry entry', async () => {
    const { root, run } = await fixture()
    mkdirSync(join(root, 'sessions'))
    writeFileSync(join(root, 'sessions/100.json'), JSON.stringify({ pid: 100, sessionId: S1 }))
    writeFileSync(join(root, 'sessions/101.json'), '{')
    const report = run()
    expect(ids(report)).toEqual(['registry-damaged'])
    expect(stores(report)).toMatchObject([{ live: [{ session: S1, pid: 100, registry: 'sessions/100.json' }] }])
  })

  it('shows the sidecar: mode, last run, runs that were not finished', async () => {
    const { root, run } = await fixture()
    const sidecar = join(root, '.rewind-admin')
    mkdirSync(join(sidecar, 'journals'), { recursive: true })
    chmodSync(sidecar, 0o755)
    writeFileSync(join(sidecar, 'status.json'), '{"job":"nightly","exitCode":3}')
    writeFileSync(join(sidecar, 'journals/20261101T031702123Z-9f3c1a.jsonl'), '{"t":"header"}\n{"t":"begin","folders":[]}\n')
    writeFileSync(join(sidecar, 'journals/20261102T031702123Z-9f3c1a.jsonl'), '{"t":"finished","at":"2026-11-02T03:17:03.000Z"}\n')
    const report = run()
    expect(ids(report)).toEqual(['wide-mode', 'last-run-failed', 'unfinished-journal'])
    expect(stores(report)).toMatchObject([
      { sidecar: { exists: true, mode: '0755', lastRun: { job: 'nightly', exitCode: 3 }, unfinishedRuns: ['20261101T031702123Z-9f3c1a'] } },
    ])
  })

  it('a good last run and an empty journal folder are no findings', async () => {
    const { root, run } = await fixture()
    mkdirSync(join(root, '.rewind-admin/journals'), { recursive: true })
    chmodSync(join(root, '.rewind-admin'), 0o700)
    writeFileSync(join(root, '.rewind-admin/status.json'), '{"job":"nightly","exitCode":0}')
    expect(ids(run())).toEqual([])
  })

  it('reports journals that cannot be listed', async () => {
    const { root, run } = await fixture()
    mkdirSync(join(root, '.rewind-admin'), { mode: 0o700 })
    writeFileSync(join(root, '.rewind-admin/journals'), '')
    expect(run().findings).toMatchObject([{ id: 'sidecar-damaged', place: { path: join(root, '.rewind-admin/journals') } }])
  })

  it('reports a sidecar that is a link, and a status file that is damaged', async () => {
    const first = await fixture()
    symlinkSync('/tmp', join(first.root, '.rewind-admin'))
    expect(ids(first.run())).toEqual(['sidecar-damaged'])
    const second = await fixture()
    mkdirSync(join(second.root, '.rewind-admin'), { mode: 0o700 })
    writeFileSync(join(second.root, '.rewind-admin/status.json'), '{')
    expect(ids(second.run())).toEqual(['sidecar-damaged'])
  })

  it('R87: lists temporary names of ours that are more than an hour old, in store and sidecar', async () => {
    const { root, run } = await fixture()
    mkdirSync(join(root, '.rewind-admin'), { mode: 0o700 })
    writeBackup(root, S1, '.rewind-admin-old.123', 'x')
    writeFileSync(join(root, '.rewind-admin/.rewind-admin-tmp'), '')
    writeFileSync(join(root, 'projects/.rewind-admin-young'), '')
    const old = [join(root, '.rewind-admin/.rewind-admin-tmp'), join(root, 'file-history', S1, '.rewind-admin-old.123')]
    for (const path of old) setTime(path, now - hour - 1)
    setTime(join(root, 'projects/.rewind-admin-young'), now - hour)
    const report = run()
    expect(report.findings.filter(({ id }) => id === 'stale-temp').map(({ place }) => place?.path)).toEqual(old)
    expect(stores(report)).toMatchObject([{ leftovers: old }])
  })

  it('R08: says when the clock does not fit the store', async () => {
    const { run } = await fixture()
    expect(ids(run({ now: now + 400 * 24 * hour }))).toEqual(['clock-looks-wrong'])
    expect(ids(run({ now: now - 3 * 24 * hour }))).toContain('clock-looks-wrong')
  })

  it('R90: says when other users can read the backups, unless the store itself is closed', async () => {
    const { root, run } = await fixture()
    chmodSync(join(root, 'file-history'), 0o755)
    chmodSync(root, 0o755)
    const report = run()
    expect(report.findings).toMatchObject([{ id: 'wide-mode', place: { path: 'file-history' } }])
    chmodSync(root, 0o700)
    expect(ids(run())).toEqual([])
  })

  it('R111: a damaged global file is one finding', async () => {
    const { home, run } = await fixture()
    writeFileSync(join(home, '.claude.json'), '{"projects":{')
    expect(ids(run())).toEqual(['global-file-damaged'])
  })

  it('never writes: the store is the same afterwards', async () => {
    const { root, run } = await fixture()
    writeFileSync(join(root, 'settings.json'), '{')
    mkdirSync(join(root, '.rewind-admin'), { mode: 0o700 })
    const before = snapshotTree(root)
    run()
    sameTree(root, before)
  })
})
