import { createHash } from 'node:crypto'
import { existsSync, linkSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { agentsView, cliIn, now, type Cli, type Envelope } from '../../cli/world.js'
import { extractQwen } from '../../helpers/qwen-corpus.js'
import { QwenSession, qwenName, qwenRoot, writeQwenHistory } from '../../helpers/qwen.js'
import { S1, S2, setTime, userLine, writeStoreFile, writeTranscript } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temp.js'

const old = '2026-09-01T09:00:00.000Z'

function findings(report: Envelope, id: string): Readonly<Record<string, unknown>>[] {
  return report.findings.filter((found) => found.id === id)
}

function cliOf(root: string, env: Readonly<Record<string, string>> = {}): Cli {
  return cliIn(dirname(root), { env })
}

/** A session of an old day with one backup; its files are in a working folder of its own. */
async function history(id = S1, project?: string): Promise<{ root: string; session: QwenSession; project: string }> {
  const root = await qwenRoot()
  const folder = project ?? (await temporaryFolder())
  const bytes = (text: string): Buffer => Buffer.from(text)
  const states = [
    { text: 'start the list', files: new Map([['list.md', null]]) },
    { text: 'add the wren', files: new Map([['list.md', bytes('robin\n')]]) },
    { text: 'is it complete?', files: new Map([['list.md', bytes('robin\nwren\n')], ['raw.bin', Buffer.from([0xff, 0x01])]]) },
  ]
  const session = writeQwenHistory({ root, id, project: folder, start: Date.parse(old) }, states)
  for (const path of [session.path, join(root, 'file-history', id)]) setTime(path, old)
  return { root, session, project: folder }
}

describe('stores are found', () => {
  it('of every format on a machine, and a root of Qwen Code is no root of Claude Code', async () => {
    const { root } = await history()
    const home = dirname(root)
    writeTranscript(join(home, '.claude'), '-p', S2, [userLine('m', { session: S2 })])
    const all = await cliIn(home).json('status')
    expect((all.stores as { format: string }[]).map(({ format }) => format)).toEqual(['claude-code', 'qwen-code'])
    const one = await cliIn(home).json('list', '--root', root)
    expect(one.sessions).toMatchObject([{ id: S1, checkpoints: 3, backups: 3, live: false }])
  })

  it('where QWEN_HOME says, and a folder that is none is exit 10', async () => {
    const { root } = await history()
    const home = await temporaryFolder()
    expect((await cliIn(home, { env: { QWEN_HOME: root } }).json('list')).sessions).toHaveLength(1)
    expect((await cliIn(home)('list', '--store', 'qwen-code')).exitCode).toBe(10)
  })
})

describe('rewind and redo', () => {
  it('by prompt id: the files go back and forth, and what the agent would leave is said path by path', async () => {
    const { root, session, project } = await history()
    writeFileSync(join(project, 'list.md'), 'robin\nWREN\n', { mode: 0o644 })
    writeFileSync(join(project, 'raw.bin'), Buffer.from([0xfe, 0x01]), { mode: 0o644 })
    // Edited with an old time: the agent takes the file for the one that it backed up.
    utimesSync(join(project, 'list.md'), new Date('2020-01-01'), new Date('2020-01-01'))
    const cli = cliOf(root)
    const words = ['rewind', S1, session.promptId(3), '--scope', 'code']
    const preview = await cli.json(...words)
    expect(preview).toMatchObject({
      exitCode: 0,
      applied: false,
      changes: [
        { path: join(project, 'list.md'), action: 'restore', note: 'the agent would leave this file as it is, because it is older than its backup' },
        { path: join(project, 'raw.bin'), action: 'restore', note: 'the agent would leave this file as it is, because it compares texts and not bytes' },
      ],
    })
    expect((await cli(...words)).stdout).toContain('differs from the agent')
    expect(await cli.json(...words, '--apply')).toMatchObject({ exitCode: 0, applied: true })
    expect(readFileSync(join(project, 'list.md'), 'utf8')).toBe('robin\nwren\n')
    expect(await cli.json('redo', S1, '--apply')).toMatchObject({ exitCode: 0 })
    expect(readFileSync(join(project, 'list.md'), 'utf8')).toBe('robin\nWREN\n')
  })

  it('both: the files go back and the conversation goes on in a new session, which the agent can resume', async () => {
    const { root, session, project } = await history()
    writeFileSync(join(project, 'list.md'), 'robin\nwren\nheron\n')
    const cli = cliOf(root)
    const report = await cli.json('rewind', S1, session.promptId(2), '--apply')
    const made = (report.conversation as { session: string; prompt: string }).session
    expect(report).toMatchObject({ exitCode: 0, applied: true, conversation: { prompt: 'add the wren' } })
    expect(readFileSync(join(project, 'list.md'), 'utf8')).toBe('robin\n')
    expect((await cli.json('show', made)).checkpoints).toMatchObject([{ aliases: [`${made}########1`], text: 'start the list', restorable: true }])
    expect((await cli.json('verify')).exitCode).toBe(0)
  })

  it('R13, R40: a message of which nothing was recorded is no match', async () => {
    const { root } = await history()
    expect((await cliOf(root)('rewind', S1, 'nothing')).exitCode).toBe(1)
  })
})

describe('verify', () => {
  it('the damaged store: each problem has its finding, and nothing changes', async () => {
    const { root, home } = await extractQwen('damaged')
    const before = agentsView(root)
    const report = await cliIn(home).json('verify', '--now', '2026-12-01')
    expect(report.exitCode).toBe(1)
    // The names are hashes of paths on the machine that recorded them, and its folders are open to all.
    const found = report.findings.map(({ id }) => id).filter((id) => id !== 'path-hash-differs' && id !== 'wide-mode')
    expect(found.sort()).toEqual(
      ['empty-backup', 'foreign-file', 'missing-backup', 'not-regular', 'odd-record', 'orphan-backups', 'stale-temp', 'torn-tail', 'unreferenced-backup', 'unsafe-name'],
    )
    expect(agentsView(root)).toEqual(before)
  })

  it('R40: backups of which no line speaks are unreferenced, first versions too, and never corrupt', async () => {
    const { root, session } = await history()
    session.lines.splice(0, session.lines.length)
    session.user('a store of the first weeks')
    session.save({ mtime: old })
    const report = await cliOf(root).json('verify')
    expect(report.exitCode).toBe(0)
    expect(findings(report, 'unreferenced-backup')).toHaveLength(3)
    expect(findings(report, 'no-checkpoints')).toHaveLength(1)
    expect((await cliOf(root).json('cap', '--max', '1', '--apply')).plan).toEqual([])
  })

  it('R63: prompt ids of another session are refused by the agent, and that is an error', async () => {
    const { root, session } = await history()
    const copied = new QwenSession({ root, id: S2, project: session.project })
    copied.lines.push(...session.lines.map((line) => line.replace(`"sessionId":"${S1}"`, `"sessionId":"${S2}"`)))
    copied.save({ mtime: old })
    for (const name of readdirSync(join(root, 'file-history', S1))) {
      mkdirSync(join(root, 'file-history', S2), { recursive: true })
      linkSync(join(root, 'file-history', S1, name), join(root, 'file-history', S2, name))
    }
    const report = await cliOf(root).json('verify')
    expect(report.exitCode).toBe(1)
    expect(findings(report, 'unreachable-checkpoints')).toMatchObject([{ session: S2 }])
    expect(findings(report, 'shared-inode')).toHaveLength(2)
  })

  it('what only a dead branch names is told apart', async () => {
    const { root, session } = await history()
    const kept = session.lines.findIndex((line) => line.includes('add the wren'))
    session.continueAt((JSON.parse(session.lines[kept - 1] ?? '{}') as { uuid: string }).uuid)
    session.system('rewind', { truncatedCount: 2 })
    session.turn(8, 'another way')
    session.save({ mtime: old })
    const report = await cliOf(root).json('verify')
    expect(findings(report, 'dropped-backup')).toHaveLength(3)
    expect(report.exitCode).toBe(0)
    const cap = await cliOf(root).json('cap', '--apply')
    expect(cap).toMatchObject({ exitCode: 0, summary: { backups: 3 } })
    expect((await cliOf(root).json('verify')).exitCode).toBe(0)
  })
})

describe('repair', () => {
  it('--unlink gives the source a file of its own and leaves the fork the old one; bytes, mode and time stay', async () => {
    const { root, home } = await extractQwen('hardlink-fork-0.21')
    const [fork, source] = ['a1388eaa-a226-4db8-be4f-1ac4b9524956', 'f89815b0-061a-482a-8338-b14a8b7485d3'].map((id) => join(root, 'file-history', id)) as [string, string]
    const stat = (folder: string): { name: string; ino: number; mode: number; ms: number; text: string }[] =>
      readdirSync(folder).map((name) => {
        const { ino, mode, mtimeMs } = lstatSync(join(folder, name))
        return { name, ino, mode, ms: Math.floor(mtimeMs), text: readFileSync(join(folder, name), 'utf8') }
      })
    const before = stat(fork)
    expect(stat(source)).toEqual(before)
    const cli = cliIn(home)
    expect(await cli.json('repair', '--unlink')).toMatchObject({ applied: false, summary: { linked: 7 }, exitCode: 0 })
    expect(stat(source)).toEqual(before)
    expect(await cli.json('repair', '--unlink', '--apply')).toMatchObject({ exitCode: 0, summary: { done: 7 } })
    expect(stat(fork)).toEqual(before)
    const after = stat(source)
    expect(after).toEqual(before.map((each, index) => ({ ...each, ino: after[index]?.ino })))
    expect(after.filter(({ ino }) => before.some((each) => each.ino === ino))).toEqual([])
    expect(readdirSync(source).map((name) => lstatSync(join(source, name)).nlink)).toEqual(readdirSync(source).map(() => 1))
    expect(findings(await cli.json('verify'), 'shared-inode')).toEqual([])
    expect(await cli.json('repair', '--unlink', '--apply')).toMatchObject({ plan: [], exitCode: 0 })
  })

  it('--unlink is refused where the agent never writes into a backup', async () => {
    const home = await temporaryFolder()
    writeTranscript(join(home, '.claude'), '-p', S1, [userLine('m')])
    expect((await cliIn(home)('repair', '--unlink')).exitCode).toBe(2)
  })

  it('--transcripts ends a cut last line and keeps every other byte', async () => {
    const { root, session } = await history()
    session.save({ mtime: old, tail: '{"uuid":"cut' })
    const bytes = readFileSync(session.path)
    expect(await cliOf(root).json('repair', '--transcripts', '--apply')).toMatchObject({ exitCode: 0, summary: { done: 1 } })
    expect(readFileSync(session.path)).toEqual(Buffer.concat([bytes, Buffer.from('\n')]))
  })
})

describe('cap, expire, purge and the trash', () => {
  it('cap drops what no newer snapshot names, first versions too, and every target that is left can still be gone back to', async () => {
    const { root, home } = await extractQwen('cap')
    const cli = cliIn(home)
    const [id = ''] = readdirSync(join(root, 'file-history'))
    const report = await cli.json('cap', '--max', '20', '--now', '2026-12-24', '--apply')
    expect(report).toMatchObject({ exitCode: 0, applied: true })
    const { checkpoints } = await cli.json('show', id)
    expect((checkpoints as { restorable: boolean }[]).map(({ restorable }) => restorable).slice(80)).toEqual(Array.from({ length: 20 }, () => true))
    expect(existsSync(join(root, '.file-history-cleanup.lock'))).toBe(false)
    await cli.json('trash', 'restore', report.runId ?? '')
    expect((await cli.json('verify')).exitCode).toBe(0)
  })

  it('R13: a session in use stays although its folder is old; an old one goes whole and comes back as it was', async () => {
    const { root, session } = await history()
    session.save({ mtime: now - 86_400_000 })
    setTime(join(root, 'file-history', S1), old)
    const cli = cliOf(root)
    expect(await cli.json('expire', '--apply', '--no-clock-check')).toMatchObject({ plan: [], kept: [{ session: S1 }] })
    session.save({ mtime: old })
    // No process can have this pid.
    const gone = '{"pid":2147483647}'
    writeStoreFile(root, `projects/-x/chats/${S2}.runtime.json`, gone, { mtime: old })
    writeStoreFile(root, `${session.folder.slice(root.length + 1)}/${S1}.runtime.json`, gone, { mtime: old })
    const before = agentsView(root)
    const report = await cli.json('expire', '--apply', '--no-clock-check', '--no-grace')
    expect(report.plan.map((item) => item.session).sort()).toEqual([S1, S2])
    expect(readdirSync(join(root, 'file-history'))).toEqual([])
    expect(existsSync(session.folder)).toBe(false)
    expect((await cli.json('trash', 'restore', report.runId ?? '')).exitCode).toBe(0)
    // The agent's lock stood in the root for a moment, as in every cleanup of its own.
    expect(agentsView(root)).toEqual({ ...before, '.': expect.anything() as unknown })
  })

  it('R105: while the agent itself cleans up nothing is removed', async () => {
    const { root } = await history()
    writeStoreFile(root, '.file-history-cleanup.lock', '')
    const result = await cliOf(root)('expire', '--apply', '--no-clock-check', '--now', new Date(lstatSync(join(root, '.file-history-cleanup.lock')).mtimeMs).toISOString())
    expect(result.exitCode).toBe(11)
    expect(result.stderr).toContain('housekeeping')
    expect(readdirSync(join(root, 'file-history'))).toEqual([S1])
  })

  it('what has its transcript outside of the store is kept by expire and purge, with the reason', async () => {
    const { root, session, project } = await history()
    const runtime = await qwenRoot()
    const outside = session.save({ mtime: old, path: join(runtime, 'projects', '-n', 'chats', `${S1}.jsonl`) })
    rmSync(join(root, 'projects'), { recursive: true })
    const cli = cliOf(root)
    for (const words of [['expire', '--no-clock-check'], ['purge', project]]) {
      const report = await cli.json(...words, '--runtime-root', runtime, '--apply')
      expect(report.plan).toEqual([])
      expect(report.kept).toMatchObject([{ session: S1, reason: `its transcript ${outside} lies outside of the store, where nothing is removed; delete the session with the agent itself` }])
    }
    expect(readdirSync(join(root, 'file-history', S1))).toHaveLength(3)
    expect((await cli.json('show', S1, '--runtime-root', runtime)).checkpoints).toHaveLength(3)
  })

  it('purge takes both states of a session and its side files; the prompts of the project go only with --shared', async () => {
    const { root, session, project } = await history()
    const archived = new QwenSession({ root, id: S2, project })
    archived.turn(1, 'one')
    archived.save({ archived: true, mtime: old })
    writeStoreFile(root, `${session.folder.slice(root.length + 1)}/${S1}.ledger.jsonl`, '{}\n', { mtime: old })
    const logs = `tmp/${createHash('sha256').update(project).digest('hex')}/logs.json`
    writeStoreFile(root, logs, JSON.stringify([{ sessionId: S1, message: 'add the wren' }]))
    const cli = cliOf(root)
    const preview = await cli.json('purge', project)
    expect(preview.summary.shared).toMatchObject([{ path: logs, count: 1 }])
    expect(await cli.json('purge', project, '--shared', '--apply')).toMatchObject({ exitCode: 0 })
    expect(existsSync(session.folder)).toBe(false)
    expect(readdirSync(join(root, 'file-history'))).toEqual([])
    expect(readFileSync(join(root, logs), 'utf8')).toBe('[]')
  })

  it('R117, R118: a transcript in use and an archived one of one id are one unit: listed once, kept together by a live process, gone and back together', async () => {
    const { root, session } = await history()
    const archived = session.save({ archived: true, mtime: old })
    const cli = cliOf(root)
    expect((await cli.json('list')).sessions).toMatchObject([{ id: S1, checkpoints: 3 }])
    const runtime = `${session.folder.slice(root.length + 1)}/archive/${S1}.runtime.json`
    writeStoreFile(root, runtime, JSON.stringify({ pid: process.pid, session_id: S1 }), { mtime: old })
    const words = ['expire', '--apply', '--no-clock-check', '--no-grace']
    expect(await cli.json(...words)).toMatchObject({ plan: [], kept: [{ session: S1, reason: expect.stringContaining(`open in process ${String(process.pid)}`) as string }] })
    writeStoreFile(root, runtime, '{"pid":2147483647}', { mtime: old })
    const before = agentsView(root)
    const report = await cli.json(...words)
    expect(report.plan).toMatchObject([{ session: S1 }])
    expect([existsSync(session.path), existsSync(archived), readdirSync(join(root, 'file-history'))]).toEqual([false, false, []])
    await cli.json('trash', 'restore', report.runId ?? '')
    expect(agentsView(root)).toEqual({ ...before, '.': expect.anything() as unknown })
  })

  it('a folder with foreign content stays, and so does the foreign content', async () => {
    const { root, session } = await history()
    const foreign = join(root, 'file-history', S1, 'README')
    writeFileSync(foreign, 'mine')
    setTime(foreign, old)
    await cliOf(root).json('expire', '--apply', '--no-clock-check', '--no-grace')
    expect(readdirSync(join(root, 'file-history', S1))).toEqual(['README'])
    expect(existsSync(session.path)).toBe(false)
  })
})

it('doctor and the nightly job work on the store as on any other', async () => {
  const { root } = await history()
  const cli = cliOf(root)
  expect(await cli.json('doctor')).toMatchObject({ exitCode: 0, stores: [{ format: 'qwen-code', sessions: 1, retention: { days: 30 } }] })
  expect(await cli.json('run', 'nightly', '--apply')).toMatchObject({ exitCode: 0 })
})

it('names of the helper are the digests that the agent takes', () => {
  // printf %s /home/u/notes/a.md | sha256sum
  expect(qwenName('/home/u/notes/a.md', 1)).toBe('b6001c86ace16e89@v1')
})
