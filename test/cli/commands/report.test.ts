import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { snapshotTree } from '../../helpers/tree.js'
import { S1, S2 } from '../../helpers/store.js'
import { notes } from '../world.js'

describe('report', () => {
  it('R83: says which part of the largest transcripts is history lines', async () => {
    const { root, cli, transcripts, history } = await notes()
    const share = (which: 'new' | 'old'): string => `${String(Math.round((history[which] / transcripts[which]) * 100))} %`
    const report = (await cli('report', '--root', root)).stdout
    expect(report).toMatch(new RegExp(`^ +bytes +transcript +history +backups +session$`, 'm'))
    expect(report).toMatch(new RegExp(`^ .* kB +${share('new')} +23 B +${S1}$`, 'm'))
    expect(report).toMatch(new RegExp(`^ .* +${share('old')} +6 B +${S2}$`, 'm'))
    const status = (await cli('status', '--top', '1', '--root', root)).stdout
    expect(status).toContain(`${S1}, ${share('new')} of it history lines\n`)
    expect(status).toMatch(/^ +transcripts +.* kB, \d+ % of it history lines$/m)
  })

  it('says in words what there is, the largest first, what a night would remove, and how to let it', async () => {
    const { root, cli, transcripts } = await notes()
    const { exitCode, stdout, stderr } = await cli('report', '--root', root)
    expect([exitCode, stderr]).toEqual([0, ''])
    // Four backups of 6, 11, 6 and 6 bytes.
    expect(stdout).toMatch(new RegExp(`transcripts +${((transcripts.new + transcripts.old) / 1000).toFixed(1)} kB\n`))
    expect(stdout).toMatch(/backups +29 B in 4\n/)
    expect(stdout).toMatch(/growth +no run was recorded yet\n/)
    expect(stdout).toMatch(/ +23 B +a\.md\n +6 B +b\.md\n/)
    expect(stdout.indexOf(S1)).toBeLessThan(stdout.indexOf(S2))
    expect(stdout).toMatch(new RegExp(`trash-session .*${S2}`))
    expect(stdout.trimEnd().split('\n').at(-1)).toBe('rewind-admin run nightly --apply')
  })

  it('--top names that many of each', async () => {
    const { root, cli } = await notes()
    const { stdout } = await cli('report', '--top', '1', '--root', root)
    const [, sessions = ''] = stdout.split('\n  sessions\n')
    expect(sessions.split('\n\n')[0]?.trimEnd().split('\n')).toHaveLength(2)
  })

  it('--json holds the same numbers, by session and project, and after a night its history', async () => {
    const { root, cli, transcripts } = await notes()
    const first = await cli.json('report', '--root', root)
    expect(first).toMatchObject({
      command: 'report',
      applied: false,
      exitCode: 0,
      summary: { stores: 1, sessions: 2, backups: 4, bytes: transcripts.new + transcripts.old + 29, removedSessions: 0, nextActions: 1, nextBytes: transcripts.old + 6 },
      stores: [{ root, projects: [{ project: '/home/u/notes', sessions: 2, bytes: transcripts.new + transcripts.old + 29 }], history: [] }],
    })
    await cli('run', 'nightly', '--apply', '--root', root)
    expect(await cli.json('report', '--root', root)).toMatchObject({
      summary: { sessions: 1, removedSessions: 1, nextActions: 0 },
      stores: [{ history: [{ job: 'nightly', sessions: 1, bytes: transcripts.new + 23, removedSessions: 1, removedBytes: transcripts.old + 6 }], removed: [{ session: S2 }] }],
    })
  })

  it('--html writes a page that only its owner can read, says where, and leaves the store alone', async () => {
    const { root, cli, home } = await notes()
    const before = snapshotTree(root)
    const { exitCode, stdout } = await cli('report', '--html', 'night.html', '--root', root)
    const file = join(home, 'night.html')
    expect([exitCode, stdout.includes(`The page is in ${file}\n`)]).toEqual([0, true])
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).toMatch(/^<!doctype html>[\s\S]*<\/html>\n$/)
    expect(snapshotTree(root)).toEqual(before)
    expect((await cli.json('report', '--html', 'night.html', '--root', root)).html).toBe(file)
  })

  it('--html puts the page in the place of a link, never through it', async () => {
    const { root, cli, home } = await notes()
    const precious = join(home, 'precious')
    writeFileSync(precious, 'mine')
    symlinkSync(precious, join(home, 'night.html'))
    await cli('report', '--html', 'night.html', '--root', root)
    expect(readFileSync(precious, 'utf8')).toBe('mine')
  })

  it('--html where no file can be is a usage error that names the path', async () => {
    const { root, cli, home } = await notes()
    mkdirSync(join(home, 'folder'))
    for (const place of ['none/night.html', 'folder']) {
      const { exitCode, stderr } = await cli('report', '--html', place, '--root', root)
      expect(exitCode).toBe(2)
      expect(stderr).toContain(join(home, place))
    }
    expect(existsSync(join(home, 'none'))).toBe(false)
  })
})
