import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { cliIn, now, type Cli, type Envelope } from '../../cli/world.js'
import { ageAll, dshSession, DshStore } from '../../helpers/dsh.js'
import { dshStores, extractDsh } from '../../helpers/dsh-corpus.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { snapshotTree } from '../../helpers/tree.js'

const dayMs = 86_400_000
const forkId = 'session-00000000-0000-4000-8000-000000000002'

interface World {
  readonly home: string
  readonly project: string
  readonly dsh: DshStore
  readonly cli: Cli
}

/** A session of two messages, 60 days old: f was A, then B, and is C now; n was created by the second message. */
async function world(): Promise<World> {
  const home = await temporaryFolder()
  const project = join(home, 'p')
  mkdirSync(project)
  writeFileSync(join(project, 'f'), 'C\n')
  writeFileSync(join(project, 'n'), 'new\n')
  const dsh = new DshStore(join(home, '.dsh'))
  dsh.markers()
  const then = now - 60 * dayMs
  const at = { file: join(project, 'f'), parent: project, mode: 0o640 }
  dsh.bytes({ ...at, anchor: 1, call: 'a', before: 'A\n', time: then })
  dsh.bytes({ ...at, anchor: 7, call: 'b', before: 'B\n', time: then + 2 })
  dsh.bytes({ anchor: 7, call: 'n', file: join(project, 'n'), before: null, time: then + 3 })
  const log = dsh.log(project, [1, 7, 13].map((seq) => ({ seq, text: `message ${String(seq)}`, time: then + seq })))
  ageAll(dsh.folder(), then)
  ageAll(log, then)
  return { home, project, dsh, cli: cliIn(home) }
}

function content(path: string): string | null {
  return existsSync(path) ? readFileSync(path, 'utf8') : null
}

function ids(envelope: Envelope): unknown[] {
  return envelope.findings.map(({ id }) => id)
}

