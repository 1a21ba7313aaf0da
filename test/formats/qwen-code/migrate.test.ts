import { execFileSync } from 'node:child_process'
import { existsSync, linkSync, lstatSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { agentsView, cliIn, now, type Cli } from '../../cli/world.js'
import { extractQwen } from '../../helpers/qwen-corpus.js'
import { openQwen, qwenName, QwenSession, qwenRoot, writeQwenHistory } from '../../helpers/qwen.js'
import { S1, S2, setTime, writeStoreFile } from '../../helpers/store.js'
import { snapshotTree, withoutTimes } from '../../helpers/tree.js'

const old = '2026-09-01T09:00:00.000Z'
const S3 = '33333333-3333-4333-8333-333333333333'

function cliOf(root: string): Cli {
  return cliIn(dirname(root))
}

describe('a store of the first weeks', () => {
  it('has nothing to bring over, and that is said and no failure', async () => {
    const root = await qwenRoot()
    const session = new QwenSession({ root, id: S1 })
    session.user('no record names a backup')
    session.save({ mtime: old })
    for (const version of [1, 2]) session.backup(qwenName('/home/u/notes/a.md', version), String(version), { mtime: old })
    const alone = new QwenSession({ root, id: S2 })
    alone.backup(qwenName('/home/u/notes/a.md', 1), 'x', { mtime: old })
    const before = snapshotTree(root)
    const report = await cliOf(root).json('migrate')
    expect(report).toMatchObject({ exitCode: 0, plan: [], kept: [], errors: [] })
    expect(report.findings).toMatchObject([
      { id: 'no-metadata', severity: 'info', session: S1, message: '2 backups, and no record of the transcript names any of them: the first releases that made backups kept none; nothing can be brought over, and they stay as they are' },
      { id: 'no-metadata', session: S2, message: '1 backups, and the session has no transcript in this store, which alone would name them; nothing can be brought over, and they stay as they are' },
    ])
    expect(snapshotTree(root)).toEqual(before)
    const view = agentsView(root)
    expect(await cliOf(root).json('migrate', '--apply')).toMatchObject({ exitCode: 0, plan: [] })
    expect(withoutTimes(agentsView(root))).toEqual(withoutTimes(view))
  })

  it('is told from one whose records cannot be read', async () => {
    const root = await qwenRoot()
    const session = new QwenSession({ root, id: S1 })
    session.user('first')
    session.save({ mtime: old, tail: '{"uuid":"x","type":"system","subtype":"file_history_snapshot","systemPayload":{"snapshots":[' })
    session.backup(qwenName('/home/u/notes/a.md', 1), 'x', { mtime: old })
    expect((await cliOf(root).json('migrate')).findings).toEqual([])
  })
})

describe('hard-linked forks', () => {
  const stat = (folder: string): { name: string; ino: number; mode: number; ms: number; text: string }[] =>
    readdirSync(folder).map((name) => {
      const { ino, mode, mtimeMs } = lstatSync(join(folder, name))
      return { name, ino, mode, ms: Math.floor(mtimeMs), text: readFileSync(join(folder, name), 'utf8') }
    })

  it('of 0.21 become copies: previewed, then every backup of the source is a file of its own with bytes, mode and time; once', async () => {
    const { root, home } = await extractQwen('hardlink-fork-0.21')
    const [fork, source] = ['a1388eaa-a226-4db8-be4f-1ac4b9524956', 'f89815b0-061a-482a-8338-b14a8b7485d3'].map((id) => join(root, 'file-history', id)) as [string, string]
    const before = stat(fork)
    const cli = cliIn(home)
    const tree = snapshotTree(home)
    const preview = await cli.json('migrate', '--now', '2026-12-01')
    expect(preview).toMatchObject({ applied: false, exitCode: 0, summary: { linked: 7, kept: 0 } })
    expect(preview.plan.map(({ action, path }) => [action, path])).toEqual(before.map(({ name }) => ['unlink', `file-history/f89815b0-061a-482a-8338-b14a8b7485d3/${name}`]))
    expect(snapshotTree(home)).toEqual(tree)
    const done = await cli.json('migrate', '--now', '2026-12-01', '--apply')
    expect(done).toMatchObject({ applied: true, exitCode: 0, errors: [], plan: preview.plan })
    expect(stat(fork)).toEqual(before)
    const after = stat(source)
    expect(after).toEqual(before.map((each, index) => ({ ...each, ino: after[index]?.ino })))
    expect([...readdirSync(source), ...readdirSync(fork)].map((name) => lstatSync(join(existsSync(join(source, name)) ? source : fork, name)).nlink)).toEqual(Array.from({ length: 14 }, () => 1))
    expect(await cli.json('migrate', '--now', '2026-12-01', '--apply')).toMatchObject({ plan: [], exitCode: 0 })
    expect((await cli.json('verify', '--now', '2026-12-01')).findings.filter(({ id }) => id === 'shared-inode')).toEqual([])
  })

  it('stay as they are while one of the sessions was just in use, also when only the other one is named', async () => {
    const root = await qwenRoot()
    const files = new Map([['a.md', Buffer.from('one')]])
    const session = writeQwenHistory({ root, id: S1, start: Date.parse(old) }, [{ text: 'go', files }])
    setTime(session.path, now - 1000)
    const fork = new QwenSession({ root, id: S2 })
    fork.record({ type: 'user', forkedFrom: { sessionId: S1, messageUuid: 'x' }, message: { parts: [] } })
    fork.save({ mtime: old })
    const name = qwenName('/home/u/notes/a.md', 1)
    mkdirSync(join(root, 'file-history', S2))
    linkSync(join(root, 'file-history', S1, name), join(root, 'file-history', S2, name))
    const kept = await cliOf(root).json('migrate', S2, '--apply')
    expect(kept).toMatchObject({ plan: [], exitCode: 0, kept: [{ session: S1, reason: expect.stringContaining(`session ${S1}: it changed within the quiet period`) as string }] })
    expect(lstatSync(join(root, 'file-history', S1, name)).nlink).toBe(2)
  })
})

const [from, to] = ['/w/app', '/v/new place']

interface Moved {
  readonly root: string
  readonly session: QwenSession
  readonly cli: Cli
}

/** A session of /w/app with companions, subagents and every kind of key, an archived one below it, and one of a neighbour whose folder has the same name. */
async function moving(): Promise<Moved> {
  const root = await qwenRoot()
  const session = new QwenSession({ root, id: S1, project: from, start: Date.parse(old) })
  const name = (path: string): string => qwenName(path, 1)
  session.user('look at "/w/app" and \\"cwd\\":\\"/w/app\\"')
  session.snapshots({ promptId: session.promptId(0), files: { 'a.md': name('/w/app/a.md'), '/w/app/sub/b.md': name('/w/app/sub/b.md'), '/w/app2/c.md': null } })
  session.record({ type: 'tool_result', message: { parts: [{ text: '/w/app/a.md' }] }, toolCallResult: { resultDisplay: '"/w/app/a.md"' } })
  session.record({ type: 'assistant', cwd: '/w/app/sub', message: { role: 'model', parts: [{ text: 'done' }] } })
  session.save({ mtime: old })
  for (const path of ['/w/app/a.md', '/w/app/sub/b.md']) session.backup(name(path), path, { mtime: old })
  const at = { mtime: old }
  writeStoreFile(root, `projects/-w-app/chats/${S1}.runtime.json`, JSON.stringify({ schema_version: 1, pid: 2147483647, session_id: S1, work_dir: '/w/app', near: '/w/app2' }), at)
  writeStoreFile(root, `projects/-w-app/chats/${S1}.worktree.json`, JSON.stringify({ path: '/w/app/.qwen/worktrees/x' }), at)
  writeStoreFile(root, `projects/-w-app/subagents/${S1}/agent-1.jsonl`, `{"type":"user","cwd":"/w/app"}\n`, at)
  const archived = new QwenSession({ root, id: S2, project: '/w/app/sub', start: Date.parse(old) })
  archived.turn(0, 'in a folder below')
  archived.save({ archived: true, mtime: old })
  const neighbour = new QwenSession({ root, id: S3, project: '/w-app', start: Date.parse(old) })
  neighbour.turn(0, 'the same slug', { '/w/app/foreign.md': null })
  neighbour.save({ mtime: old })
  return { root, session, cli: cliOf(root) }
}

function linesOf(path: string): Record<string, unknown>[] {
  return readFileSync(path, 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line) as Record<string, unknown>)
}

