import { existsSync, lstatSync, readFileSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readState, stateFile } from '../../../src/operations/state-file.js'
import { corpusStores, extractStore } from '../../helpers/corpus.js'
import { openStore, storeTree } from '../../helpers/removal.js'
import { H, S1, emptyRoot, snap, userLine, writeBackup, writeTranscript } from '../../helpers/store.js'
import { snapshotTree } from '../../helpers/tree.js'
import { cliIn } from '../../cli/world.js'

const scenarios = corpusStores('claude-code')


describe.each(scenarios.map(({ version, scenario }) => [version, scenario] as const))('%s %s', (version, scenario) => {
  test('a state of our own is a preview without --apply, lies in the sidecar alone, and a second run has nothing to do', async () => {
    const { home, root } = await extractStore(version, scenario)
    const cli = cliIn(home)
    const before = snapshotTree(home)
    const store = storeTree(root)
    const preview = await cli.json('migrate', '--root', root)
    expect(preview.exitCode).toBe(0)
    expect(snapshotTree(home)).toEqual(before)
    const applied = await cli.json('migrate', '--root', root, '--apply')
    expect(applied).toMatchObject({ exitCode: 0, errors: [] })
    expect(applied.plan).toEqual(preview.plan)
    expect(storeTree(root)).toEqual(store)
    expect((await cli.json('migrate', '--root', root)).plan).toEqual([])
  })
})

test('checkpoints outlive a transcript that was swept: show and rewind use the state and say so', async () => {
  const { home, root } = await extractStore('2.1.332', scenarios.find(({ version }) => version === '2.1.332')?.scenario ?? '')
  const cli = cliIn(home)
  const store = openStore(root)
  const [session] = store.inventory().sessions.filter(({ members }) => members.some(({ kind }) => kind === 'backups'))
  if (session === undefined) throw new Error('no session with backups')
  const before = await cli.json('show', session.id, '--root', root)
  await cli.json('migrate', '--root', root, '--apply')
  for (const { kind, path } of session.members) if (kind === 'transcript') rmSync(join(root, path))
  const after = await cli.json('show', session.id, '--root', root)
  const filesOf = (envelope: typeof before): unknown => (envelope.checkpoints as { id: string; files: unknown }[]).map(({ id, files }) => ({ id, files }))
  expect(filesOf(after)).toEqual(filesOf(before))
  expect(after.findings).toContainEqual(expect.objectContaining({ id: 'checkpoints-from-state' }))
  const target = (before.checkpoints as { id: string }[])[0]?.id ?? ''
  const rewound = await cli.json('rewind', session.id, target, '--scope', 'code', '--root', root)
  expect(rewound.summary).toMatchObject({ checkpoint: target })
})

test('a state that cannot be used is kept beside the new one, one of a newer version stays as it is', async () => {
  const { home, root } = await extractStore('2.1.332', scenarios.find(({ version }) => version === '2.1.332')?.scenario ?? '')
  const cli = cliIn(home)
  await cli.json('migrate', '--root', root, '--apply')
  const store = openStore(root)
  const session = readdirSync(join(store.sidecar, 'states'))[0] ?? ''
  const file = stateFile(store, session)
  expect(lstatSync(file).mode & 0o7777).toBe(0o600)

  truncateSync(file, 10)
  const damaged = readFileSync(file)
  expect(readState(store, session)).toMatchObject({ kind: 'unusable' })
  await cli.json('migrate', '--root', root, '--apply')
  expect(readState(store, session)).toMatchObject({ kind: 'state' })
  const aside = readdirSync(dirname(file)).find((name) => name.endsWith('.unusable')) ?? ''
  expect(readFileSync(join(dirname(file), aside))).toEqual(damaged)

  const newer = '{"schemaVersion":99}\n'
  writeFileSync(file, newer)
  expect((await cli.json('migrate', '--root', root, '--apply')).plan).toEqual([])
  expect(readFileSync(file, 'utf8')).toBe(newer)
  expect(existsSync(file)).toBe(true)
})

test('verify knows the checkpoints of the state: a backup that only it names is in use, a lost one is reported', async () => {
  const root = await emptyRoot()
  const cli = cliIn(join(root, '..'))
  const old = { mtime: Date.parse('2026-11-20T00:00:00Z') }
  writeTranscript(root, '-p', S1, [userLine('m1'), snap('m1', { 'a.txt': `${H}@v1` }), userLine('m2'), snap('m2', { 'a.txt': `${H}@v2` })], old)
  for (const version of [1, 2]) writeBackup(root, S1, `${H}@v${String(version)}`, String(version), old)
  await cli.json('migrate', '--root', root, '--apply')
  writeTranscript(root, '-p', S1, [userLine('m2'), snap('m2', { 'a.txt': `${H}@v2` })], old)
  const ids = async (): Promise<unknown[]> => (await cli.json('verify', '--root', root)).findings.map(({ id }) => id)
  expect(await ids()).toContain('checkpoints-from-state')
  expect(await ids()).not.toContain('unreferenced-backup')
  rmSync(join(root, 'file-history', S1, `${H}@v1`))
  expect(await ids()).toContain('missing-backup')
})
