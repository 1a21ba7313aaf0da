import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { managedSettingsFile } from '../../../src/formats/claude-code/retention.js'
import { exitCodeTable } from '../../../src/model/exit-code.js'
import { removeBackup } from '../../helpers/damage.js'
import { S1, S2 } from '../../helpers/store.js'
import { M0, M1, M2, M3, hashA, hashB, newTime, notes, nowText, oldTime, type Cli, type Envelope, type Notes } from '../world.js'

/*
 * Golden tests of the JSON contract (design section 5). The expected objects are written by hand from the bytes of the
 * store in `world.ts`; only what differs between two runs is replaced: places, durations, the names of runs, the version.
 */

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
const common = ['schemaVersion', 'tool', 'version', 'command', 'startedAt', 'durationMs', 'root', 'applied', 'summary', 'findings', 'plan', 'kept', 'errors', 'exitCode']

function normal({ home }: Pick<Notes, 'home'>, envelope: Envelope): unknown {
  const text = JSON.stringify(envelope, (key, value: unknown) => (key === 'durationMs' && typeof value === 'number' && value >= 0 ? 0 : value))
  return JSON.parse(text.replaceAll(home, '<home>').replaceAll(/\d{8}T\d{9}Z-[0-9a-f]{8}/g, '<run>'))
}

/** The common fields as they are when there is nothing to say. */
function envelope(command: string, fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return {
    schemaVersion: 1,
    tool: 'rewind-admin',
    version,
    command,
    startedAt: nowText,
    durationMs: 0,
    root: '<home>/.claude',
    applied: false,
    summary: {},
    findings: [],
    plan: [],
    kept: [],
    errors: [],
    exitCode: 0,
    ...fields,
  }
}

async function given(): Promise<Notes & { readonly at: (...argv: readonly string[]) => ReturnType<Cli['json']> }> {
  const store = await notes()
  return { ...store, at: (...argv) => store.cli.json(...argv, '--root', store.root) }
}

// What the two sessions take up: backups robin⏎ (6), robin⏎wren⏎ (11), heron⏎ (6); and robin⏎ again.
const young = { id: S1, project: '/home/u/notes', lastActivity: newTime, checkpoints: 3, backups: 3, bytes: 23, live: false }
const old = { id: S2, project: '/home/u/notes', lastActivity: oldTime, checkpoints: 1, backups: 1, bytes: 6, live: false }
const settings = '<home>/.claude/settings.json'
const period = { period: '30 days', days: 30, source: `user settings, ${settings}`, differing: [], projects: [] }
const why = `last active ${oldTime} (newest entry of the transcript): older than 30 days (user settings, ${settings})`
const stays = { session: S1, reason: `last active ${newTime} (mtime of the transcript): within the period of 30 days (user settings, ${settings})` }
const transcript = (session: string): string => `projects/-home-u-notes/${session}.jsonl`

function sessionsOf({ transcripts, history }: Notes): unknown[] {
  return [
    { ...young, transcriptBytes: transcripts.new, historyBytes: history.new },
    { ...old, transcriptBytes: transcripts.old, historyBytes: history.old },
  ]
}

function expired({ transcripts }: Notes, done = false): { readonly summary: Readonly<Record<string, unknown>>; readonly plan: readonly unknown[]; readonly kept: readonly unknown[] } {
  const bytes = 6 + transcripts.old
  const row = { folder: 'projects/-home-u-notes', project: '/home/u/notes', scanned: 2, kept: 1, removed: 1, bytes }
  const summary = { sessions: 2, expired: 1, kept: 1, retention: period, registryComplete: true, projects: [row], actions: 1, bytes }
  const plan = [{ action: 'trash-session', path: transcript(S2), session: S2, bytes, reason: why }]
  return { summary: done ? { ...summary, removedBytes: bytes } : summary, plan, kept: [stays] }
}

