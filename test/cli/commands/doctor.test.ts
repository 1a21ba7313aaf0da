import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { S1, setTime, userLine, writeStoreFile, writeTranscript } from '../../helpers/store.js'
import { asNobody, giveAway, needs } from '../../helpers/unprivileged.js'
import { dayMs, newTime, notes, now, type Envelope } from '../world.js'

function ids({ findings }: Envelope): unknown[] {
  return findings.map(({ id }) => id)
}

describe('doctor', () => {
  it('of a good store says how it is set up, layer by layer and gate by gate, and ends with 0', async () => {
    const { root, cli } = await notes()
    const { exitCode, stdout } = await cli('doctor', '--root', root)
    expect(exitCode).toBe(0)
    expect(stdout).toContain(process.version)
    expect(stdout).toMatch(/retention +30 days, from user: .*settings\.json\n/)
    expect(stdout).toMatch(/user +\S+settings\.json +30 days +counts\n/)
    expect(stdout).toMatch(/fileCheckpointingEnabled +- +checkpoints are made/)
    expect(stdout).toMatch(/our folder +none yet\n/)
  })

  it.each([
    ['an empty file', ''],
    ['a trailing comma', '{"cleanupPeriodDays":365,}'],
    ['a text', '{"cleanupPeriodDays":"365"}'],
    ['a negative number', '{"cleanupPeriodDays":-1}'],
    ['half a day', '{"cleanupPeriodDays":1.5}'],
    ['null', '{"cleanupPeriodDays":null}'],
    ['zero', '{"cleanupPeriodDays":0}'],
    ['a list', '[]'],
  ])('R05, R06: settings with %s are an error that names the file, and the same settings stop expire with 65', async (_, text) => {
    const { root, cli } = await notes()
    const file = join(root, 'settings.json')
    writeFileSync(file, text)
    const report = await cli.json('doctor', '--root', root)
    expect(report).toMatchObject({ exitCode: 1, findings: [{ id: 'settings-unknowable', severity: 'error', place: file }] })
    expect(report.stores).toMatchObject([{ retention: { days: null, source: 'unknowable' } }])
    const { stdout } = await cli('doctor', '--root', root)
    expect(stdout).toContain('unknowable: nothing expires until the settings are mended')
    expect(stdout).toContain('cannot be used:')
    const expire = await cli('expire', '--root', root)
    expect([expire.exitCode, expire.stdout]).toEqual([65, ''])
    expect(expire.stderr).toContain(file)
  })

  it('R05: a folder in place of the settings is an error, a BOM is none', async () => {
    const { root, cli } = await notes()
    writeFileSync(join(root, 'settings.json'), '\uFEFF{"cleanupPeriodDays":90}')
    const good = await cli.json('doctor', '--root', root)
    expect([good.exitCode, good.stores]).toMatchObject([0, [{ retention: { days: 90 } }]])
    const { root: other, cli: second } = await notes()
    rmSync(join(other, 'settings.json'))
    mkdirSync(join(other, 'settings.json'))
    expect(ids(await second.json('doctor', '--root', other))).toEqual(['settings-unknowable'])
  })

  it('R05: settings that cannot be read are an error', async (context) => {
    needs(context, 'unprivileged')
    const { home, root, cli } = await notes()
    chmodSync(join(root, 'settings.json'), 0o000)
    giveAway(home)
    await asNobody(async () => {
      const report = await cli.json('doctor', '--root', root)
      expect([report.exitCode, ids(report)]).toEqual([1, ['settings-unknowable']])
    })
  })

  it('settings of a project that cannot be used are named once, however many sessions it has', async () => {
    const { home, root, cli } = await notes()
    const project = join(home, 'notes')
    const file = writeStoreFile(project, '.claude/settings.local.json', '{"cleanupPeriodDays":0}')
    for (const id of ['3', '4']) {
      const session = S1.replaceAll('1', id)
      writeTranscript(root, '-notes', session, [userLine('m', { session, cwd: project, time: newTime })], { mtime: newTime })
    }
    const report = await cli.json('doctor', '--root', root)
    expect(report.findings).toMatchObject([{ id: 'settings-unknowable', place: file }])
    expect(report.stores).toMatchObject([{ retention: { days: 30, projects: [{ project, days: null }] } }])
  })

  it('names what it would tell a person: gates that stop checkpoints, a clock that looks wrong, leftovers, and running sessions', async () => {
    const { root, cli } = await notes()
    writeFileSync(join(root, 'settings.json'), '{"cleanupPeriodDays":30,"fileCheckpointingEnabled":false}')
    writeStoreFile(root, `sessions/${String(process.pid)}.json`, JSON.stringify({ pid: process.pid, sessionId: S1 }))
    writeStoreFile(root, `projects/-home-u-notes/.rewind-admin-1234.tmp`, '', { mtime: now - dayMs })
    const report = await cli.json('doctor', '--root', root)
    expect(ids(report).sort()).toEqual(['checkpointing-off', 'stale-temp'])
    expect(report.stores).toMatchObject([{ live: [{ session: S1, pid: process.pid }] }])
    const late = await cli.json('doctor', '--root', root, '--now', '2028-01-01T00:00:00Z')
    expect(ids(late)).toContain('clock-looks-wrong')
  })

  it('shows the last run with its result and bytes, and warns when it did not end well', async () => {
    const { root, cli, transcripts } = await notes()
    await cli('run', 'nightly', '--apply', '--root', root)
    for (const command of ['doctor', 'status']) {
      const { stdout } = await cli(command, '--root', root)
      expect(stdout).toMatch(new RegExp(`last run +nightly at 2026-11-30T12:00:0\\d\\.\\d{3}Z, exit code 0, ${String(6 + transcripts.old)} B removed\n`))
    }
    expect(ids(await cli.json('doctor', '--root', root))).toEqual([])
    writeFileSync(join(root, 'settings.json'), '{"cleanupPeriodDays":0}')
    expect((await cli('run', 'nightly', '--apply', '--root', root)).exitCode).toBe(65)
    writeFileSync(join(root, 'settings.json'), '{"cleanupPeriodDays":30}')
    const { findings } = await cli.json('doctor', '--root', root)
    expect(findings).toMatchObject([{ id: 'last-run-failed', message: expect.stringMatching(/nightly .* 65$/) as string }, { id: 'removal-held' }])
  })

  it('after a failed job says that jobs remove nothing, and with --ack lets them again', async () => {
    const { root, cli } = await notes()
    writeFileSync(join(root, 'settings.json'), '{"cleanupPeriodDays":0}')
    await cli('run', 'nightly', '--apply', '--root', root)
    writeFileSync(join(root, 'settings.json'), '{"cleanupPeriodDays":30}')
    expect((await cli('status', '--root', root)).stdout).toMatch(/next night +nothing is removed: nightly failed at .*; rewind-admin doctor --ack\n/)
    expect(await cli.json('run', 'nightly', '--apply', '--root', root)).toMatchObject({ exitCode: 0, plan: [], findings: [{ id: 'removal-held' }] })
    expect(await cli.json('doctor', '--root', root)).toMatchObject({
      applied: false,
      findings: [{ id: 'removal-held', message: expect.stringMatching(/^jobs remove nothing until 2026-12-01T12:00:00.000Z, or until/) as string }],
      stores: [{ sidecar: { held: { until: '2026-12-01T12:00:00.000Z' } } }],
    })
    expect(await cli.json('doctor', '--ack', '--root', root)).toMatchObject({ exitCode: 0, applied: true, summary: { acknowledged: 1 }, findings: [], acknowledged: [root] })
    expect(await cli.json('doctor', '--ack', '--root', root)).toMatchObject({ exitCode: 0, applied: false, summary: { acknowledged: 0 } })
    expect((await cli.json('run', 'nightly', '--apply', '--root', root)).plan).toHaveLength(1)
  })

  it('says of every job how its last run ended, not only of the last one', async () => {
    const { root, cli } = await notes()
    writeFileSync(join(root, 'settings.json'), '{"cleanupPeriodDays":0}')
    await cli('run', 'nightly', '--apply', '--root', root)
    await cli('run', 'report', '--apply', '--root', root)
    const { findings } = await cli.json('doctor', '--ack', '--root', root)
    expect(findings).toMatchObject([{ id: 'settings-unknowable' }, { id: 'last-run-failed', message: 'the last run of nightly ended with exit code 65' }])
  })

  it('names a configuration that is in use, and ends with 2 for one that cannot be used', async () => {
    const { home, root, cli } = await notes()
    const file = writeStoreFile(home, '.config/rewind-admin/rewind-admin.config.json', '{"cap": 50}')
    expect((await cli.json('doctor', '--root', root)).summary).toMatchObject({ config: file })
    writeFileSync(file, '{"pin": {}}')
    const { exitCode, stderr } = await cli('doctor', '--root', root)
    expect(exitCode).toBe(2)
    expect(stderr).toContain('did you mean pins?')
    expect((await cli('doctor', '--root', root, '--config', join(home, 'none.json'))).exitCode).toBe(2)
  })

  it('of a sidecar whose status file is not ours to read says so and goes on', async () => {
    const { root, cli } = await notes()
    writeStoreFile(root, '.rewind-admin/status.json', '{', { mode: 0o600 })
    chmodSync(join(root, '.rewind-admin'), 0o755)
    setTime(root, newTime)
    expect(ids(await cli.json('doctor', '--root', root)).sort()).toEqual(['sidecar-damaged', 'wide-mode'])
  })
})
