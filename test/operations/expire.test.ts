import { appendFileSync, chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { BrakeError, NoStoreError, RetentionUnknowableError } from '../../src/model/errors.js'
import { ExitCode } from '../../src/model/exit-code.js'
import { planExpire, type ExpireOptions, type Expiry } from '../../src/operations/expire.js'
import { removalRows, toReport } from '../../src/operations/removal/removal.js'
import { findTombstone, writeRemovedOut } from '../../src/operations/tombstones.js'
import { asNobody, giveAway, needs } from '../helpers/unprivileged.js'
import { uuidOf } from '../helpers/identity.js'
import { carry, configOf, dayMs, daysAgo, expireOptions, iso, keptOf, machineWith, now, openStore, plannedSessions, restore, session, sidecarFile, storeTree } from '../helpers/removal.js'
import { H, S1, S2, emptyRoot, setTime, snap, userLine, writeBackup, writeStoreFile, writeTranscript } from '../helpers/store.js'
import { temporaryFolder } from '../helpers/temp.js'
import { snapshotTree } from '../helpers/tree.js'

const S3 = '33333333-3333-4333-8333-333333333333'

function plan(root: string, options: Partial<ExpireOptions> = {}, at = now): Expiry {
  return planExpire(openStore(root), expireOptions(options), { now: at, machine: machineWith() })
}

function settings(root: string, value: unknown): void {
  writeStoreFile(root, 'settings.json', JSON.stringify(value))
}

async function applied(root: string, options: Partial<ExpireOptions> = {}, at = now): Promise<Expiry> {
  const removal = plan(root, options, at)
  const result = await carry(openStore(root), removal, { at })
  expect(result.errors).toEqual([])
  removal.writeLedger('abcd')
  return removal
}

describe('the period', () => {
  it('R01: reads every settings layer and takes the longest, whatever the working folder says', async () => {
    const root = await emptyRoot()
    const project = await temporaryFolder()
    settings(root, { cleanupPeriodDays: 1200 })
    writeStoreFile(project, '.claude/settings.local.json', '{}')
    for (const [index, slug] of ['-a', '-b', '-b'].entries()) session(root, slug, uuidOf(`r01/${String(index)}`), 40, { cwd: project })
    const removal = plan(root)
    expect(plannedSessions(removal)).toEqual([])
    expect(removal.summary.retention).toMatchObject({ days: 1200, source: `user settings, ${join(root, 'settings.json')}` })
  })

  it('R01: a project layer that keeps longer wins for the sessions of that project only', async () => {
    const root = await emptyRoot()
    const project = await temporaryFolder()
    settings(root, { cleanupPeriodDays: 10 })
    writeStoreFile(project, '.claude/settings.local.json', '{"cleanupPeriodDays": 90}')
    session(root, '-a', S1, 40, { cwd: project })
    session(root, '-a', S2, 40, { cwd: '/elsewhere' })
    const removal = plan(root)
    expect(plannedSessions(removal)).toEqual([S2])
    expect(keptOf(removal)[S1]).toContain('90 days (local settings')
  })

  it('a project layer that says less than the default counts where no other layer speaks', async () => {
    const root = await emptyRoot()
    const project = await temporaryFolder()
    writeStoreFile(project, '.claude/settings.json', '{"cleanupPeriodDays": 5}')
    session(root, '-a', S1, 8, { cwd: project })
    session(root, '-a', S2, 8, { cwd: '/elsewhere' })
    expect(plannedSessions(plan(root))).toEqual([S1])
  })

  it('R02: a store whose projects folder is a link keeps its sessions, and the period that counts is named', async () => {
    const root = await emptyRoot()
    const elsewhere = join(await temporaryFolder(), 'projects')
    rmSync(join(root, 'projects'), { recursive: true })
    mkdirSync(elsewhere)
    symlinkSync(elsewhere, join(root, 'projects'))
    settings(root, { cleanupPeriodDays: 99999 })
    session(root, '-p', S1, 95)
    const long = plan(root)
    expect(plannedSessions(long)).toEqual([])
    expect(long.summary.retention).toMatchObject({ days: 99999 })
    // Even when it is old enough nothing is removed through the link.
    const short = plan(root, { olderThanMs: dayMs })
    expect(plannedSessions(short)).toEqual([])
    expect(keptOf(short)[S1]).toContain(elsewhere)
    expect(short.errors).toEqual([])
  })

  it.each([
    ['an empty file', ''],
    ['a trailing comma', '{"cleanupPeriodDays":3650,}'],
    ['a text', '{"cleanupPeriodDays":"365"}'],
    ['a negative number', '{"cleanupPeriodDays":-1}'],
    ['half a day', '{"cleanupPeriodDays":1.5}'],
    ['null', '{"cleanupPeriodDays":null}'],
    ['a list at the top', '[]'],
    ['R06: zero', '{"cleanupPeriodDays":0}'],
  ])('R05: settings with %s stop the run with exit 65, naming file and key, and nothing is planned', async (_, text) => {
    const root = await emptyRoot()
    session(root, '-p', S1, 400)
    const file = writeStoreFile(root, 'settings.json', text)
    const act = (): unknown => plan(root)
    expect(act).toThrow(RetentionUnknowableError)
    expect(act).toThrow(file)
    // An explicit period does not make a file readable that may have said "keep longer".
    expect(() => plan(root, { olderThanMs: dayMs })).toThrow(RetentionUnknowableError)
  })

  it('R05: a folder in place of the settings stops the run too, a BOM does not', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 400)
    mkdirSync(join(root, 'settings.json'))
    expect(() => plan(root)).toThrow(RetentionUnknowableError)
    rmSync(join(root, 'settings.json'), { recursive: true })
    writeStoreFile(root, 'settings.json', '\uFEFF{"cleanupPeriodDays": 365}')
    expect(plannedSessions(plan(root))).toEqual([S1])
  })

  it('R05: settings without read permission stop the run', async (context) => {
    needs(context, 'unprivileged')
    const root = await emptyRoot()
    session(root, '-p', S1, 400)
    writeStoreFile(root, 'settings.json', '{"cleanupPeriodDays": 30}', { mode: 0o000 })
    giveAway(dirname(root))
    await asNobody(() => {
      expect(() => plan(root)).toThrow(RetentionUnknowableError)
    })
  })

  it('R05: settings of a project with a candidate that cannot be used stop the whole run', async () => {
    const root = await emptyRoot()
    const project = await temporaryFolder()
    const file = writeStoreFile(project, '.claude/settings.json', '{"cleanupPeriodDays": 0}')
    session(root, '-a', S1, 400, { cwd: '/elsewhere' })
    session(root, '-b', S2, 400, { cwd: project })
    expect(() => plan(root)).toThrow(file)
  })

  it('R09: a pinned project and a longer period of our own keep what the agent would drop', async () => {
    const root = await emptyRoot()
    session(root, '-grp-a', S1, 40, { cwd: '/grp/a' })
    session(root, '-grp-b', S2, 400, { cwd: '/grp/b/deep' })
    session(root, '-grp-c', S3, 40, { cwd: '/grp/c' })
    const pinned = uuidOf('pinned')
    session(root, '-grp-a', pinned, 400, { cwd: '/grp/a' })
    const config = configOf({ pins: { projects: ['/grp/b/**'], sessions: [pinned.slice(0, 8)] }, periods: [{ project: '/grp/c', days: 60 }] })
    const removal = plan(root, { config })
    expect(plannedSessions(removal)).toEqual([S1])
    expect(keptOf(removal)[S2]).toBe('pinned by project /grp/b/**')
    expect(keptOf(removal)[pinned]).toContain('pinned by session')
    // With a period given on the command line the longer rule still wins, and pins hold.
    expect(plannedSessions(plan(root, { config, olderThanMs: dayMs }))).toEqual([S1])
    expect(removal.summary.projects).toContainEqual({ folder: 'projects/-grp-a', project: '/grp/a', scanned: 2, kept: 1, removed: 1, bytes: expect.any(Number) as number })
  })
})

