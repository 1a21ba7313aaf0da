import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { cliIn, type Cli, type Envelope } from '../../cli/world.js'
import { readState, stateFile } from '../../../src/operations/state-file.js'
import { uuidOf } from '../../helpers/identity.js'
import { openStore } from '../../helpers/removal.js'
import { H, S1, S2, emptyRoot, setTime, snap, userLine, writeBackup, writeTranscript } from '../../helpers/store.js'

const old = { mtime: Date.parse('2026-11-20T00:00:00Z') }
const at = { session: S1, cwd: '/p' }
const [M1, M2, M3, M4] = ['m1', 'm2', 'm3', 'm4'].map(uuidOf) as [string, string, string, string]

interface World {
  readonly root: string
  readonly cli: Cli
}

/** Four messages, of which our own state knows every checkpoint and the transcript only the third and the fourth. */
async function compacted(): Promise<World> {
  const root = await emptyRoot()
  const cli = cliIn(join(root, '..'))
  const all = [M1, M2, M3, M4].map((id, index) => [userLine(id, { ...at, parent: [null, M1, M2, M3][index] ?? null }), snap(id, { 'a.txt': `${H}@v${String(index + 1)}` })])
  for (const version of [1, 2, 3, 4]) writeBackup(root, S1, `${H}@v${String(version)}`, `text ${String(version)}`, old)
  writeTranscript(root, '-p', S1, all.flat(), old)
  expect((await cli.json('migrate', '--apply')).exitCode).toBe(0)
  writeTranscript(root, '-p', S1, [userLine(M1, at), ...all.slice(2).flat()].map((line) => line.replace(`"parentUuid":"${M2}"`, `"parentUuid":"${M1}"`)), old)
  return { root, cli }
}

function checkpoints(envelope: Envelope): unknown[] {
  return (envelope.checkpoints as { id: string; restorable: boolean }[]).map(({ id, restorable }) => [id, restorable])
}

test('a fork gets the checkpoints that only our own state knows, with their backups; verify is clean, and rewind goes back to them', async () => {
  const { cli } = await compacted()
  expect(checkpoints(await cli.json('show', S1))).toEqual([[M1, true], [M2, true], [M3, true], [M4, true]])
  const report = await cli.json('fork', S1, S2)
  expect(report).toMatchObject({ exitCode: 0, errors: [], summary: { checkpoints: 4, linked: 4 } })
  expect(checkpoints(await cli.json('show', S2))).toEqual([[M1, true], [M2, true], [M3, true], [M4, true]])
  const verified = await cli.json('verify')
  expect(verified.exitCode).toBe(0)
  expect(verified.findings.filter(({ severity }) => severity !== 'info')).toEqual([])
  expect(await cli.json('rewind', S2, M2, '--scope', 'code')).toMatchObject({ exitCode: 0, changes: [{ path: '/p/a.txt', action: 'restore' }] })
  expect((await cli.json('fork', S1, S2)).summary).toMatchObject({ present: 4, linked: 0 })
})

test('the state of the fork outlives its own transcript', async () => {
  const { root, cli } = await compacted()
  await cli.json('fork', S1, S2)
  rmSync(join(root, 'projects', '-p', `${S2}.jsonl`))
  expect(checkpoints(await cli.json('show', S2))).toEqual([[M1, true], [M2, true], [M3, true], [M4, true]])
})

test('a fork that is cut gets those before the cut alone', async () => {
  const { root, cli } = await compacted()
  expect(await cli.json('fork', S1, S2, '--at', M4)).toMatchObject({ exitCode: 0, summary: { checkpoints: 3 } })
  expect(checkpoints(await cli.json('show', S2))).toEqual([[M1, true], [M2, true], [M3, true]])
  const state = readState(openStore(root), S2)
  expect(state.kind === 'state' ? state.state.checkpoints.map(({ id }) => id) : []).toEqual([M1, M2, M3])
  expect((await cli.json('verify')).exitCode).toBe(0)
})

test('a fork that the agent made gets the state as well, and what its own state knows stays', async () => {
  const { root, cli } = await compacted()
  const lines = [userLine(M1, { ...at, session: S2 }), userLine(M3, { ...at, session: S2, parent: M1 }), snap(M3, { 'a.txt': `${H}@v3` })]
  writeTranscript(root, '-p', S2, lines, old)
  writeBackup(root, S2, `${H}@v3`, 'text 3', old)
  setTime(join(root, 'file-history', S2), old.mtime)
  expect(await cli.json('fork', S1, S2)).toMatchObject({ exitCode: 0, summary: { checkpoints: 3, transcript: 'present' } })
  expect(checkpoints(await cli.json('show', S2))).toEqual([[M1, true], [M2, true], [M3, true]])
})

test('without a state of the source the fork has none', async () => {
  const { root, cli } = await compacted()
  rmSync(join(root, '.rewind-admin', 'states'), { recursive: true })
  expect((await cli.json('fork', S1, S2)).exitCode).toBe(0)
  expect(existsSync(stateFile(openStore(root), S2))).toBe(false)
})

test('what a cap of ours removed is no loss in a fork either', async () => {
  const root = await emptyRoot()
  const cli = cliIn(join(root, '..'))
  const ids = [M1, M2, M3, M4]
  writeTranscript(root, '-p', S1, ids.flatMap((id, index) => [userLine(id, { ...at, parent: ids[index - 1] ?? null }), snap(id, { 'a.txt': `${H}@v${String(index + 1)}` })]), old)
  for (const version of [1, 2, 3, 4]) writeBackup(root, S1, `${H}@v${String(version)}`, `text ${String(version)}`, old)
  expect(await cli.json('cap', '--max', '1', '--apply')).toMatchObject({ summary: { backups: 2 } })
  expect(await cli.json('fork', S1, S2)).toMatchObject({ exitCode: 0, errors: [], summary: { linked: 2, missing: 0 } })
  const verified = await cli.json('verify')
  expect(verified.findings.filter(({ id }) => id !== 'path-hash-differs').map(({ id, session }) => [id, session]).sort()).toEqual([S1, S1, S2, S2].map((session) => ['pruned-backup', session]))
})
