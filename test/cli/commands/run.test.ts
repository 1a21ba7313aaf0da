import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { uuidOf } from '../../helpers/identity.js'
import { H2, S1, S2, emptyRoot, setTime, snap, userLine, writeBackup, writeTranscript } from '../../helpers/store.js'
import { agentsView, cliIn, dayMs, newTime, notes, now, oldTime } from '../world.js'

const S3 = '33333333-3333-4333-8333-333333333333'

/** A session of 105 checkpoints, each with a backup of its own: versions 2 to 5 are beyond the cap. */
function longSession(root: string, id: string, time: string): void {
  const messages = Array.from({ length: 105 }, (_, index) => uuidOf(`${id}/${String(index)}`))
  const lines = messages.flatMap((message, index) => [
    userLine(message, { session: id, parent: messages[index - 1] ?? null, time }),
    snap(message, { 'b.md': `${H2}@v${String(index + 1)}` }, time),
  ])
  writeTranscript(root, '-long', id, lines, { mtime: time })
  messages.forEach((_, index) => writeBackup(root, id, `${H2}@v${String(index + 1)}`, `line ${String(index)}\n`, { mtime: time }))
  for (const folder of [`file-history/${id}`, 'file-history', 'projects/-long', 'projects', '.']) setTime(join(root, folder), oldTime)
}

describe('run nightly', () => {
  it('prints each step with what it did, then the plan and the name of the run', async () => {
    const { root, cli } = await notes()
    const { exitCode, stdout, stderr } = await cli('run', 'nightly', '--apply', '--root', root)
    expect([exitCode, stderr]).toEqual([0, ''])
    const rows = stdout.split('\n').slice(0, 7).map((line) => line.trim().split(/ {2,}/).slice(0, 2))
    expect(rows).toEqual([[root], ['step', 'result'], ['recover', 'done'], ['verify-quick', 'done'], ['cap', 'done'], ['expire', 'done'], ['empty-trash', 'done']])
    expect(stdout).toMatch(/^Done: 1 action, \d+ B$/m)
    expect(stdout).toMatch(/^Run 20261130T120000000Z-[0-9a-f]{8}$/m)
  })

  it.each([
    ['a young and an old session', newTime],
    ['the same old session twice', oldTime],
  ])('its one name in trash restore brings back all that its steps took, exactly: cap and expire of %s', async (_, time) => {
    const { root, cli } = await notes()
    longSession(root, S3, time)
    const before = agentsView(root)
    const { runId = '', plan, errors } = await cli.json('run', 'nightly', '--apply', '--root', root)
    expect(errors).toEqual([])
    expect(plan.map(({ action }) => action)).toEqual(time === newTime ? ['trash-backups', 'trash-session'] : ['trash-backups', 'trash-session', 'trash-session'])
    const restored = await cli.json('trash', 'restore', runId, '--root', root)
    expect(restored).toMatchObject({ exitCode: 0, errors: [] })
    expect([...(restored.restored as string[])].sort()).toEqual([S2, S3])
    expect(agentsView(root)).toEqual(before)
    expect((await cli.json('trash', 'list', '--root', root)).entries).toEqual([])
  })

  it('one session of the run can be restored from whichever step took it', async () => {
    const { root, cli } = await notes()
    longSession(root, S3, newTime)
    const { runId = '' } = await cli.json('run', 'nightly', '--apply', '--root', root)
    expect(await cli.json('trash', 'restore', runId, '3333', '--root', root)).toMatchObject({ exitCode: 0, restored: [S3] })
    expect(readdirSync(join(root, `file-history/${S3}`))).toHaveLength(105)
    expect(existsSync(join(root, `file-history/${S2}`))).toBe(false)
  })

  it('a second night changes nothing but its own status', async () => {
    const { root, cli } = await notes()
    await cli('run', 'nightly', '--apply', '--root', root)
    const before = agentsView(root)
    expect(await cli.json('run', 'nightly', '--apply', '--root', root, '--now', new Date(now + dayMs).toISOString())).toMatchObject({ exitCode: 0, plan: [] })
    expect(agentsView(root)).toEqual(before)
  })

  it('the brake in it never prints as done what was refused', async () => {
    const root = await emptyRoot()
    for (let index = 0; index < 51; index += 1) {
      const id = uuidOf(`run/${String(index)}`)
      writeTranscript(root, '-p', id, [userLine('m', { session: id, time: oldTime })], { mtime: oldTime })
    }
    writeTranscript(root, '-p', S1, [userLine('m', { session: S1, time: newTime })], { mtime: newTime })
    const { exitCode, stdout } = await cliIn(dirname(root))('run', 'nightly', '--apply', '--root', root)
    expect(exitCode).toBe(4)
    expect(stdout).not.toContain('Done:')
    expect(stdout).toContain('BRAKE')
    expect(stdout).toMatch(/expire +failed/)
  })

  it('in JSON the steps of every store carry its root, and what failed says why', async () => {
    const [one, two] = [await notes(), await notes()]
    writeFileSync(join(two.root, 'settings.json'), '{')
    const report = await one.cli.json('run', 'nightly', '--apply', '--root', one.root, '--root', two.root)
    expect(report).toMatchObject({ exitCode: 65, root: [one.root, two.root], summary: { stores: 2, steps: 10, failed: 1 } })
    expect(report.steps).toHaveLength(10)
    expect(report.errors).toMatchObject([{ code: 'RETENTION_UNKNOWABLE', path: two.root }])
    expect((report.steps as { root: string; step: string; state: string }[]).filter(({ state }) => state === 'failed')).toMatchObject([{ root: two.root, step: 'expire' }])
  })

  it('the configuration sets cap, floor and grace of the job', async () => {
    const { home, root, cli } = await notes()
    longSession(root, S3, newTime)
    writeFileSync(join(home, 'config.json'), JSON.stringify({ cap: 50, floor: '90d' }))
    const { plan } = await cli.json('run', 'nightly', '--root', root, '--config', join(home, 'config.json'))
    // Versions 2 to 55 of 105; with a floor of 90 days nothing is old enough.
    expect(plan).toMatchObject([{ action: 'trash-backups', session: S3, reason: expect.stringMatching(/^54 backups/) as string }])
    rmSync(join(home, 'config.json'))
  })
})