describe('the age of a session', () => {
  it('strictly older than: a millisecond past the period goes, the exact threshold stays', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 30)
    writeTranscript(root, '-p', S2, [userLine('m', { session: S2, time: iso(daysAgo(30) - 1) })], { mtime: daysAgo(30) - 1 })
    expect(plannedSessions(plan(root))).toEqual([S2])
  })

  it('R03: the newest of entry and mtime counts, and the reason says which', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 2, { mtime: daysAgo(400) })
    session(root, '-p', S2, 400, { mtime: daysAgo(2) })
    session(root, '-p', S3, 400)
    const removal = plan(root)
    expect(plannedSessions(removal)).toEqual([S3])
    expect(keptOf(removal)[S1]).toContain('newest entry of the transcript')
    expect(keptOf(removal)[S2]).toContain('mtime of the transcript')
  })

  it('R13: an old folder with one backup of yesterday keeps the session, and so does a live one', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 60)
    const backup = writeBackup(root, S1, `${H}@v1`, 'x', { mtime: daysAgo(1.5) })
    setTime(dirname(backup), daysAgo(60))
    const removal = plan(root)
    expect(plannedSessions(removal)).toEqual([])
    expect(keptOf(removal)[S1]).toContain('mtime of a backup')
  })

  it('R10: companions without a transcript age on their own newest file and keep the backups of the same id', async () => {
    const root = await emptyRoot()
    writeStoreFile(root, `projects/-p/${S1}/subagents/agent-aa.jsonl`, userLine('a', { session: S1 }), { mtime: daysAgo(5) })
    writeBackup(root, S1, `${H}@v1`, 'x', { mtime: daysAgo(90) })
    expect(plannedSessions(plan(root))).toEqual([])
    expect(keptOf(plan(root))[S1]).toContain('mtime of a companion file')
    setTime(join(root, `projects/-p/${S1}/subagents/agent-aa.jsonl`), daysAgo(31))
    const removal = plan(root)
    expect(removal.plan.actions.map((action) => action.kind === 'trash-session' && action.items.map((item) => item.path).sort())).toEqual([
      [`file-history/${S1}`, `projects/-p/${S1}`],
    ])
  })

  it('R11: transcript, companion, backups and leftovers go together, or not at all', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 60)
    const agent = writeStoreFile(root, `projects/-p/${S1}/subagents/agent-aa.jsonl`, '{}\n', { mtime: daysAgo(1.5) })
    for (const path of [`projects/-p/${S1}/subagents/agent-aa.meta.json`, `projects/-p/${S1}/tool-results/toolu_1.txt`, `session-env/${S1}/hook.sh`, `tasks/${S1}/1.json`, `todos/${S1}-agent-${S1}.json`, `debug/${S1}.txt`]) {
      writeStoreFile(root, path, 'x', { mtime: daysAgo(60) })
    }
    writeBackup(root, S1, `${H}@v1`, 'x', { mtime: daysAgo(60) })
    expect(plannedSessions(plan(root))).toEqual([])
    setTime(agent, daysAgo(60))
    await applied(root)
    const left = Object.keys(snapshotTree(root)).filter((path) => path.includes(S1) && !path.startsWith('.rewind-admin'))
    expect(left).toEqual([])
  })

  it('R72: days behind a bad line count, and a damaged transcript goes only when its mtime is old too', async () => {
    const root = await emptyRoot()
    const damaged = `${userLine('a', { session: S1, time: iso(daysAgo(90)) })}\n{"type":"file-history-snapshot","messageId":"x","snap\n`
    const path = writeTranscript(root, '-p', S1, Buffer.from(`${damaged}${userLine('b', { session: S1, time: iso(daysAgo(2)) })}\n`), { mtime: daysAgo(90) })
    expect(keptOf(plan(root))[S1]).toContain('newest entry of the transcript')
    writeFileSync(path, damaged)
    setTime(path, daysAgo(2))
    expect(plannedSessions(plan(root))).toEqual([])
    setTime(path, daysAgo(90))
    expect(plannedSessions(plan(root))).toEqual([S1])
  })

  it('R76: the same id in two project folders goes only when both are old, and then both go', async () => {
    const root = await emptyRoot()
    session(root, '-a', S1, 90)
    const fresh = session(root, '-b', S1, 2)
    writeBackup(root, S1, `${H}@v1`, 'x', { mtime: daysAgo(90) })
    const removal = plan(root)
    expect(plannedSessions(removal)).toEqual([])
    expect(removal.findings.map(({ id }) => id)).toContain('duplicate-session')
    rmSync(fresh)
    session(root, '-b', S1, 90)
    expect(plan(root).plan.actions[0]).toMatchObject({ session: S1, items: expect.arrayContaining([expect.objectContaining({ path: `projects/-a/${S1}.jsonl` }), expect.objectContaining({ path: `projects/-b/${S1}.jsonl` })]) as unknown })
  })

  it('R88: of orphan backups only those go whose newest file is older than the period', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 1)
    const [old, young] = [uuidOf('old'), uuidOf('young')]
    writeBackup(root, old, `${H}@v1`, 'x', { mtime: daysAgo(31) })
    writeBackup(root, young, `${H}@v1`, 'x', { mtime: daysAgo(31) })
    writeBackup(root, young, `${H}@v2`, 'x', { mtime: daysAgo(29) })
    const removal = plan(root)
    expect(plannedSessions(removal)).toEqual([old])
    expect(removal.plan.actions[0]?.reason).toContain('no transcript')
  })

  it('R92: a date in a name says nothing: an old-dated session that was written to today stays', async () => {
    const root = await emptyRoot()
    session(root, '-2025-01-01', S1, 400, { mtime: now })
    expect(plannedSessions(plan(root))).toEqual([])
  })

  it('R45: a transcript of snapshot lines only is a session and expires', async () => {
    const root = await emptyRoot()
    writeTranscript(root, '-p', S1, [snap('m1', {}, iso(daysAgo(60)))], { mtime: daysAgo(60) })
    writeTranscript(root, '-p', S2, Buffer.alloc(0), { mtime: daysAgo(60) })
    expect(plannedSessions(plan(root))).toEqual([S1, S2])
  })
})

