import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { S1, S2, userLine, writeStoreFile, writeTranscript } from '../../helpers/store.js'
import { type Cli, dayMs, notes, type Notes, now } from '../world.js'

describe('trash', () => {
  async function filled(): Promise<Notes & { readonly runId: string; readonly cli: Cli }> {
    const store = await notes()
    const { runId = '' } = await store.cli.json('purge', '/home/u/notes', '--apply', '--root', store.root)
    return { ...store, runId }
  }

  it('list shows run, session, time, command and size', async () => {
    const { root, cli, runId } = await filled()
    const { stdout } = await cli('trash', 'list', '--root', root)
    expect(stdout).toMatch(new RegExp(`${runId}  ${S2}  2026-11-30 12:00  purge +\\d+ B  started in /home/u/notes`))
    expect(stdout.trimEnd().split('\n').at(-1)).toBe('2 entries')
  })

  it('list of an empty trash, or of a store that has none, says so', async () => {
    const { root, cli } = await notes()
    expect((await cli('trash', 'list', '--root', root)).stdout).toBe('The trash is empty.\n')
  })

  it('restore of one session leaves the others where they are', async () => {
    const { root, cli, runId } = await filled()
    expect(await cli.json('trash', 'restore', runId, '2222', '--root', root)).toMatchObject({ exitCode: 0, restored: [S2] })
    expect((await cli.json('list', '--root', root)).sessions).toMatchObject([{ id: S2 }])
    expect((await cli.json('trash', 'list', '--root', root)).entries).toMatchObject([{ session: S1 }])
  })

  it('restore acts, and accepts --apply', async () => {
    const { root, cli, runId } = await filled()
    expect(await cli.json('trash', 'restore', runId, '--apply', '--root', root)).toMatchObject({ exitCode: 0, applied: true, summary: { restored: 2 } })
  })

  it('restore says in words what came back', async () => {
    const { root, cli, runId } = await filled()
    const { stdout } = await cli('trash', 'restore', runId, '--root', root)
    expect(stdout).toMatch(/restored +2\n/)
  })

  it('restore never writes over what stands there now', async () => {
    const { root, cli, runId } = await filled()
    const mine = writeTranscript(root, '-home-u-notes', S2, [userLine('new', { session: S2 })])
    const bytes = readFileSync(mine)
    const report = await cli.json('trash', 'restore', runId, '--root', root)
    expect(report).toMatchObject({ exitCode: 3, restored: [S1], errors: [{ code: 'OCCUPIED' }] })
    expect(readFileSync(mine)).toEqual(bytes)
    expect((await cli.json('trash', 'list', '--root', root)).entries).toMatchObject([{ session: S2 }])
  })

  it('R86: empty --max-bytes takes the oldest entries until the trash is no larger, without waiting for the grace period', async () => {
    const { root, cli, transcripts } = await notes()
    // An old session, and an hour later the other one.
    await cli('expire', '--apply', '--root', root)
    const later = new Date(now + 3_600_000).toISOString()
    await cli('purge', '/home/u/notes', '--apply', '--root', root, '--now', later)
    const at = ['--root', root, '--now', new Date(now + 7_200_000).toISOString()]
    const [first, second] = [transcripts.old + 6, transcripts.new + 23]
    expect((await cli.json('trash', 'empty', '--max-bytes', String(first + second), ...at)).plan).toEqual([])
    const preview = await cli.json('trash', 'empty', '--max-bytes', String(second), ...at)
    expect(preview.plan).toMatchObject([{ session: S2, bytes: first }])
    expect((await cli.json('trash', 'list', ...at)).entries).toHaveLength(2)
    expect((await cli.json('trash', 'empty', '--max-bytes', String(second), '--older-than', '1d', ...at)).plan).toEqual([])
    expect(await cli.json('trash', 'empty', '--max-bytes', String(second), '--apply', ...at)).toMatchObject({ exitCode: 0, plan: [{ session: S2 }] })
    expect((await cli.json('trash', 'list', ...at)).entries).toMatchObject([{ session: S1 }])
    await cli('trash', 'empty', '--max-bytes', '0', '--apply', ...at)
    expect((await cli.json('trash', 'list', ...at)).entries).toEqual([])
  })

  it.each([
    [['trash', 'restore', '20200101T000000000Z-00000000'], 1, 'holds nothing of run'],
    [['trash', 'restore'], 2, 'needs a run'],
    [['trash', 'list', 'x'], 2, 'takes no run'],
    [['trash', 'burn'], 2, 'burn'],
    [['trash', 'empty', '--older-than', 'ever'], 2, 'give a duration'],
    [['trash', 'empty', '--max-bytes', 'much'], 2, 'give a size'],
    [['expire', '--max-bytes', '1.5G'], 2, 'give a size'],
  ])('%j ends with %i and says why', async (argv, code, words) => {
    const { root, cli } = await filled()
    const { exitCode, stderr } = await cli(...argv, '--root', root)
    expect([exitCode, stderr]).toEqual([code, expect.stringContaining(words)])
  })

  it('restore of a session that the run did not remove ends with 1', async () => {
    const { root, cli, runId } = await filled()
    expect(await cli.json('trash', 'restore', runId, 'ffff', '--root', root)).toMatchObject({ exitCode: 1, errors: [{ code: 'NO_MATCH' }] })
  })

  it('R20: empty takes what was put there longer ago than the grace period, whatever the age of the files', async () => {
    const { root, cli } = await filled()
    const after = (days: number): string => new Date(now + days * dayMs).toISOString()
    const due = async (...argv: string[]): Promise<number> => (await cli.json('trash', 'empty', ...argv, '--root', root)).plan.length
    expect([await due('--now', after(7)), await due('--now', after(8)), await due('--older-than', '0s', '--now', after(1)), await due('--older-than', '30d', '--now', after(8))]).toEqual([0, 2, 2, 0])
    const done = await cli.json('trash', 'empty', '--apply', '--now', after(8), '--root', root)
    expect(done).toMatchObject({ exitCode: 0, applied: true, summary: { entries: 2 } })
    expect((await cli.json('trash', 'list', '--root', root)).entries).toEqual([])
  })

  it('the grace period of the configuration counts where no flag does', async () => {
    const { home, root, cli } = await filled()
    writeStoreFile(home, '.config/rewind-admin/rewind-admin.config.json', '{"grace": "1d"}')
    expect((await cli.json('trash', 'empty', '--root', root, '--now', new Date(now + 2 * dayMs).toISOString())).plan).toHaveLength(2)
  })
})
