import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { writeSampleStore, type SampleStore } from '../../../src/formats/claude-code/sample.js'
import { SimulatedAgent } from '../../helpers/agent.js'
import { addNulRun, flipBit, removeBackup } from '../../helpers/damage.js'
import { emptyRoot } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { sameTree, snapshotTree } from '../../helpers/tree.js'
import { agentsView, cliIn, now, type Cli } from '../world.js'

// The third state of depths.txt in the sample: what its first two edits wrote.
const depths = 'north 40 cm\nsouth 55 cm\n'

async function sample(): Promise<SampleStore & { readonly cli: Cli; readonly place: string; readonly path: string }> {
  const home = await temporaryFolder()
  const store = writeSampleStore(home, now)
  const place = `file-history/${store.missing.session}/${store.missing.backup}`
  return { ...store, cli: cliIn(home), place, path: join(store.root, place) }
}

/** `notes.txt` in bytes as given, changed by two messages; version 1 is proven by the transcript. */
async function edited(content: Buffer | string): Promise<{ readonly root: string; readonly agent: SimulatedAgent; readonly cli: Cli; readonly first: string }> {
  const root = await emptyRoot()
  const project = join(dirname(root), 'project')
  mkdirSync(project)
  const agent = new SimulatedAgent({ root, project, generation: 'G4' })
  agent.external('notes.txt', content)
  for (const [from, to] of [['one', 'ONE'], ['two', 'TWO']] as const) {
    agent.prompt('go on')
    agent.edit('notes.txt', from, to)
  }
  agent.prompt('last')
  agent.end()
  return { root, agent, cli: cliIn(dirname(root)), first: agent.backupName('notes.txt', 1) }
}

describe('repair', () => {
  it('of the sample store: previewed it names the proof and writes nothing; applied, the missing backup is back', async () => {
    const { root, home, cli, missing, place, path } = await sample()
    const before = snapshotTree(home)
    const preview = await cli.json('repair', '--root', root)
    expect(preview).toMatchObject({ command: 'repair', applied: false, exitCode: 0, summary: { rebuildable: 1, notProven: 0, done: 0 }, plan: [{ action: 'rebuild', path: place, session: missing.session, bytes: depths.length }] })
    const { stdout } = await cli('repair', '--root', root)
    expect(stdout).toContain('a preview, nothing was changed')
    expect(stdout).toContain(place)
    expect(stdout.trimEnd().split('\n').at(-1)).toBe('Run it again with --apply to act.')
    sameTree(home, before)
    expect(await cli.json('repair', '--apply', '--root', root)).toMatchObject({ applied: true, exitCode: 0, summary: { done: 1 }, plan: [{ path: place }], errors: [] })
    expect(createHash('sha256').update(readFileSync(path)).digest('hex')).toBe(createHash('sha256').update(depths).digest('hex'))
    const { findings } = await cli.json('verify', missing.session, '--root', root)
    expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
    const after = agentsView(root)
    expect(await cli.json('repair', '--apply', '--root', root)).toMatchObject({ exitCode: 0, plan: [], summary: { rebuildable: 0, done: 0 } })
    expect(agentsView(root)).toEqual(after)
  })

  it('of one session leaves the others alone', async () => {
    const { root, cli, sessions, missing, path } = await sample()
    const other = sessions.find(({ id }) => id !== missing.session)?.id ?? ''
    expect(await cli.json('repair', other, '--apply', '--root', root)).toMatchObject({ exitCode: 0, plan: [], summary: { sessions: 1 } })
    expect(existsSync(path)).toBe(false)
    expect(await cli.json('repair', missing.session.slice(0, 8), '--apply', '--root', root)).toMatchObject({ plan: [{}] })
    expect(existsSync(path)).toBe(true)
  })

  it('of two stores repairs both, and says which path is in which', async () => {
    const one = await sample()
    const two = await edited('one\ntwo\n')
    removeBackup(two.root, two.agent.session, two.first)
    const report = await one.cli.json('repair', '--apply', '--root', one.root, '--root', two.root)
    expect(report).toMatchObject({ root: [one.root, two.root], exitCode: 0, applied: true, summary: { done: 2 } })
    expect(report.plan.map(({ path }) => String(path).includes(two.first))).toEqual([false, true])
    expect([existsSync(one.path), readFileSync(join(two.agent.backups, two.first), 'utf8')]).toEqual([true, 'one\ntwo\n'])
  })

  it('refuses a latin-1 text: it was decoded with losses, so the finding stays and the exit code is 1', async () => {
    const { root, agent, cli, first } = await edited(Buffer.from('one\ntwo caf\u00e9\n', 'latin1'))
    removeBackup(root, agent.session, first)
    const report = await cli.json('repair', '--apply', '--root', root)
    expect(report).toMatchObject({ exitCode: 1, plan: [], summary: { rebuildable: 0, notProven: 1, done: 0 } })
    expect(report.findings).toMatchObject([{ severity: 'error', session: agent.session }])
    expect(existsSync(join(agent.backups, first))).toBe(false)
  })

  it('a damaged backup goes to the trash, and trash restore finds it there', async () => {
    const { root, agent, cli, first } = await edited('one\ntwo\n')
    flipBit(root, agent.session, first, 1)
    const damaged = readFileSync(join(agent.backups, first))
    const { runId = '', exitCode } = await cli.json('repair', '--apply', '--root', root)
    expect([exitCode, readFileSync(join(agent.backups, first), 'utf8')]).toEqual([0, 'one\ntwo\n'])
    expect(damaged.toString()).not.toBe('one\ntwo\n')
    expect((await cli.json('trash', 'list', '--root', root)).entries).toMatchObject([{ runId }])
  })

  it('--transcripts mends NUL runs in a quiet transcript, the old one waits in the trash', async () => {
    const { root, agent, cli } = await edited('one\ntwo\n')
    const good = readFileSync(agent.transcript)
    addNulRun(root, agent.session, 3, 4096)
    const broken = readFileSync(agent.transcript)
    expect(await cli.json('repair', '--transcripts', '--root', root)).toMatchObject({ applied: false, plan: [{ action: 'mend', session: agent.session }] })
    expect(readFileSync(agent.transcript)).toEqual(broken)
    expect(await cli.json('repair', '--transcripts', '--apply', '--root', root)).toMatchObject({ exitCode: 0, summary: { mendable: 1, done: 1 } })
    expect(readFileSync(agent.transcript)).toEqual(good)
    expect((await cli.json('trash', 'list', '--root', root)).entries).toHaveLength(1)
  })

  it('a session that is none is an error', async () => {
    const { root, cli } = await sample()
    renameSync(join(root, 'settings.json'), join(root, 'settings.json.old'))
    expect((await cli('repair', 'ffff', '--root', root)).exitCode).toBe(1)
  })
})
