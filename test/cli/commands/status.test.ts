import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { linkIntoSession, replaceByFifo, removeBackup } from '../../helpers/damage.js'
import { S1, S2, writeBackup, writeStoreFile } from '../../helpers/store.js'
import { needs } from '../../helpers/unprivileged.js'
import { hashA, hashB, notes, nowText } from '../world.js'

describe('status', () => {
  it('says in words what there is, the retention and its source, and what the next night would do', async () => {
    const { root, cli, transcripts } = await notes()
    const { exitCode, stdout, stderr } = await cli('status', '--root', root)
    expect([exitCode, stderr]).toEqual([0, ''])
    const lines = stdout.split('\n')
    expect(lines[0]).toBe(root)
    expect(stdout).toMatch(/sessions +2\n/)
    expect(stdout).toMatch(/backups +4 \(29 B\): v1 2, v2 2\n/)
    expect(stdout).toContain(`30 days, from user: ${root}/settings.json`)
    expect(stdout).toMatch(new RegExp(`next night +expire: 1 session, ${String(6 + transcripts.old)} B; cap: 0 removals, 0 B\n`))
    expect(stdout).toMatch(/last run +none\n/)
  })

  it('R68: counts hard links between sessions once', async () => {
    const { root, cli } = await notes()
    linkIntoSession(root, S1, `${hashA}@v2`, S2)
    expect((await cli.json('status', '--root', root)).summary).toMatchObject({ backups: 5, bytes: 29 })
  })

  it('--top names that many projects, sessions and paths, the largest first', async () => {
    const { root, cli } = await notes()
    writeBackup(root, S2, `${hashA}@v1`, 'x'.repeat(5000))
    const { stdout } = await cli('status', '--top', '1', '--root', root)
    const [, ...sections] = stdout.split('\n  largest ')
    expect(sections.map((section) => section.split('\n')[0])).toEqual(['projects', 'sessions', 'transcripts', 'paths'])
    expect(sections[1]).toContain(S2)
    expect(sections[1]).not.toContain(S1)
    expect(sections[3]).toMatch(/5\.0 kB {2}a\.md/)
  })

  it('with a settings file that cannot be used says which, and that nothing would expire', async () => {
    const { root, cli } = await notes()
    writeFileSync(join(root, 'settings.json'), '{"cleanupPeriodDays": "365"}')
    const { exitCode, stdout } = await cli('status', '--root', root)
    expect(exitCode).toBe(0)
    expect(stdout).toContain(`unknowable: ${root}/settings.json`)
    expect(stdout).toMatch(/next night +expire: the retention period cannot be known/)
    const { stores } = await cli.json('status', '--root', root)
    expect(stores).toMatchObject([
      { retention: { days: null, source: 'unknowable', unusable: [{ file: `${root}/settings.json` }] }, nextNight: { expire: { actions: 0, refused: expect.any(String) as string } } },
    ])
  })

  it('R124: of one session says that it is there, and after it expired when, by which run, with exit code 1', async () => {
    const { root, cli } = await notes()
    expect((await cli.json('status', '2222', '--root', root)).summary).toEqual({ state: 'there', session: S2 })
    const { runId } = await cli.json('expire', '--apply', '--root', root)
    for (const id of [S2, '2222']) {
      const { exitCode, stdout } = await cli('status', id, '--root', root)
      expect(exitCode).toBe(1)
      expect(stdout).toMatch(/state +expired\n/)
      expect(stdout).toContain(S2)
      expect(stdout).toContain(nowText)
      expect(stdout).toContain(runId)
    }
    await cli('trash', 'restore', runId ?? '', '--root', root)
    expect(await cli.json('status', '2222', '--root', root)).toMatchObject({ exitCode: 0, summary: { state: 'there' } })
  })

  it('of a session that purge took says removed, not expired', async () => {
    const { root, cli } = await notes()
    await cli('purge', '/home/u/notes', '--apply', '--root', root)
    expect(await cli.json('status', '1111', '--root', root)).toMatchObject({ exitCode: 1, summary: { state: 'removed', session: S1 } })
  })

  it('of one session that a process has open says live', async () => {
    const { root, cli } = await notes()
    writeStoreFile(root, `sessions/${String(process.pid)}.json`, JSON.stringify({ pid: process.pid, sessionId: S1 }))
    expect((await cli.json('status', '1111', '--root', root)).summary).toEqual({ state: 'live', session: S1 })
    expect((await cli.json('list', '--root', root)).summary).toMatchObject({ live: 1 })
    expect((await cli('list', '--root', root)).stdout).toMatch(new RegExp(`${S1}.* live `))
  })
})