describe('the JSON envelope', () => {
  it('has the common fields first, in the order of the contract, then those of the command', async () => {
    const { at } = await given()
    for (const [argv, own] of [
      [['status'], ['stores', 'sessions']],
      [['list'], ['sessions']],
      [['show', S1], ['checkpoints', 'members']],
      [['verify'], []],
      [['doctor'], ['stores']],
      [['cap'], []],
      [['expire'], []],
      [['purge', '/home/u/notes'], []],
      [['trash', 'list'], ['entries']],
      [['trash', 'empty'], []],
      [['run', 'nightly'], ['job', 'steps']],
    ] as const) {
      expect(Object.keys(await at(...argv)), argv.join(' ')).toEqual([...common, ...own])
    }
    const withRun = common.toSpliced(common.indexOf('applied') + 1, 0, 'runId')
    expect(Object.keys(await at('expire', '--apply'))).toEqual(withRun)
  })

  it('of status', async () => {
    const store = await given()
    const sessions = sessionsOf(store)
    const transcriptBytes = store.transcripts.new + store.transcripts.old
    const sums = { sessions: 2, checkpoints: 4, backups: 4, bytes: 29, transcriptBytes }
    const retention = { days: 30, source: `user: ${settings}`, differing: [] }
    const nextNight = { expire: { actions: 1, bytes: 6 + store.transcripts.old, errors: 0 }, cap: { actions: 0, bytes: 0, errors: 0 } }
    const described = { root: '<home>/.claude', format: 'claude-code', ...sums, historyBytes: store.history.new + store.history.old, versions: { v1: 2, v2: 2 }, retention, nextNight, lastRun: null }
    expect(normal(store, await store.at('status'))).toEqual(
      envelope('status', { summary: { stores: 1, live: 0, ...sums }, stores: [described], sessions }),
    )
    const [newest, oldest] = [23 + store.transcripts.new, 6 + store.transcripts.old]
    const top = {
      projects: [{ name: '/home/u/notes', bytes: newest + oldest, sessions: 2 }],
      sessions: [{ name: S1, bytes: newest, sessions: 1 }],
      transcripts: [{ name: S1, bytes: store.transcripts.new, sessions: 1, historyBytes: store.history.new }],
      // a.md: 6 + 11 in one session and 6 in the other; b.md: 6.
      paths: [{ name: 'a.md', bytes: 23, sessions: 2 }],
    }
    expect(normal(store, await store.at('status', '--top', '1'))).toEqual(
      envelope('status', { summary: { stores: 1, live: 0, ...sums }, stores: [{ ...described, top }], sessions }),
    )
  })

  it('of list', async () => {
    const store = await given()
    expect(normal(store, await store.at('list'))).toEqual(
      envelope('list', { summary: { sessions: 2, live: 0, bytes: 29 }, sessions: sessionsOf(store) }),
    )
  })

  it('of show', async () => {
    const store = await given()
    removeBackup(store.root, S1, `${hashA}@v2`)
    const first = { path: 'a.md', state: 'present', backup: `${hashA}@v1`, version: 1 }
    const lost = { path: 'a.md', state: 'missing', backup: `${hashA}@v2`, version: 2 }
    const none = { path: 'b.md', state: 'absent', backup: null, version: 1 }
    const made = { path: 'b.md', state: 'present', backup: `${hashB}@v2`, version: 2 }
    const checkpoint = (id: string, text: string, restorable: boolean, files: readonly unknown[]): unknown => ({ id, time: newTime, text, active: true, restorable, files })
    expect(normal(store, await store.at('show', '1111'))).toEqual(
      envelope('show', {
        summary: { session: S1, project: '/home/u/notes', clientVersion: '2.1.332', checkpoints: 3, restorable: 1, trackedPaths: 2 },
        checkpoints: [
          checkpoint(M1, 'start the list', true, [first, none]),
          checkpoint(M2, 'add the wren', false, [lost, none]),
          checkpoint(M3, 'is it complete?', false, [lost, made]),
        ],
        members: [transcript(S1), `file-history/${S1}`],
      }),
    )
    expect(M0).not.toBe(M1)
  })

  it('of verify, without and with a finding', async () => {
    const store = await given()
    const counts = { sessions: 2, unchanged: 0, checkpoints: 4, backups: 4, bytes: 29, sharedInodes: 0, digested: 4, sealed: 0, proven: 0 }
    const found = { errors: 0, warnings: 0, information: 0, accepted: 0, complete: true }
    expect(normal(store, await store.at('verify'))).toEqual(envelope('verify', { summary: { ...counts, ...found } }))
    removeBackup(store.root, S1, `${hashA}@v2`)
    const { findings, summary, exitCode } = await store.at('verify')
    expect(findings).toEqual([
      {
        id: 'missing-backup',
        severity: 'error',
        session: S1,
        place: `file-history/${S1}/${hashA}@v2`,
        message: expect.stringContaining('version 2 of a.md') as string,
        remedy: 'rewind-admin repair',
      },
    ])
    expect(Object.keys(findings[0] ?? {})).toEqual(['id', 'severity', 'session', 'place', 'message', 'remedy'])
    expect(summary).toEqual({ ...counts, ...found, backups: 3, bytes: 18, digested: 3, errors: 1 })
    expect(exitCode).toBe(1)
  })

  it('of doctor', async () => {
    const store = await given()
    const layer = (name: string, file: string, more: object): unknown => ({ layer: name, file, ...more })
    const managed = layer('managed', managedSettingsFile(process.platform), { state: 'missing', wins: false })
    const gate = (name: string, effect: string): unknown => ({ gate: name, value: null, from: null, effect })
    const described = {
      root: '<home>/.claude',
      format: 'claude-code',
      sessions: 2,
      newestActivity: newTime,
      retention: { days: 30, source: `user: ${settings}`, layers: [managed, layer('user', settings, { state: 'days', days: 30, wins: true })], projects: [] },
      gates: [
        gate('fileCheckpointingEnabled', 'checkpoints are made (the default)'),
        gate('CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING', 'no effect'),
        gate('CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING', 'headless and SDK runs make no checkpoints'),
      ],
      live: [],
      sidecar: { path: '<home>/.claude/.rewind-admin', exists: false },
      leftovers: [],
      backupFolderMode: '0700',
    }
    const summary = { node: process.version, platform: process.platform, config: 'none (defaults)', stores: 1, findings: 0 }
    expect(normal(store, await store.at('doctor'))).toEqual(envelope('doctor', { summary, stores: [described] }))
  })

  it('of cap', async () => {
    const store = await given()
    expect(normal(store, await store.at('cap'))).toEqual(
      envelope('cap', { summary: { sessions: 2, max: 100, overCap: 0, backups: 0, actions: 0, bytes: 0 } }),
    )
  })

  it('of expire, before and after it acts, and of what it leaves behind', async () => {
    const store = await given()
    expect(normal(store, await store.at('expire'))).toEqual(envelope('expire', { ...expired(store) }))
    expect(normal(store, await store.at('expire', '--apply'))).toEqual(envelope('expire', { applied: true, runId: '<run>', ...expired(store, true) }))
    const bytes = 6 + store.transcripts.old
    const entry = {
      runId: '<run>',
      session: S2,
      command: 'expire',
      reason: why,
      project: '/home/u/notes',
      trashedAt: nowText,
      bytes,
      paths: [`file-history/${S2}`, transcript(S2)],
      receiptLost: false,
    }
    expect(normal(store, await store.at('trash', 'list'))).toEqual(envelope('trash', { summary: { entries: 1, bytes }, entries: [entry] }))
    const tombstone = { session: S2, project: '/home/u/notes', firstActivity: oldTime, lastActivity: oldTime, bytes, command: 'expire', runId: '<run>', removedAt: nowText, reason: why }
    expect(normal(store, await store.at('status', '2222'))).toEqual(
      envelope('status', { summary: { state: 'expired', session: S2, on: nowText, run: '<run>' }, exitCode: 1, tombstone }),
    )
    const later = '2026-12-08T12:00:00.000Z'
    const emptied = { action: 'empty', path: `<home>/.claude/.rewind-admin/trash/<run>/${S2}`, session: S2, bytes, reason: why }
    expect(normal(store, await store.at('trash', 'empty', '--now', later))).toEqual(
      envelope('trash', { startedAt: later, summary: { entries: 1, bytes }, plan: [emptied] }),
    )
  })

  it('of purge', async () => {
    const store = await given()
    const sizes = [23 + store.transcripts.new, 6 + store.transcripts.old] as const
    const item = (session: string, bytes: number): unknown => ({ action: 'trash-session', path: transcript(session), session, bytes, reason: 'started in /home/u/notes (as recorded)' })
    const summary = {
      sessions: 2,
      kept: 0,
      projects: [{ project: '/home/u/notes', rule: 'text', sessions: 2 }],
      nearMatches: [],
      items: { transcript: 2, companion: 0, agent: 0, backups: 2, leftover: 0, memory: 0 },
      shared: [],
      sharedTaken: false,
      actions: 2,
      bytes: sizes[0] + sizes[1],
    }
    expect(normal(store, await store.at('purge', '/home/u/notes'))).toEqual(envelope('purge', { summary, plan: [item(S1, sizes[0]), item(S2, sizes[1])] }))
  })

  it('of trash restore', async () => {
    const store = await given()
    const { runId = '' } = await store.at('expire', '--apply')
    const summary = { run: '<run>', restored: 1, paths: 2 }
    expect(normal(store, await store.at('trash', 'restore', runId))).toEqual(
      envelope('trash', { applied: true, runId: '<run>', summary, restored: [S2], paths: [`file-history/${S2}`, transcript(S2)] }),
    )
  })

  it('of run', async () => {
    const store = await given()
    const { summary: expireSummary, plan, kept } = expired(store)
    const step = (name: string, summary: unknown): unknown => ({ step: name, root: '<home>/.claude', state: 'done', exitCode: 0, durationMs: 0, summary })
    const verified = { sessions: 2, unchanged: 0, checkpoints: 4, backups: 4, bytes: 29, sharedInodes: 0, digested: 0, sealed: 0, proven: 0 }
    const steps = [
      step('recover', { unfinished: 0 }),
      step('verify-quick', { ...verified, errors: 0, warnings: 0, information: 0, accepted: 0, complete: true }),
      step('cap', { sessions: 2, max: 100, overCap: 0, backups: 0, actions: 0, bytes: 0 }),
      step('expire', expireSummary),
      step('empty-trash', { due: 0, bytes: 0 }),
    ]
    const summary = { job: 'nightly', stores: 1, steps: 5, failed: 0, actions: 1, bytes: 6 + store.transcripts.old }
    expect(normal(store, await store.at('run', 'nightly'))).toEqual(envelope('run', { summary, plan, kept, job: 'nightly', steps }))
  })

  it('of help', async () => {
    const store = await given()
    expect(normal(store, await store.cli.json('help', 'exit-codes'))).toEqual(envelope('help', { root: [], exitCodes: exitCodeTable }))
  })

  it('of a failure: the same fields, with the error and its exit code', async () => {
    const store = await given()
    const { stdout, stderr, exitCode } = await store.cli('show', 'nobody', '--root', store.root, '--json')
    const error = { code: 'NO_MATCH', message: 'no session begins with nobody' }
    expect(normal(store, JSON.parse(stdout) as Envelope)).toEqual(envelope('show', { errors: [error], exitCode: 1 }))
    expect(exitCode).toBe(1)
    expect(stderr).toContain('rewind-admin: no session begins with nobody')
  })
})