describe('a project that moved', () => {
  it('R45, R100: transcripts, companions and keys go along by whole names; neighbours, texts and backups keep every byte', async () => {
    const { root, session, cli } = await moving()
    const before = agentsView(root)
    const was = linesOf(session.path)
    const preview = await cli.json('migrate', '--move', from, to)
    expect(preview).toMatchObject({ exitCode: 0, applied: false, summary: { migrations: 2, matched: 2 } })
    expect(agentsView(root)).toEqual(before)
    expect(await cli.json('migrate', '--move', from, to, '--apply')).toMatchObject({ exitCode: 0, errors: [], kept: [], plan: preview.plan })

    const files = Object.entries(agentsView(root)).filter(([, { type }]) => type === 'file').map(([path]) => path)
    expect(files.filter((path) => path.startsWith('projects/')).sort()).toEqual([
      `projects/-v-new-place-sub/chats/archive/${S2}.jsonl`,
      `projects/-v-new-place/chats/${S1}.jsonl`,
      `projects/-v-new-place/chats/${S1}.runtime.json`,
      `projects/-v-new-place/chats/${S1}.worktree.json`,
      `projects/-v-new-place/subagents/${S1}/agent-1.jsonl`,
      `projects/-w-app/chats/${S3}.jsonl`,
    ])
    const [first, snapshot, result, answer] = linesOf(join(root, `projects/-v-new-place/chats/${S1}.jsonl`))
    expect(first).toEqual({ ...was[0], cwd: to })
    const tracked = (snapshot as { systemPayload: { snapshots: { trackedFileBackups: object }[] } }).systemPayload.snapshots[0]?.trackedFileBackups ?? {}
    expect(Object.keys(tracked)).toEqual(['a.md', `${to}/sub/b.md`, '/w/app2/c.md'])
    expect(result).toEqual({ ...was[2], cwd: to })
    expect(answer).toEqual({ ...was[3], cwd: `${to}/sub` })
    expect(JSON.parse(readFileSync(join(root, `projects/-v-new-place/chats/${S1}.runtime.json`), 'utf8'))).toMatchObject({ work_dir: to, near: '/w/app2', pid: 2147483647 })
    expect(JSON.parse(readFileSync(join(root, `projects/-v-new-place/chats/${S1}.worktree.json`), 'utf8'))).toEqual({ path: `${to}/.qwen/worktrees/x` })
    expect(readFileSync(join(root, `projects/-v-new-place/subagents/${S1}/agent-1.jsonl`), 'utf8')).toBe(`{"type":"user","cwd":"${to}"}\n`)
    const after = agentsView(root)
    for (const [path, node] of Object.entries(before)) if (path.startsWith('file-history/') || path.includes(S3)) expect(after[path], path).toEqual(node)
  })

  it('the agent finds the sessions: by the folder named for the new place, and the cwd of the first record', async () => {
    const { root, cli } = await moving()
    await cli.json('migrate', '--move', from, to, '--apply')
    for (const [id, folder] of [[S1, to], [S2, `${to}/sub`]] as const) {
      const [transcript = ''] = readdirSync(join(root, 'projects'), { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith(`${id}.jsonl`))
      expect(transcript.split('/')[0]).toBe(folder.replace(/[^A-Za-z0-9]/g, '-'))
      expect(linesOf(join(root, 'projects', transcript))[0]).toMatchObject({ cwd: folder, sessionId: id })
    }
    expect((await cli.json('list')).sessions).toMatchObject([{ id: S1, project: to }, { id: S2, project: `${to}/sub` }, { id: S3, project: '/w-app' }])
    expect((await cli.json('verify')).exitCode).toBe(0)
  })

  it('twice is once, a move back gives every byte back, and so does the trash', async () => {
    const { root, cli } = await moving()
    const before = agentsView(root)
    await cli.json('migrate', '--move', from, to, '--apply')
    const once = agentsView(root)
    expect(await cli.json('migrate', '--move', from, to, '--apply')).toMatchObject({ exitCode: 0, plan: [], summary: { matched: 2 } })
    expect(withoutTimes(agentsView(root))).toEqual(withoutTimes(once))
    const back = await cli.json('migrate', '--move', to, from, '--apply')
    const contents = (view: typeof before): unknown => Object.entries(view).filter(([, { type }]) => type === 'file')
    expect(contents(agentsView(root))).toEqual(contents(before))
    await cli.json('trash', 'restore', back.runId ?? '')
    expect(contents(agentsView(root))).toEqual(contents(once))
  })

  it('R101: where no session is of either place, that is no success', async () => {
    const { cli } = await moving()
    expect((await cli('migrate', '--move', '/w/ap', '/v/new')).exitCode).toBe(1)
    expect((await cli('migrate', '--move', '/w/app/', '/v/new')).exitCode).toBe(0)
  })

  it('another session of the same id in the new place, or two files that would be one, keep the session where it is', async () => {
    const { root, session, cli } = await moving()
    writeStoreFile(root, `projects/-v-new-place/chats/${S1}.runtime.json`, '{"pid":2147483647}', { mtime: old })
    session.snapshots({ promptId: session.promptId(1), files: { 'a.md': null } })
    const before = agentsView(root)
    const kept = await cli.json('migrate', S1, '--move', from, to, '--apply')
    expect(kept).toMatchObject({ plan: [], kept: [{ session: S1, reason: `another file stands at projects/-v-new-place/chats/${S1}.runtime.json` }] })
    session.snapshots({ promptId: session.promptId(2), files: { 'x.md': null, '/v/new place/x.md': null } })
    session.save({ mtime: old })
    expect((await cli.json('migrate', S1, '--move', from, to)).kept).toEqual([{ session: S1, reason: 'it tracks x.md and /v/new place/x.md, which would be one file' }])
    expect(Object.keys(agentsView(root))).toEqual(Object.keys(before))
  })

  it('a transcript outside of the store is not written to, and prompts of the project are told to stay', async () => {
    const { root, cli } = await moving()
    // printf %s /w/app | sha256sum
    const hash = 'ece9371bedcbc1139e32f73cc67f0e41d989923d6c820725b6bc0a499922f610'
    writeStoreFile(root, `tmp/${hash}/logs.json`, '[]', { mtime: old })
    expect((await cli.json('migrate', '--move', from, to)).findings).toContainEqual(expect.objectContaining({ id: 'memory-left', session: S1 }))
    const runtime = await qwenRoot()
    renameSync(join(root, 'projects'), join(runtime, 'projects'))
    const report = await cli.json('migrate', '--move', from, to, '--runtime-root', runtime, '--apply')
    expect(report.plan).toEqual([])
    expect(report.kept).toContainEqual({ session: S1, reason: `its transcript ${join(runtime, 'projects/-w-app/chats', `${S1}.jsonl`)} lies outside of the store, where nothing is written` })
  })

  it('corpus: after project and sessions moved, every checkpoint restores the tree at the new place as it did at the old one', async () => {
    const { root, home, project } = await extractQwen('basic')
    const cli = cliIn(home)
    const [id = ''] = openQwen(root).inventory().sessions.map((session) => session.id)
    const filesOf = async (place: string): Promise<unknown> =>
      ((await cli.json('show', id)).checkpoints as { id: string; restorable: boolean; files: { path: string; state: string; backup: string }[] }[]).map((each) => ({
        ...each,
        files: each.files.map((file) => ({ ...file, path: file.path.replace(place, '<project>') })),
      }))
    const before = await filesOf(project)
    const target = `${home}/elsewhere/project`
    mkdirSync(dirname(target))
    if (existsSync(project)) renameSync(project, target)
    else mkdirSync(target)
    expect(await cli.json('migrate', '--move', project, target, '--apply', '--now', '2027-06-01T00:00:00Z')).toMatchObject({ exitCode: 0, errors: [], kept: [] })
    expect(await filesOf(target)).toEqual(before)
    const [checkpoint] = before as { id: string }[]
    expect(await cli.json('rewind', id, checkpoint?.id ?? '', '--scope', 'code', '--apply', '--now', '2027-06-01T00:00:00Z')).toMatchObject({ exitCode: 0, failed: [], skipped: [] })
    expect(existsSync(project)).toBe(false)
  })
})

describe('a migration that is killed', () => {
  const bin = resolve(import.meta.dirname, '../../../bin/rewind-admin.js')
  /** Dies by SIGKILL just before or after the n-th act on the disk below the store. */
  const killer = `
    import fs from 'node:fs'
    import { syncBuiltinESMExports } from 'node:module'
    const [at, when] = process.env.KILL_AT.split(' ')
    let count = 0
    for (const name of ['renameSync', 'linkSync', 'unlinkSync', 'rmdirSync', 'mkdirSync', 'rmSync', 'fchmodSync']) {
      const act = fs[name]
      fs[name] = (...args) => {
        count += 1
        if (count !== Number(at)) return act(...args)
        if (when === 'after') act(...args)
        process.kill(process.pid, 'SIGKILL')
        for (;;) {}
      }
    }
    syncBuiltinESMExports()
    process.on('exit', () => { fs.writeFileSync(process.env.KILL_COUNT, String(count)) })
  `

  it('at any act is finished by the next run, and nothing is lost', { timeout: 120_000 }, async () => {
    const contents = (root: string): Record<string, unknown> =>
      Object.fromEntries(Object.entries(withoutTimes(agentsView(root))).filter(([path, { type }]) => type === 'file' || path.startsWith('projects/')))
    const run = (root: string, kill: string): number | undefined => {
      const home = dirname(root)
      writeFileSync(join(home, 'killer.mjs'), killer)
      const counted = join(home, 'count')
      rmSync(counted, { force: true })
      const env = { PATH: process.env.PATH, HOME: home, KILL_AT: kill, KILL_COUNT: counted }
      try {
        execFileSync(process.execPath, ['--import', join(home, 'killer.mjs'), bin, 'migrate', '--move', from, to, '--apply', '--root', root, '--now', new Date(now).toISOString()], { env, stdio: 'pipe' })
      } catch (error) {
        expect((error as { signal: unknown }).signal).toBe('SIGKILL')
        return undefined
      }
      return Number(readFileSync(counted, 'utf8'))
    }
    const whole = await moving()
    const acts = run(whole.root, '0 never') ?? 0
    const wanted = contents(whole.root)
    expect(acts).toBeGreaterThan(20)
    const points = Array.from({ length: 10 }, (_, index) => 1 + Math.floor(((index + 0.5) * acts) / 10))
    for (const [index, at] of points.entries()) {
      const name = `act ${String(at)} of ${String(acts)}`
      const { root, cli } = await moving()
      expect(run(root, `${String(at)} ${index % 2 === 0 ? 'before' : 'after'}`), name).toBeUndefined()
      // What is left is read as before, by ours as by the agent: the session is there with its checkpoint.
      expect((await cli.json('show', S1)).checkpoints, name).toHaveLength(1)
      expect(await cli.json('migrate', '--move', from, to, '--apply'), name).toMatchObject({ exitCode: 0, errors: [], kept: [] })
      expect(contents(root), name).toEqual(wanted)
    }
  })
})