describe('guards', () => {
  it('R04: the ledger is made at the first run, and a session that appears later with old dates gets a full period', async () => {
    const root = await emptyRoot()
    await applied(root)
    expect(readFileSync(sidecarFile(root, 'first-seen.jsonl'), 'utf8')).toContain('"schemaVersion":1')
    session(root, '-p', S1, 90)
    const second = await applied(root)
    expect(plannedSessions(second)).toEqual([])
    expect(keptOf(second)[S1]).toMatch(/^grace: /)
    expect(plannedSessions(plan(root, { grace: false }))).toEqual([S1])
    expect(plannedSessions(plan(root, {}, now + 30 * dayMs))).toEqual([])
    expect(plannedSessions(plan(root, {}, now + 30 * dayMs + 1))).toEqual([S1])
  })

  it('R04: what is there at the first run gets no grace', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 90)
    expect(plannedSessions(plan(root))).toEqual([S1])
  })

  it('R04: a transcript that comes back beside backups that never went counts as new', async () => {
    const root = await emptyRoot()
    session(root, '-p', S2, 1)
    writeBackup(root, S1, `${H}@v1`, 'x', { mtime: daysAgo(10) })
    await applied(root)
    session(root, '-p', S1, 90)
    setTime(join(root, `file-history/${S1}/${H}@v1`), daysAgo(90))
    expect(keptOf(plan(root))[S1]).toMatch(/^grace: /)
  })

  it('a damaged ledger makes nothing expire: what it no longer names counts as seen now', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 25)
    session(root, '-p', S2, 25)
    await applied(root)
    const ledger = sidecarFile(root, 'first-seen.jsonl')
    writeFileSync(ledger, readFileSync(ledger, 'utf8').replace(S1, `${S1.slice(0, 4)}"`))
    const removal = plan(root, {}, now + 20 * dayMs)
    expect(plannedSessions(removal)).toEqual([S2])
    expect(removal.findings.map(({ id }) => id)).toContain('sidecar-damaged')
  })

  it('R07: a plan of 950 of 1000 sessions is refused with both counts, and a limit lets it run', async () => {
    const root = await emptyRoot()
    for (let index = 0; index < 1000; index += 1) session(root, '-p', uuidOf(`r07/${String(index)}`), index < 950 ? 60 : 1)
    const removal = plan(root)
    expect(removal.plan.actions).toHaveLength(950)
    expect(removal.refusal?.message).toContain('950 of 1000')
    await expect(carry(openStore(root), removal)).rejects.toThrow(BrakeError)
    expect(readdirSync(join(root, 'projects/-p'))).toHaveLength(1000)
    expect(removalRows(removal).exitCode).toBe(ExitCode.brake)
    expect(plan(root, { maxDelete: { count: 1000 } }).refusal).toBeUndefined()
  })

  it('the brake of the configuration is the larger of its two numbers', async () => {
    const root = await emptyRoot()
    for (let index = 0; index < 10; index += 1) session(root, '-p', uuidOf(`brake/${String(index)}`), index < 4 ? 60 : 1)
    const brake = (sessions: number, percent: number): Partial<ExpireOptions> => ({ config: configOf({ brake: { sessions, percent } }) })
    expect(plan(root, brake(3, 30)).refusal).toBeInstanceOf(BrakeError)
    expect(plan(root, brake(3, 40)).refusal).toBeUndefined()
    expect(plan(root, brake(4, 0)).refusal).toBeUndefined()
  })

  it('R08: a clock that stands a year ahead of everything removes nothing and ends with a finding', async () => {
    const root = await emptyRoot()
    for (let index = 0; index < 10; index += 1) session(root, '-p', uuidOf(`r08/${String(index)}`), 0)
    const removal = plan(root, { clockCheck: true }, now + 400 * dayMs)
    expect(plannedSessions(removal)).toEqual([])
    expect(removal.findings.map(({ id }) => id)).toContain('clock-looks-wrong')
    expect(removalRows(removal).exitCode).toBe(ExitCode.findings)
    expect(plannedSessions(plan(root, { clockCheck: false }, now + 400 * dayMs))).toHaveLength(10)
  })

  it('R08: activity in the future of the clock removes nothing', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 400)
    session(root, '-p', S2, -2)
    expect(plannedSessions(plan(root, { clockCheck: true }))).toEqual([])
    expect(plannedSessions(plan(root, { clockCheck: false }))).toEqual([S1])
  })

  it('R08: below the floor nothing expires, whatever the settings say', async () => {
    const root = await emptyRoot()
    settings(root, { cleanupPeriodDays: 1 })
    session(root, '-p', S1, 3)
    session(root, '-p', S2, 8)
    const removal = plan(root, { floorMs: 7 * dayMs })
    expect(plannedSessions(removal)).toEqual([S2])
    expect(keptOf(removal)[S1]).toContain('floor')
  })

  it('a session within the quiet period stays even with every other guard open', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 0, { mtime: now - 3_600_000, time: iso(now - 3_600_000) })
    session(root, '-p', S2, 0, { mtime: now - 3_600_001, time: iso(now - 3_600_001) })
    const removal = plan(root, { floorMs: 0, olderThanMs: 0 })
    expect(plannedSessions(removal)).toEqual([S2])
    expect(keptOf(removal)[S1]).toContain('quiet period')
  })

  it('R104: a session that a live process has open stays however old; one of a dead pid does not', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 400)
    session(root, '-p', S2, 400)
    const entry = (sessionId: string, pid: number): void => {
      writeStoreFile(root, `sessions/${String(pid)}.json`, JSON.stringify({ pid, sessionId, procStart: '77', pidDomain: 'linux:test:pid:[1]' }))
    }
    entry(S1, 4242)
    entry(S2, 4343)
    const removal = planExpire(openStore(root), expireOptions(), { now, machine: machineWith({ 4242: '77' }) })
    expect(plannedSessions(removal)).toEqual([S2])
    expect(keptOf(removal)[S1]).toContain('open in process 4242')
  })

  it('R104: a session that becomes live between plan and act stays', async () => {
    const root = await emptyRoot()
    const transcript = session(root, '-p', S1, 400)
    const store = openStore(root)
    const removal = plan(root)
    writeStoreFile(root, 'sessions/4242.json', JSON.stringify({ pid: 4242, sessionId: S1, procStart: '77', pidDomain: 'linux:test:pid:[1]' }))
    const result = await carry(store, removal, { machine: machineWith({ 4242: '77' }) })
    expect(result.done).toEqual([])
    expect(result.kept[0]?.reason).toContain('open in process 4242')
    expect(existsSync(transcript)).toBe(true)
  })

  it('R75: a transcript that is appended to between plan and act stays whole and in place', async () => {
    const root = await emptyRoot()
    const transcript = session(root, '-p', S1, 400)
    const backup = writeBackup(root, S1, `${H}@v1`, 'x', { mtime: daysAgo(400) })
    const removal = plan(root)
    appendFileSync(transcript, `${userLine('late', { session: S1 })}\n`)
    const result = await carry(openStore(root), removal)
    expect(result.done).toEqual([])
    expect(existsSync(transcript) && existsSync(backup)).toBe(true)
  })

  it('a session that verify found errors in stays, with the reason', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 400)
    const removal = plan(root, { protectedSessions: new Map([[S1, 'verify found missing-backup']]) })
    expect(keptOf(removal)).toEqual({ [S1]: 'verify found missing-backup' })
  })

  it('R113: a session with lines of a newer format stays, with a finding', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 400, { lines: ['{"type":"file-history-manifest","messageId":"m","backupFileName":"x"}'] })
    const removal = plan(root)
    expect(plannedSessions(removal)).toEqual([])
    expect(keptOf(removal)[S1]).toContain('newer-format')
    expect(removal.findings.map(({ id }) => id)).toContain('newer-format')
  })

  it('R84: a transcript that is replaced while it is read is left alone', async () => {
    const root = await emptyRoot()
    const transcript = session(root, '-p', S1, 400)
    const store = openStore(root)
    const replaced = {
      ...store,
      read: (...[ref, options]: Parameters<typeof store.read>) => {
        const reading = store.read(ref, options)
        const copy = `${transcript}.new`
        writeFileSync(copy, readFileSync(transcript))
        renameSync(copy, transcript)
        return { ...reading, busy: true }
      },
    }
    const removal = planExpire(replaced, expireOptions(), { now, machine: machineWith() })
    expect(keptOf(removal)[S1]).toContain('changed while it was read')
  })

  it('R108: a session whose backups cannot be listed is protected and named, and the others are planned', async (context) => {
    needs(context, 'unprivileged')
    const root = await emptyRoot()
    session(root, '-p', S1, 400)
    session(root, '-p', S2, 400)
    chmodSync(dirname(writeBackup(root, S1, `${H}@v1`, 'x', { mtime: daysAgo(400) })), 0o000)
    giveAway(dirname(root))
    await asNobody(() => {
      const removal = plan(root)
      expect(plannedSessions(removal)).toEqual([S2])
      expect(removal.errors).toEqual([expect.objectContaining({ code: 'EACCES', path: `file-history/${S1}` })])
      expect(removalRows(removal).exitCode).toBe(ExitCode.partial)
    })
  })

  it('R108: while a project folder cannot be listed, no session counts as one without a transcript', async (context) => {
    needs(context, 'unprivileged')
    const root = await emptyRoot()
    session(root, '-p', S1, 400)
    writeBackup(root, S1, `${H}@v1`, 'x', { mtime: daysAgo(400) })
    chmodSync(join(root, 'projects/-p'), 0o000)
    giveAway(dirname(root))
    await asNobody(() => {
      const removal = plan(root)
      expect(plannedSessions(removal)).toEqual([])
      expect(keptOf(removal)[S1]).toContain('out of sight')
    })
  })

  it('R55: a project folder that is a link hides its sessions, so their backups are no orphans; nothing outside changes', async () => {
    const root = await emptyRoot()
    const outside = join(await temporaryFolder(), 'p')
    session(root, '-p', S1, 400)
    writeBackup(root, S1, `${H}@v1`, 'x', { mtime: daysAgo(400) })
    renameSync(join(root, 'projects/-p'), outside)
    symlinkSync(outside, join(root, 'projects/-p'))
    const before = snapshotTree(outside)
    const removal = await applied(root)
    expect(plannedSessions(removal)).toEqual([])
    expect(snapshotTree(outside)).toEqual(before)
    expect(existsSync(join(root, `file-history/${S1}/${H}@v1`))).toBe(true)
  })

  it('a projects folder that is a link to nothing makes no orphans', async () => {
    const root = await emptyRoot()
    writeBackup(root, S1, `${H}@v1`, 'x', { mtime: daysAgo(400) })
    rmSync(join(root, 'projects'), { recursive: true })
    symlinkSync('/nonexistent/projects', join(root, 'projects'))
    expect(plannedSessions(plan(root))).toEqual([])
  })
})