describe('list', () => {
  it('prints a table, the session that was active last first', async () => {
    const { root, cli } = await notes()
    const { exitCode, stdout } = await cli('list', '--root', root)
    expect(exitCode).toBe(0)
    const [title = '', first = '', second = '', , closing = ''] = stdout.split('\n')
    expect(title.split(/ {2,}/)).toEqual(['session', 'last activity', 'checkpoints', 'backups', 'bytes', 'project'])
    expect(first.split(/ {2,}/)).toEqual([S1, '2026-11-29 09:00', '3', '3', '23 B', '/home/u/notes'])
    expect(second.split(/ {2,}/)).toEqual([S2, '2026-10-01 09:00', '1', '1', '6 B', '/home/u/notes'])
    expect(closing).toBe('2 sessions, 29 B in backups')
  })
})

describe('show', () => {
  it('prints each checkpoint with its message and whether a rewind there can be whole', async () => {
    const { root, cli } = await notes()
    removeBackup(root, S1, `${hashB}@v2`)
    const { exitCode, stdout } = await cli('show', S1, '--root', root)
    expect(exitCode).toBe(0)
    expect(stdout).toContain(`session ${S1}\nproject /home/u/notes\n`)
    const rows = stdout.split('\n').slice(4, 7)
    expect(rows.map((row) => row.split(/ {2,}/).slice(2))).toEqual([
      ['2', 'whole', 'start the list'],
      ['2', 'whole', 'add the wren'],
      ['2', 'partly', 'is it complete?'],
    ])
  })

  it('--files names every tracked path with its state: absent, present or missing, never one for the other (R34)', async () => {
    const { root, cli } = await notes()
    removeBackup(root, S1, `${hashA}@v2`)
    const { stdout } = await cli('show', S1, '--files', '--root', root)
    const states = stdout
      .split('\n')
      .map((line) => /^ +(absent|present|missing) +(.*)$/.exec(line)?.slice(1))
      .filter((match) => match !== undefined)
    expect(states).toEqual([
      ['present', `a.md (${hashA}@v1)`],
      ['absent', 'b.md'],
      ['missing', `a.md (${hashA}@v2)`],
      ['absent', 'b.md'],
      ['missing', `a.md (${hashA}@v2)`],
      ['present', `b.md (${hashB}@v2)`],
    ])
  })

  it('R61: a pipe in place of a backup is missing, and nobody waits for it', async (context) => {
    needs(context, 'fifo')
    const { root, cli } = await notes()
    replaceByFifo(root, S1, `${hashA}@v1`)
    const { checkpoints } = await cli.json('show', S1, '--root', root)
    expect(checkpoints).toMatchObject([{ restorable: false, files: [{ state: 'missing' }, { state: 'absent' }] }, {}, {}])
  })

  it('never drives the terminal with what a prompt or a path holds', async () => {
    const { root, cli } = await notes()
    const file = join(root, 'projects/-home-u-notes', `${S1}.jsonl`)
    writeFileSync(file, readFileSync(file, 'utf8').replace('start the list', String.raw`start\u001b[2Jthe\u0007list`).replaceAll('"b.md"', String.raw`"b\u001b[31m.md"`))
    for (const argv of [['show', S1, '--files'], ['status', '--top', '3'], ['verify']]) {
      const { stdout } = await cli(...argv, '--root', root)
      expect([argv, /[\u0000-\u0009\u000b-\u001f\u007f]/.test(stdout)]).toEqual([argv, false])
    }
  })
})

it('--store narrows to one format, also where --root is given', async () => {
  const { root, cli } = await notes()
  expect((await cli.json('status', '--root', root, '--store', 'claude-code')).root).toBe(root)
  expect((await cli('status', '--root', root, '--store', 'qwen-code')).exitCode).toBe(10)
})
