import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
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

describe('run --list', () => {
  it('lists the jobs of the program and of the configuration, with their steps and when these are carried out', async () => {
    const { home, cli } = await notes()
    const file = join(home, 'config.json')
    writeFileSync(file, JSON.stringify({ jobs: { weekly: ['recover', 'verify', { step: 'expire', when: 'no-errors-found', every: '7d' }] } }))
    const { exitCode, stdout } = await cli('run', '--list', '--config', file)
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/^nightly: .+\n {2}step +does +when *\n {2}recover +finish or roll back .+ {2}always$/m)
    expect(stdout).toMatch(/^integrity: .+\n.*\n {2}verify +read one of 7 buckets .+ {2}always$/m)
    expect(stdout).toMatch(/^weekly: a job of the configuration$/m)
    expect(stdout).toMatch(/^ {2}expire .+ {2}an earlier verify step of this run found no error in the store; every 7 days$/m)
    const { jobs } = await cli.json('run', '--list')
    expect((jobs as { name: string }[]).map(({ name }) => name)).toEqual(['nightly', 'integrity', 'report'])
  })

  it('and a run without a job: the first needs no store, the second is an error that names the list', async () => {
    const cli = cliIn(dirname(await emptyRoot()))
    expect((await cli('run', '--list')).exitCode).toBe(0)
    const { exitCode, stderr } = await cli('run')
    expect([exitCode, stderr]).toEqual([2, 'rewind-admin: no job was named\n  rewind-admin run --list shows them\n'])
  })

  it('names the nearest step when the configuration has one that there is not', async () => {
    const { home, cli } = await notes()
    writeFileSync(join(home, 'config.json'), '{"jobs":{"weekly":["recover","exspire"]}}')
    for (const argv of [['run', '--list'], ['run', 'nightly'], ['run', 'weekly']]) {
      const { exitCode, stderr } = await cli(...argv, '--config', join(home, 'config.json'))
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining('job weekly: there is no step called exspire; did you mean expire?')])
    }
  })
})

describe('run report', () => {
  it('counts what there is and says what the next night would do, and changes nothing but its own status', async () => {
    const { root, cli, transcripts } = await notes()
    const before = agentsView(root)
    const report = await cli.json('run', 'report', '--apply', '--root', root)
    expect(agentsView(root)).toEqual(before)
    // S1 has three backups (23 bytes), S2 one (6 bytes) and is 60 days old.
    expect(report).toMatchObject({
      exitCode: 0,
      plan: [],
      steps: [
        { step: 'status', state: 'done', summary: { sessions: 2, checkpoints: 4, backups: 4, bytes: 29 } },
        { step: 'next-night', state: 'done', summary: { expire: 1, expireBytes: 6 + transcripts.old, cap: 0, capBytes: 0, emptyTrash: 0, emptyTrashBytes: 0 } },
      ],
    })
  })

  it('says why the next night would remove nothing, and counts what the trash would lose', async () => {
    const { root, cli } = await notes()
    await cli('run', 'nightly', '--apply', '--root', root)
    writeFileSync(join(root, 'settings.json'), '[]')
    const { stdout } = await cli('run', 'report', '--root', root, '--now', new Date(now + 8 * dayMs).toISOString())
    expect(stdout).toMatch(/next-night +done +\S+ s +the retention period cannot be known.*, emptyTrash 1, emptyTrashBytes \d+$/m)
  })
})

