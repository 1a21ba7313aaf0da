import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { SimulatedAgent } from '../../helpers/agent.js'
import { extractStore } from '../../helpers/corpus.js'
import { uuidOf } from '../../helpers/identity.js'
import { S1, emptyRoot, userLine, writeTranscript } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { sameTree, snapshotTree } from '../../helpers/tree.js'
import { cliIn, notes, oldTime } from '../world.js'

/** Every command line that must not change anything, with the project that `purge` is to be asked for. */
function previews(project: string): readonly (readonly string[])[] {
  return [
    ['status'],
    ['status', '--top', '5'],
    ['list'],
    ['verify'],
    ['verify', '--quick'],
    ['verify', '--sample', '50%'],
    ['doctor'],
    ['cap'],
    ['cap', '--max', '1', '--quiet-period', '0s'],
    ['expire'],
    ['expire', '--older-than', '1d', '--no-trash', '--no-grace', '--no-clock-check', '--max-delete', '100%'],
    ['purge', project],
    ['purge', project, '--recursive', '--memory', '--shared', '--no-trash'],
    ['trash', 'list'],
    ['trash', 'empty'],
    ['trash', 'empty', '--older-than', '0s'],
    ['run', 'nightly'],
  ]
}

describe('without --apply', () => {
  it('R16, R58: no command changes anything in a made store, nor makes our own folder', async () => {
    const { home, root, cli } = await notes()
    const before = snapshotTree(home)
    for (const argv of previews('/home/u/notes')) {
      const { exitCode } = await cli(...argv, '--root', root)
      expect([argv, exitCode]).toEqual([argv, 0])
      sameTree(home, before)
    }
    await cli('show', S1, '--files', '--root', root)
    sameTree(home, before)
    expect(existsSync(join(root, '.rewind-admin'))).toBe(false)
  })

  it.each([
    ['1.0.128', 'tui'],
    ['2.0.64', 'cap2'],
    ['2.1.332', 'mixed'],
    ['2.1.332', 'rewound'],
  ])('R16, R58: no command changes anything in the corpus store %s/%s, nor in the working tree it is about', async (version, scenario) => {
    const { home, root, tree, project } = await extractStore(version, scenario)
    const before = [snapshotTree(home), snapshotTree(tree)] as const
    for (const argv of previews(project)) {
      // 1.0.128 holds a lossy backup, which is a finding.
      expect([argv, [0, 1]]).toEqual([argv, expect.arrayContaining([(await cliIn(home)(...argv, '--root', root)).exitCode])])
    }
    sameTree(home, before[0])
    sameTree(tree, before[1])
  })

  it('a preview leaves our own folder alone where there is one: lock, ledger, seals and trash keep their times', async () => {
    const { home, root, cli } = await notes()
    await cli('run', 'nightly', '--apply', '--root', root)
    const before = snapshotTree(home)
    for (const argv of previews('/home/u/notes')) await cli(...argv, '--root', root)
    sameTree(home, before)
  })

  it('--plan-out and --removed-out of a preview write their files and nothing else', async () => {
    const { root, cli } = await notes()
    const out = await temporaryFolder()
    const before = snapshotTree(root)
    const { exitCode } = await cli('expire', '--plan-out', join(out, 'plan.json'), '--removed-out', join(out, 'removed'), '--root', root)
    expect(exitCode).toBe(0)
    sameTree(root, before)
    expect(readdirSync(out).sort()).toEqual(['plan.json', 'removed'])
    expect(readFileSync(join(out, 'removed'), 'utf8')).toBe('')
  })

  it('the same plan is shown as is carried out', async () => {
    const { root, cli } = await notes()
    const preview = await cli.json('expire', '--root', root)
    const done = await cli.json('expire', '--apply', '--root', root)
    expect([preview.applied, done.applied]).toEqual([false, true])
    expect(done.plan).toEqual(preview.plan)
    expect(done.kept).toEqual(preview.kept)
  })

  it('says that nothing was changed, and how to act', async () => {
    const { root, cli } = await notes()
    for (const argv of [['expire'], ['purge', '/home/u/notes'], ['run', 'nightly']]) {
      const { stdout } = await cli(...argv, '--root', root)
      expect(stdout).toContain('a preview, nothing was changed')
      expect(stdout.trimEnd().split('\n').at(-1)).toMatch(/--apply/)
      expect((await cli(...argv, '--quiet', '--root', root)).stdout).toContain('Plan: ')
    }
  })

  it('cap shows what would go; with --apply the backups go, and every checkpoint that is kept is whole', async () => {
    const root = await emptyRoot()
    const project = await temporaryFolder()
    const agent = new SimulatedAgent({ root, project, generation: 'G2', seed: 'cap' })
    agent.prompt('start')
    agent.write('list.md', 'robin\n')
    for (let turn = 1; turn <= 8; turn += 1) {
      agent.prompt(`turn ${String(turn)}`)
      agent.edit('list.md', 'robin\n', `robin\nline ${String(turn)}\n`)
    }
    agent.end()
    const cli = cliIn(dirname(root))
    const before = snapshotTree(root)
    const preview = await cli.json('cap', '--max', '3', '--root', root)
    expect(preview).toMatchObject({ exitCode: 0, applied: false, summary: { overCap: 1 } })
    sameTree(root, before)
    const done = await cli.json('cap', '--max', '3', '--apply', '--root', root)
    expect(done.plan).toEqual(preview.plan)
    const { checkpoints } = await cli.json('show', agent.session, '--root', root)
    expect((checkpoints as { restorable: boolean }[]).map(({ restorable }) => restorable).slice(-3)).toEqual([true, true, true])
    const verify = await cli.json('verify', '--root', root)
    expect(verify.findings.map(({ id }) => id)).not.toContain('contradicts-transcript')
    await cli('trash', 'restore', done.runId ?? '', '--root', root)
    expect((await cli.json('cap', '--max', '3', '--root', root)).plan).toEqual(preview.plan)
  })

  it('cap of a number that keeps nothing ends with 2', async () => {
    const { root, cli } = await notes()
    for (const max of ['0', '-1', '1.5']) expect([max, (await cli('cap', `--max=${max}`, '--root', root)).exitCode]).toEqual([max, 2])
  })

  it('run of a sample store where there is none says so, ends with 0 and leaves nothing behind', async () => {
    const home = await temporaryFolder()
    const before = snapshotTree(home)
    const { exitCode, stdout } = await cliIn(home)('run', 'nightly', '--sample-if-none')
    expect(exitCode).toBe(0)
    expect(stdout).toContain('This is the job on a sample store.')
    for (const step of ['recover', 'verify-quick', 'cap', 'expire', 'empty-trash']) expect(stdout).toContain(step)
    expect(stdout).not.toContain('--apply')
    sameTree(home, before)
    expect((await cliIn(home)('run', 'nightly', '--sample-if-none', '--apply')).exitCode).toBe(10)
    expect(existsSync(stdout.split('\n').find((line) => line.startsWith('/')) ?? '/')).toBe(false)
  })

  it('run of a job that is not known ends with 2 and names those that are', async () => {
    const { root, cli } = await notes()
    const { exitCode, stderr } = await cli('run', 'nightley', '--root', root)
    expect(exitCode).toBe(2)
    expect(stderr).toContain('nightly')
  })

  it('a session that a preview would keep for its brake is still shown, with exit code 4', async () => {
    const root = await emptyRoot()
    for (let index = 0; index < 60; index += 1) {
      const id = uuidOf(`brake/${String(index)}`)
      writeTranscript(root, '-p', id, [userLine('m', { session: id, time: oldTime })], { mtime: oldTime })
    }
    writeTranscript(root, '-p', S1, [userLine('m', { session: S1, time: '2026-11-29T09:00:00.000Z' })], { mtime: '2026-11-29T09:00:00.000Z' })
    const cli = cliIn(dirname(root))
    const report = await cli.json('expire', '--root', root)
    expect(report).toMatchObject({ exitCode: 4, errors: [{ code: 'BRAKE' }], applied: false })
    expect(report.plan).toHaveLength(60)
  })
})