describe('on a store of dsh-rewind', () => {
  it('status, list and show say what there is, and write nothing', async () => {
    const { home, project, dsh, cli } = await world()
    const before = snapshotTree(home)
    const status = await cli.json('status')
    expect(status.stores).toMatchObject([{ root: dsh.root, format: 'dsh-rewind', sessions: 1, checkpoints: 2, backups: 2, bytes: 4, retention: { days: 'never', source: 'default' } }])
    expect((await cli.json('list')).sessions).toMatchObject([{ id: dshSession, project, checkpoints: 2, backups: 2, bytes: 4, live: false }])
    const show = await cli.json('show', 'session-')
    expect(show.checkpoints).toMatchObject([
      { id: '1', text: 'message 1', active: true, restorable: true, files: [{ path: join(project, 'f'), state: 'present' }, { path: join(project, 'n'), state: 'absent' }] },
      { id: '7', text: 'message 7', restorable: true },
    ])
    expect(snapshotTree(home)).toEqual(before)
  })

  it.each(['7', '@7', 'msg-7'])('rewind to %s changes nothing without --apply, then the files, and redo undoes it', async (word) => {
    const { project, cli } = await world()
    const before = snapshotTree(project)
    expect(await cli.json('rewind', dshSession, word)).toMatchObject({ applied: false, changes: [{ path: join(project, 'f'), action: 'restore' }, { path: join(project, 'n'), action: 'delete' }] })
    expect(snapshotTree(project)).toEqual(before)
    expect(await cli.json('rewind', dshSession, word, '--apply')).toMatchObject({ applied: true, exitCode: 0 })
    expect([content(join(project, 'f')), content(join(project, 'n'))]).toEqual(['B\n', null])
    expect(lstatSync(join(project, 'f')).mode & 0o777).toBe(0o640)
    expect(await cli.json('redo', dshSession, '--apply')).toMatchObject({ exitCode: 0 })
    expect([content(join(project, 'f')), content(join(project, 'n'))]).toEqual(['C\n', 'new\n'])
  })

  it('rewind to a message that recorded nothing leaves the files as later messages found them', async () => {
    const { project, cli } = await world()
    expect(await cli.json('rewind', dshSession, '13')).toMatchObject({ changes: [], exitCode: 0 })
    expect((await cli('rewind', dshSession, '2')).exitCode).toBe(1)
    expect(content(join(project, 'f'))).toBe('C\n')
  })

  it('R113: rewind and verify end with 12 for a newer store, and nothing is read or changed', async () => {
    const { home, dsh, cli } = await world()
    dsh.put('store', '3')
    const before = snapshotTree(home)
    expect((await cli('rewind', dshSession, '7', '--apply')).exitCode).toBe(12)
    const verify = await cli.json('verify')
    expect([verify.exitCode, ids(verify)]).toEqual([12, ['newer-format']])
    expect((await cli('fork', dshSession, forkId)).exitCode).toBe(12)
    expect(await cli.json('expire', '--older-than', '1d', '--apply')).toMatchObject({ plan: [], kept: [{ session: dshSession }] })
    expect(content(join(dsh.root, dshSession, 'store'))).toBe('3')
    expect(Object.keys(snapshotTree(join(home, '.dsh', 'rewind-snapshots')))).toEqual(Object.keys(before).flatMap((path) => (path.startsWith('.dsh/rewind-snapshots') ? [path.slice('.dsh/rewind-snapshots/'.length) || '.'] : [])))
  })

  it('verify finds a good store good, seals it, and R47: sees damage that the store itself cannot show', async () => {
    const { dsh, cli } = await world()
    expect(ids(await cli.json('verify', '--seal'))).toEqual(expect.not.arrayContaining(['missing-backup']))
    expect(await cli.json('verify')).toMatchObject({ exitCode: 0, summary: { backups: 2, checkpoints: 2 } })
    const side = readdirSync(join(dsh.folder(), '1')).find((name) => name.endsWith('.before')) ?? ''
    writeFileSync(join(dsh.folder(), '1', side), 'X\n')
    rmSync(join(dsh.folder(), '7', readdirSync(join(dsh.folder(), '7')).find((name) => name.endsWith('.before')) ?? ''))
    const verify = await cli.json('verify')
    expect(verify.findings).toMatchObject([
      { id: 'missing-backup', severity: 'error' },
      { id: 'changed-after-seal', severity: 'error', place: `${dshSession}/1/${side}` },
      { id: 'wide-mode', place: '.', message: '1 backups can be read by other users of this machine' },
    ])
    expect(verify.exitCode).toBe(1)
    // What is not as it was sealed is not written back.
    expect((await cli.json('rewind', dshSession, '1')).failed).toHaveLength(1)
  })

  it('verify --quick reads again what changed, records too', async () => {
    const { dsh, cli } = await world()
    await cli.json('verify', '--seal')
    expect(await cli.json('verify', '--quick')).toMatchObject({ exitCode: 0, summary: { unchanged: 1 } })
    dsh.put('7/half.json', '{')
    expect(ids(await cli.json('verify', '--quick'))).toContain('damaged-record')
  })

  it('verify seals texts in records, and links only where they lead', async () => {
    const { dsh, cli, project } = await world()
    const text = dsh.text({ anchor: 20, call: 't', file: join(project, 'f'), before: 'T\n', time: now - dayMs })
    const link = dsh.link({ anchor: 21, call: 'l', file: join(project, 'f'), ref: text, time: now - dayMs })
    await cli.json('verify', '--seal')
    expect(await cli.json('verify')).toMatchObject({ summary: { backups: 3 }, exitCode: 0 })
    // The plugin itself rewrites links (section 2.6).
    dsh.putJson(link, { store: 2, callId: 'l', file: join(project, 'f'), ref: text, time: 5 })
    expect(await cli.json('verify')).toMatchObject({ exitCode: 0 })
    dsh.putJson(text, { callId: 't', anchorSeq: 20, path: join(project, 'f'), before: 'U\n', time: now - dayMs })
    expect(ids(await cli.json('verify'))).toContain('changed-after-seal')
    expect((await cli.json('rewind', dshSession, '20')).failed).toHaveLength(1)
  })

  it('expire keeps sessions for ever, unless a period says otherwise; trash restore brings them back as they were', async () => {
    const { dsh, cli } = await world()
    expect(await cli.json('expire', '--apply')).toMatchObject({ plan: [], kept: [{ session: dshSession }], summary: { retention: { period: 'for ever', days: 'never' } } })
    const before = snapshotTree(dsh.folder())
    const expired = await cli.json('expire', '--older-than', '30d', '--apply')
    expect(expired.plan).toMatchObject([{ action: 'trash-session', path: dshSession }])
    expect(existsSync(dsh.folder())).toBe(false)
    expect((await cli.json('status', dshSession)).summary).toMatchObject({ state: 'expired' })
    await cli.json('trash', 'restore', expired.runId ?? '')
    expect(snapshotTree(dsh.folder())).toEqual(before)
    // R04: it came back with old dates, so it stays for a full period.
    expect(await cli.json('expire', '--older-than', '30d', '--apply')).toMatchObject({ plan: [] })
  })

  it('expire follows a policy that is switched on, and R05: ends with 65 for one that cannot be used', async () => {
    const { home, dsh, cli } = await world()
    writeFileSync(join(home, '.dsh', 'snapshot-cleanup.json'), '{"enabled":true,"maxAgeDays":30}')
    expect((await cli.json('expire')).plan).toMatchObject([{ path: dshSession }])
    writeFileSync(join(home, '.dsh', 'snapshot-cleanup.json'), '{"enabled":true,"maxAgeDays":90}')
    expect((await cli.json('expire')).plan).toEqual([])
    writeFileSync(join(home, '.dsh', 'snapshot-cleanup.json'), '{"enabled":true,"maxAgeDays":0}')
    expect((await cli('expire', '--apply')).exitCode).toBe(65)
    expect(existsSync(dsh.folder())).toBe(true)
  })

  it('R03: expire keeps a session whose conversation is young, and one with a young copy in any folder', async () => {
    const { dsh, cli, project } = await world()
    ageAll(dsh.log(project, [{ seq: 1, text: 'yesterday', time: now - dayMs }]), now - 90 * dayMs)
    expect((await cli.json('expire', '--older-than', '30d')).plan).toEqual([])
    dsh.log(project, [{ seq: 1, text: 'old', time: now - 90 * dayMs }])
    ageAll(join(dsh.home, 'sessions'), now - 90 * dayMs)
    expect((await cli.json('expire', '--older-than', '30d')).plan).toHaveLength(1)
    const staged = dsh.put('.pending/k-00000000.before', 'x')
    ageAll(dsh.folder(), now - 90 * dayMs)
    ageAll(staged, now - 2 * dayMs)
    expect((await cli.json('expire', '--older-than', '30d')).plan).toEqual([])
  })

  it('R114: expire keeps a session with a restore that did not end', async () => {
    const { dsh, cli } = await world()
    dsh.put('journal-op-2.json', '{')
    ageAll(dsh.folder(), now - 60 * dayMs)
    const report = await cli.json('expire', '--older-than', '30d', '--apply')
    expect(report).toMatchObject({ plan: [], kept: [{ session: dshSession }] })
    expect(ids(report)).toContain('damaged-journal')
  })

  it('purge removes the sessions of a project and leaves their conversations', async () => {
    const { home, project, dsh, cli } = await world()
    expect(await cli.json('purge', project, '--apply')).toMatchObject({ plan: [{ path: dshSession }], exitCode: 0 })
    expect(existsSync(dsh.folder())).toBe(false)
    expect(existsSync(join(home, '.dsh', 'sessions', '--p--', dshSession, 'session.v3.jsonl'))).toBe(true)
  })

  it('R65: fork copies records, side files and markers, with modes and times, and links none of them', async () => {
    const { dsh, cli } = await world()
    chmodSync(join(dsh.folder(), '1', readdirSync(join(dsh.folder(), '1')).find((name) => name.endsWith('.before')) ?? ''), 0o444)
    dsh.put('journal-op-1.json', '{}')
    const before = snapshotTree(dsh.folder())
    expect(await cli.json('fork', dshSession, forkId)).toMatchObject({ exitCode: 0, linked: 0, copied: 7, present: 0 })
    const after = snapshotTree(dsh.folder(forkId))
    const plain = (tree: typeof before): unknown => Object.fromEntries(Object.entries(tree).filter(([path]) => path !== '.' && path !== 'journal-op-1.json').map(([path, node]) => [path, { ...node, mtime: node.mtime.slice(0, -6) }]))
    expect(plain(after)).toEqual(plain(before))
    expect(Object.values(after).every(({ type, nlink }) => type !== 'file' || nlink === 1)).toBe(true)
    expect(await cli.json('fork', dshSession, forkId)).toMatchObject({ exitCode: 0, copied: 0, present: 7 })
  })

  it('fork --at takes only what is before the message; a fork that says where it begins gets that much', async () => {
    const { project, dsh, cli } = await world()
    expect(await cli.json('fork', dshSession, forkId, '--at', 'msg-7')).toMatchObject({ exitCode: 0, summary: { checkpoints: 1, left: 1 } })
    expect(readdirSync(dsh.folder(forkId))).toEqual(['1', 'format', 'store'])
    const other = `${forkId.slice(0, -1)}3`
    dsh.log(project, [{ seq: 1, text: 'message 1', time: 1 }], other, { parentSession: dshSession, seedLength: 7 })
    await cli.json('fork', dshSession, other)
    expect(readdirSync(dsh.folder(other))).toEqual(['1', 'format', 'store'])
  })

  it('fork leaves what the target has already, and says where it differs', async () => {
    const { dsh, cli } = await world()
    dsh.put('1/a-ca978112.before', 'other\n', forkId)
    const report = await cli.json('fork', dshSession, forkId)
    expect(report).toMatchObject({ exitCode: 1, copied: 6, findings: [{ id: 'fork-differs', place: `${forkId}/1/a-ca978112.before` }] })
    expect(content(join(dsh.folder(forkId), '1', 'a-ca978112.before'))).toBe('other\n')
  })

  it('repair --journals shows what it would do, and does it with --apply', async () => {
    const { folder, workspace, root } = await extractDsh('gen2-bytes/journal-running')
    ageAll(root, now - dayMs)
    const cli = cliIn(folder)
    const preview = await cli.json('repair', '--journals', '--root', root)
    expect(preview.plan.map(({ action }) => action)).toEqual(['restore', 'delete', 'close'])
    expect(content(join(workspace, 'b.txt'))).toBe('B1\n')
    expect(await cli.json('repair', '--journals', '--root', root, '--apply')).toMatchObject({ exitCode: 0, summary: { closed: 1 } })
    expect([content(join(workspace, 'b.txt')), content(join(workspace, 'c.txt'))]).toEqual(['B0\n', null])
    expect((await cli('repair', '--roll-back', '--root', root)).exitCode).toBe(2)
  })

  it('run nightly and doctor know the store', async () => {
    const { cli } = await world()
    expect((await cli('run', 'nightly', '--apply')).exitCode).toBe(0)
    const doctor = await cli.json('doctor')
    expect(doctor.stores).toMatchObject([{ format: 'dsh-rewind', sessions: 1, retention: { days: 'never', source: 'default' } }])
  })

  it('R95 of two homes: a session that lies in both roots is not guessed', async () => {
    const { home, dsh } = await world()
    const other = new DshStore(join(home, 'other'))
    other.put('store', '2')
    const cli = cliIn(home, { env: { DSH_HOME: join(home, 'other') } })
    expect((await cli.json('list')).sessions).toHaveLength(2)
    expect((await cli('show', dshSession)).exitCode).toBe(2)
    expect(await cli.json('show', dshSession, '--root', dsh.home)).toMatchObject({ summary: { checkpoints: 2 } })
    expect(await cli.json('list', '--root', dsh.home, '--root', dsh.root)).toMatchObject({ summary: { sessions: 1 } })
  })

  it('R18: an empty or foreign root ends with 10', async () => {
    const home = await temporaryFolder()
    mkdirSync(join(home, 'x', 'y'), { recursive: true })
    expect((await cliIn(home)('status', '--root', join(home, 'x'))).exitCode).toBe(10)
    mkdirSync(join(home, '.dsh', 'rewind-snapshots', 'no session', 'z'), { recursive: true })
    expect((await cliIn(home)('verify')).exitCode).toBe(10)
  })
})