describe('what is removed', () => {
  it('R14: five foreign files survive the expiry of their session and are listed', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 400)
    writeBackup(root, S1, `${H}@v1`, 'x', { mtime: daysAgo(400) })
    writeStoreFile(root, `projects/-p/${S1}/subagents/agent-aa.jsonl`, 'x', { mtime: daysAgo(400) })
    const foreign = ['projects/-p/notes.md', `projects/-p/${S1}/mine.txt`, 'file-history/README', `file-history/${S1}/keep.me`, `file-history/${S1}/${H}@v1.bak`]
    for (const path of foreign) writeStoreFile(root, path, 'mine\n', { mtime: daysAgo(400) })
    const removal = await applied(root)
    for (const path of foreign) expect(readFileSync(join(root, path), 'utf8')).toBe('mine\n')
    expect(removal.findings.filter(({ id }) => id === 'foreign-file').map(({ place }) => place?.path).sort()).toEqual([...foreign].sort())
    for (const path of [`projects/-p/${S1}.jsonl`, `projects/-p/${S1}/subagents`, `file-history/${S1}/${H}@v1`]) expect(existsSync(join(root, path))).toBe(false)
  })

  it('R15: the memory stays, even as the only thing in its folder', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 400)
    writeStoreFile(root, 'projects/-p/memory/MEMORY.md', 'remember', { mtime: daysAgo(400) })
    await applied(root)
    expect(readdirSync(join(root, 'projects/-p'))).toEqual(['memory'])
  })

  it('R12: prompt history keeps its bytes, and a tombstone says when and why the session went', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 400, { cwd: '/home/u/p' })
    writeStoreFile(root, `session-env/${S1}/hook.sh`, 'x', { mtime: daysAgo(400) })
    const history = `{"display":"a","project":"/home/u/p","sessionId":"${S1}"}\n`.repeat(3)
    writeStoreFile(root, 'history.jsonl', history)
    await applied(root)
    expect(readFileSync(join(root, 'history.jsonl'), 'utf8')).toBe(history)
    const stone = findTombstone(openStore(root), S1.slice(0, 8))
    expect(stone).toMatchObject({ session: S1, project: '/home/u/p', command: 'expire', lastActivity: iso(daysAgo(400)), firstActivity: iso(daysAgo(400)), removedAt: iso(now) })
    expect(stone?.bytes).toBeGreaterThan(0)
    expect(findTombstone(openStore(root), S2)).toBeUndefined()
  })

  it('R16, R58: a plan alone changes nothing, not even our own folder', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 400)
    const before = snapshotTree(root)
    const removal = plan(root)
    expect(plannedSessions(removal)).toEqual([S1])
    expect(toReport('expire', [{ removal }])).toMatchObject({ applied: false, plan: [{ action: 'trash-session', path: `projects/-p/${S1}.jsonl`, session: S1 }] })
    expect(snapshotTree(root)).toEqual(before)
  })

  it('R17: one old session in each of three projects: all three are planned, and counted per project', async () => {
    const root = await emptyRoot()
    for (const [index, slug] of ['-a', '-b', '-c'].entries()) session(root, slug, uuidOf(`r17/${String(index)}`), 60, { cwd: `/p/${slug}` })
    const removal = plan(root)
    expect(removal.plan.actions).toHaveLength(3)
    expect(removal.summary.projects).toHaveLength(3)
  })

  it('R18: nothing recognised in a store that is not empty ends with exit 10; an empty store is done', async () => {
    const root = await emptyRoot()
    expect(plan(root).plan.actions).toEqual([])
    writeStoreFile(root, `projects/-p/${S1}.jsonl.zst`, 'x')
    expect(() => plan(root)).toThrow(NoStoreError)
  })

  it('R22: a working tree that sessions were started in is never touched', async () => {
    const root = await emptyRoot()
    const project = await temporaryFolder()
    writeStoreFile(project, '.claude/worktrees/agent-x/dirty.txt', 'uncommitted')
    session(root, '-p', S1, 400, { cwd: join(project, '.claude/worktrees/agent-x') })
    const before = snapshotTree(project)
    await applied(root)
    expect(snapshotTree(project)).toEqual(before)
  })

  it('R55, R61: links, pipes and folders in the backup folder are moved or left, never followed', async () => {
    const root = await emptyRoot()
    const outside = await temporaryFolder()
    writeFileSync(join(outside, 'secret'), 'secret')
    utimesSync(join(outside, 'secret'), 1, 1)
    session(root, '-p', S1, 400)
    writeBackup(root, S1, `${H}@v1`, 'x', { mtime: daysAgo(400) })
    symlinkSync(join(outside, 'secret'), join(root, `file-history/${S1}/${H}@v2`))
    mkdirSync(join(root, `file-history/${S1}/${H}@v3`))
    const before = snapshotTree(outside)
    // The link's own time is that of its making: it is judged by the other times once it is as old as they are.
    const removal = plan(root, {}, Date.now() + 60 * dayMs)
    expect(plannedSessions(removal)).toEqual([S1])
    await carry(openStore(root), removal)
    expect(snapshotTree(outside)).toEqual(before)
    expect(readdirSync(join(root, `file-history/${S1}`))).toEqual([`${H}@v3`])
  })

  it('R68: a backup that another session still links frees nothing; the last name frees it', async () => {
    const root = await emptyRoot()
    const { linkIntoSession } = await import('../helpers/damage.js')
    const transcripts = [S1, S2, S3].map((id) => session(root, '-p', id, 400))
    writeBackup(root, S1, `${H}@v1`, Buffer.alloc(1_000_000, 1), { mtime: daysAgo(400) })
    linkIntoSession(root, S1, `${H}@v1`, S2)
    linkIntoSession(root, S1, `${H}@v1`, S3)
    for (const path of transcripts.slice(1)) setTime(path, daysAgo(1))
    expect(plan(root).plan.actions[0]?.bytes).toBeLessThan(1000)
    for (const path of transcripts) setTime(path, daysAgo(400))
    const bytes = plan(root).plan.actions.map((action) => action.bytes)
    expect(bytes.filter((each) => each > 1000)).toHaveLength(1)
  })

  it('R85: an index that is wrong decides nothing', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 400)
    writeStoreFile(root, 'projects/-p/sessions-index.json', JSON.stringify({ entries: [{ sessionId: S2, modified: iso(daysAgo(400)) }] }))
    expect(plannedSessions(plan(root))).toEqual([S1])
  })

  it('R124: ids of removed sessions are written one a line', async () => {
    const folder = await temporaryFolder()
    writeRemovedOut(join(folder, 'removed'), [S1, S2], 'ab')
    expect(readFileSync(join(folder, 'removed'), 'utf8')).toBe(`${S1}\n${S2}\n`)
  })

  it('R60: expire and restore give the same tree, times and modes included', async () => {
    const root = await emptyRoot()
    session(root, '-p', S1, 400)
    writeBackup(root, S1, `${H}@v1`, 'x', { mtime: daysAgo(400), mode: 0o444 })
    const store = openStore(root)
    const before = storeTree(root)
    const result = await carry(store, plan(root))
    expect(existsSync(join(root, 'projects/-p'))).toBe(false)
    await restore(store, result.runId)
    expect(storeTree(root)).toEqual(before)
  })
})
