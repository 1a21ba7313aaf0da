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

  it.each([
    [['trash', 'restore', '20200101T000000000Z-00000000'], 1, 'holds nothing of run'],
    [['trash', 'restore'], 2, 'needs a run'],
    [['trash', 'list', 'x'], 2, 'takes no run'],
    [['trash', 'burn'], 2, 'burn'],
    [['trash', 'empty', '--older-than', 'ever'], 2, 'give a duration'],
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