describe('those who are told of a job', () => {
  /** A configuration that tells everybody, and what reached them. */
  async function told(home: string, before = ''): Promise<{ readonly config: string; readonly pings: string[]; readonly hooks: () => { readonly event: string; readonly exitCode: unknown; readonly steps: unknown }[] }> {
    const pings: string[] = []
    const server = createServer((request, response) => {
      pings.push(`${request.method ?? ''} ${request.url ?? ''}`)
      response.end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    const log = join(home, 'hooks.jsonl')
    const note = `const fs=require('fs');const r=JSON.parse(fs.readFileSync(0,'utf8'));fs.appendFileSync(${JSON.stringify(log)},JSON.stringify({event:process.env.REWIND_ADMIN_EVENT,exitCode:r.exitCode,steps:r.steps.length})+'\\n');`
    const config = join(home, 'config.json')
    const notify = {
      ping: { url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/secret` },
      before: { command: [process.execPath, '-e', `${note}${before}`] },
      after: { command: [process.execPath, '-e', note] },
      metrics: home,
    }
    writeFileSync(config, JSON.stringify({ notify }))
    const hooks = (): { event: string; exitCode: unknown; steps: unknown }[] =>
      existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n').map((line) => JSON.parse(line) as { event: string; exitCode: unknown; steps: unknown }) : []
    return { config, pings, hooks }
  }

  it('are hooks, pings and a file of metrics, each as the configuration says', async () => {
    const { home, root, cli } = await notes()
    const { config, pings, hooks } = await told(home)
    const report = await cli.json('run', 'nightly', '--apply', '--root', root, '--config', config)
    expect([report.exitCode, report.findings]).toEqual([0, []])
    expect(pings).toEqual(['GET /secret/start', 'GET /secret'])
    expect(hooks()).toEqual([{ event: 'before', exitCode: 0, steps: 0 }, { event: 'after', exitCode: 0, steps: 5 }])
    expect(readFileSync(join(home, 'rewind_admin_nightly.prom'), 'utf8')).toContain('rewind_admin_last_run_actions{job="nightly"} 1\n')
  })

  it('are not told of a preview', async () => {
    const { home, root, cli } = await notes()
    const { config, pings, hooks } = await told(home)
    expect((await cli('run', 'nightly', '--root', root, '--config', config)).exitCode).toBe(0)
    expect([pings, hooks(), existsSync(join(home, 'rewind_admin_nightly.prom'))]).toEqual([[], [], false])
  })

  it('are told of a failure, also when there is no store at all', async () => {
    const { home, root, cli } = await notes()
    const { config, pings, hooks } = await told(home)
    writeFileSync(join(root, 'settings.json'), '[]')
    expect((await cli('run', 'nightly', '--apply', '--root', root, '--config', config)).exitCode).toBe(65)
    expect((await cli('run', 'nightly', '--apply', '--root', join(home, 'none'), '--config', config)).exitCode).toBe(10)
    expect(pings).toEqual(['GET /secret/start', 'GET /secret/fail', 'GET /secret/start', 'GET /secret/fail'])
    expect(hooks().map(({ exitCode }) => exitCode)).toEqual([0, 65, 0, 10])
  })

  it('may put it off: the hook before ends with 75, nothing is done, and the run ends with 75', async () => {
    const { home, root, cli } = await notes()
    const { config, pings, hooks } = await told(home, 'process.exitCode=75')
    const report = await cli.json('run', 'nightly', '--apply', '--root', root, '--config', config)
    expect(report).toMatchObject({ exitCode: 75, applied: false, plan: [], errors: [{ code: 'PUT_OFF' }] })
    expect([pings, hooks().length, existsSync(join(root, '.rewind-admin'))]).toEqual([[], 1, false])
  })

  it('never break it: a hook that fails is a finding, with its last words, and the job is done', async () => {
    const { home, root, cli } = await notes()
    const { config } = await told(home, 'console.error("no battery");process.exitCode=3')
    const report = await cli.json('run', 'nightly', '--apply', '--root', root, '--config', config)
    expect(report).toMatchObject({ exitCode: 0, applied: true })
    expect(report.plan).toHaveLength(1)
    expect(report.findings).toMatchObject([{ id: 'notification-failed', message: expect.stringMatching(/^the hook before the job \(.*\) ended with exit code 3: no battery$/) as string }])
  })
})