describe('every store of the corpus', () => {
  it.each(dshStores().map(({ name }) => name))('%s is listed, shown and verified without a change', async (name) => {
    const { folder, root, session } = await extractDsh(name)
    const before = snapshotTree(folder)
    const cli = cliIn(folder)
    if (session.members.length > 0) expect((await cli('show', session.id, '--root', root)).exitCode).toBe(0)
    if (readdirSync(root).length > 0) {
      expect((await cli('list', '--root', root)).exitCode).toBe(0)
      expect([0, 1, 12]).toContain((await cli('verify', '--root', root)).exitCode)
    }
    expect(snapshotTree(folder)).toEqual(before)
  })

  it('R30: the age sweep takes what the plugin takes, except what an unreadable journal keeps', async () => {
    const { folder, root } = await extractDsh('cleanup/age-sweep')
    const days = JSON.parse(readFileSync(join(folder, 'mtimes.json'), 'utf8')) as Record<string, number>
    for (const [path, age] of Object.entries(days)) ageAll(join(root, path), now - age * dayMs - 1)
    for (const [path, age] of Object.entries(days)) if (age < 40) ageAll(join(root, path), now - age * dayMs - 1)
    ageAll(join(root, 'pending-only', '.pending', 'k.before'), now - 2 * 3_600_000)
    ageAll(join(root, 'nested', '1', 'b.json'), now - 2 * 3_600_000)
    const outside = snapshotTree(join(folder, 'dsh-home', 'outside'))
    const report = await cliIn(folder).json('expire', '--root', root, '--older-than', '30d', '--apply')
    // The plugin keeps "active" as the session that asked, and removes "journal-only".
    expect(report.plan.map(({ path }) => path)).toEqual(['active', 'old'])
    expect(readdirSync(root).sort()).toEqual(['.hidden', 'edge29', 'fresh', 'journal-only', 'link', 'nested', 'pending-only', 'stray.txt'])
    expect(snapshotTree(join(folder, 'dsh-home', 'outside'))).toEqual(outside)
  })
})

