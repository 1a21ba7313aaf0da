import { existsSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { extractStore, corpusStores } from '../../helpers/corpus.js'
import { openStore, storeTree } from '../../helpers/removal.js'
import { H, S1, S2, emptyRoot, snap, delta, userLine, writeBackup, writeTranscript } from '../../helpers/store.js'
import { cliIn } from '../../cli/world.js'

const hour = 3_600_000
const old = { mtime: Date.parse('2026-11-20T00:00:00Z') }

/** A session of /w/app with a relative and an absolute key, a neighbour /w/app2, and a mention of the folder in a text. */
async function scene(): Promise<{ root: string; home: string }> {
  const root = await emptyRoot()
  const lines = [
    JSON.stringify({ type: 'user', uuid: 'm1', parentUuid: null, sessionId: S1, cwd: '/w/app', timestamp: '2026-11-20T00:00:00.000Z', message: { role: 'user', content: 'look at "/w/app" and \\"cwd\\":\\"/w/app\\"' } }),
    snap('m1', { 'a.txt': `${H}@v1`, '/w/app/sub/b.txt': null, '/w/app2/c.txt': null }, '2026-11-20T00:00:00.000Z'),
    delta('m1', 'm1', '/w/app/d.txt', { backupFileName: `${H}@v2`, version: 2, backupTime: '2026-11-20T00:00:00.000Z', realParentDir: '/w/app' }),
    userLine('m2', { parent: 'm1', cwd: '/w/app/sub' }),
  ]
  writeTranscript(root, '-w-app', S1, lines, old)
  writeBackup(root, S1, `${H}@v1`, 'one', old)
  writeBackup(root, S1, `${H}@v2`, 'two', old)
  writeTranscript(root, '-w-app2', S2, [JSON.stringify({ type: 'user', uuid: 'n1', parentUuid: null, sessionId: S2, cwd: '/w/app2', timestamp: '2026-11-20T00:00:00.000Z', message: { role: 'user', content: 'x' } })], old)
  return { root, home: join(root, '..') }
}

describe('a project that moved', () => {
  test('R45: paths of the project are changed by whole names; a neighbour, a text and the backups keep every byte', async () => {
    const { root, home } = await scene()
    const cli = cliIn(home)
    const before = storeTree(root)
    expect((await cli.json('migrate', '--move', '/w/app', '/v/new', '--root', root)).exitCode).toBe(0)
    expect(storeTree(root)).toEqual(before)

    const applied = await cli.json('migrate', '--move', '/w/app', '/v/new', '--root', root, '--apply')
    expect(applied).toMatchObject({ exitCode: 0, errors: [], kept: [] })
    expect(existsSync(join(root, 'projects/-w-app'))).toBe(false)
    const lines = readFileSync(join(root, `projects/-v-new/${S1}.jsonl`), 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line) as Record<string, never>)
    expect(lines[0]).toMatchObject({ cwd: '/v/new', message: { content: 'look at "/w/app" and \\"cwd\\":\\"/w/app\\"' } })
    expect(Object.keys((lines[1] as unknown as { snapshot: { trackedFileBackups: object } }).snapshot.trackedFileBackups)).toEqual(['a.txt', '/v/new/sub/b.txt', '/w/app2/c.txt'])
    expect(lines[2]).toMatchObject({ trackingPath: '/v/new/d.txt', backup: { realParentDir: '/v/new' } })
    const after = storeTree(root)
    for (const path of [`file-history/${S1}/${H}@v1`, `projects/-w-app2/${S2}.jsonl`]) expect(after[path]).toEqual(before[path])
    expect((await cli.json('show', S1, '--root', root)).summary).toMatchObject({ project: '/v/new' })
    expect((await cli.json('migrate', '--move', '/w/app', '/v/new', '--root', root)).plan).toEqual([])
  })

  test('promise 2: what was moved comes back exactly', async () => {
    const { root, home } = await scene()
    const cli = cliIn(home)
    const before = storeTree(root)
    const { runId } = await cli.json('migrate', '--move', '/w/app', '/v/new', '--root', root, '--apply')
    expect(await cli.json('trash', 'restore', String(runId), '--root', root)).toMatchObject({ exitCode: 0 })
    expect(storeTree(root)).toEqual(before)
  })

  test('a session that was just in use is left alone, and said so', async () => {
    const { root, home } = await scene()
    const before = storeTree(root)
    const kept = await cliIn(home).json('migrate', '--move', '/w/app', '/v/new', '--root', root, '--apply', '--now', new Date(old.mtime + hour / 2).toISOString())
    expect(kept.kept).toEqual([{ session: S1, reason: expect.stringContaining('quiet period') as string }])
    expect(storeTree(root)).toEqual(before)
  })
})

test.each(corpusStores('claude-code').filter(({ version }) => version === '2.1.332').map(({ scenario }) => scenario))(
  'corpus %s: after the project and its sessions moved, every checkpoint resolves as before and the tree is restored at the new place',
  async (scenario) => {
    const { home, root, project } = await extractStore('2.1.332', scenario)
    const cli = cliIn(home)
    const [session] = openStore(root).inventory().sessions.filter(({ members }) => members.some(({ kind }) => kind === 'transcript'))
    if (session === undefined || !existsSync(project)) return
    const target = `${project}-moved to`
    const before = await cli.json('show', session.id, '--root', root)
    renameSync(project, target)
    const applied = await cli.json('migrate', '--move', project, target, '--root', root, '--apply', '--now', '2027-06-01T00:00:00Z')
    expect(applied).toMatchObject({ exitCode: 0, errors: [] })
    const after = await cli.json('show', session.id, '--root', root)
    const filesOf = (envelope: typeof before): unknown =>
      (envelope.checkpoints as { id: string; files: { path: string; state: string; backup: string }[] }[]).map(({ id, files }) => ({
        id,
        files: files.map(({ path, state, backup }) => ({ path: path.replace(target, project), state, backup })),
      }))
    expect(filesOf(after)).toEqual(filesOf(before))
    expect(String(after.summary.project)).toBe(String(before.summary.project).replace(project, target))
  },
)