describe('a damaged store', () => {
  it.each([
    ['damaged-record', (dsh: DshStore) => { dsh.put('7/half.json', '{"store":2') }],
    ['broken-link', (dsh: DshStore) => { dsh.link({ anchor: 7, call: 'l', file: '/p/x', ref: '9/x.json', time: 1 }) }],
    ['size-differs', (dsh: DshStore) => { dsh.put('1/a-ca978112.before', 'longer') }],
    ['unreferenced-backup', (dsh: DshStore) => { dsh.put('7/z-00000000.before', 'x') }],
    ['not-regular', (dsh: DshStore) => { symlinkSync('/etc', join(dsh.folder(), '9')) }],
    ['foreign-file', (dsh: DshStore) => { dsh.put('007/x.json', '{}') }],
    ['stale-temp', (dsh: DshStore) => { ageAll(dsh.put('store.tmp', '2'), now - 2 * dayMs) }],
    ['will-be-cleared', (dsh: DshStore) => { rmSync(join(dsh.folder(), 'format')) }],
    ['will-be-cleared', (dsh: DshStore) => { dsh.put('format', '2') }],
    ['open-journal', (dsh: DshStore) => { dsh.putJson('restore-journal-op-1.json', { version: 1, id: 'op-1', sessionId: 's', targetSeq: 1, state: 'running', actions: [] }) }],
    ['damaged-journal', (dsh: DshStore) => { dsh.put('journal-op-1.json', '') }],
    ['lossy-backup', (dsh: DshStore) => { dsh.text({ anchor: 7, call: 't', file: '/p/x', before: '\ufffd', time: 1 }) }],
    ['odd-record', (dsh: DshStore) => { dsh.putJson('7/t.json', { callId: 't', anchorSeq: 3, path: '/p/x', before: 'x', time: 1 }) }],
    ['identical-versions', (dsh: DshStore) => { for (let index = 20; index < 40; index += 1) dsh.bytes({ anchor: index, call: 'n', file: '/p/x', before: null, time: index }) }],
    ['over-cap', (dsh: DshStore) => { for (let index = 20; index < 120; index += 1) dsh.bytes({ anchor: index, call: 'n', file: `/p/${String(index)}`, before: 'x', time: index }) }],
    ['snapshot-without-message', (dsh: DshStore) => { dsh.bytes({ anchor: 8, call: 'n', file: '/p/x', before: 'x', time: 8 }) }],
    ['transcript-missing', (dsh: DshStore) => { rmSync(join(dsh.home, 'sessions', '--p--', dshSession), { recursive: true }) }],
  ])('has the finding %s, and nothing is lost or changed', async (id, damage) => {
    const { home, dsh, cli } = await world()
    damage(dsh)
    const before = snapshotTree(home)
    expect(ids(await cli.json('verify'))).toContain(id)
    expect(snapshotTree(home)).toEqual(before)
  })
})
