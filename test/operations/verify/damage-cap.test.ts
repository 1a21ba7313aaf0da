import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import * as damage from '../../helpers/damage.js'
import { uuidOf } from '../../helpers/identity.js'
import { emptyRoot, H, S1, S2, snap, userLine, writeBackup, writeTranscript } from '../../helpers/store.js'
import { sameTree, snapshotTree } from '../../helpers/tree.js'
import { backupPath, goodStore, longStore } from './good-store.js'
import { check, found } from './verifying.js'

describe('absent, present, missing (R34)', () => {
  test('R34: null is no damage, a name without a file is, and nothing is rewritten', async () => {
    const root = await emptyRoot()
    writeTranscript(root, '-p', S1, [userLine(S2), snap(S2, { a: null, b: `${H}@v1` })])
    mkdirSync(join(root, 'file-history', S1))
    const before = snapshotTree(root)
    const report = await check(root)
    expect(found(report).filter((words) => !words.startsWith('path-hash'))).toEqual([`missing-backup file-history/${S1}/${H}@v1`])
    expect([report.exitCode, report.findings.find(({ id }) => id === 'missing-backup')?.message]).toEqual([1, 'version 1 of b is not there'])
    sameTree(root, before)
  })

  test('a record that says "did not exist" where a backup stands leaves the backup unreferenced, not missing', async () => {
    const store = await goodStore()
    damage.renameBackupInRecord(store.root, store.session, store.second, null)
    expect(found(await check(store.root))).toEqual([`unreferenced-backup ${backupPath(store, store.second)}`])
  })

  test('R121: no entries are clean, entries without backups are not', async () => {
    const root = await emptyRoot()
    writeTranscript(root, '-p', S1, [userLine('m1')])
    expect((await check(root)).exitCode).toBe(0)
    writeTranscript(root, '-p', S1, [userLine('m1'), snap('m1', { a: `${H}@v1` })])
    expect((await check(root)).exitCode).toBe(1)
  })
})

describe('the cap', () => {
  test('R35: of 150 versions 49 are pruned and none is missing; one removed from inside is', async () => {
    const root = await emptyRoot()
    const numbers = Array.from({ length: 150 }, (_, index) => index + 1)
    const id = (index: number): string => uuidOf(`checkpoint ${String(index)}`)
    writeTranscript(root, '-p', S1, numbers.flatMap((index) => [userLine(id(index)), snap(id(index), { 'a.txt': `${H}@v${String(index)}` })]))
    for (const index of numbers.filter((each) => each === 1 || each > 50)) writeBackup(root, S1, `${H}@v${String(index)}`, `text ${String(index)}`)
    const count = async (): Promise<Record<string, number | undefined>> => {
      const { findings, exitCode } = await check(root)
      const of = (kind: string): number => findings.filter((each) => each.id === kind).length
      return { pruned: of('pruned-backup'), missing: of('missing-backup'), over: of('over-cap'), exitCode }
    }
    expect(await count()).toEqual({ pruned: 49, missing: 0, over: 1, exitCode: 0 })
    damage.removeBackup(root, S1, `${H}@v120`)
    expect(await count()).toEqual({ pruned: 49, missing: 1, over: 1, exitCode: 1 })
    damage.removeBackup(root, S1, `${H}@v1`)
    expect(await count()).toEqual({ pruned: 49, missing: 2, over: 1, exitCode: 1 })
  })

  test('a client that evicts by itself leaves pruned backups and nothing above information', async () => {
    const agent = await longStore(130, 'G4')
    const report = await check(agent.root)
    const kinds = new Map<string, number>()
    for (const { id } of report.findings) kinds.set(id, (kinds.get(id) ?? 0) + 1)
    // Prompt k finds version k; the newest 100 of 130 name versions 31 to 130, and version 1 is never evicted.
    expect(Object.fromEntries(kinds)).toEqual({ 'pruned-backup': 29, 'over-cap': 1 })
    expect(agent.evicted.size).toBe(29)
    expect(report.exitCode).toBe(0)
  })

  test('a line damaged in the old part of a transcript makes no error of what the cap removed', async () => {
    const agent = await longStore(130, 'G4')
    const old = damage.findLine(agent.root, agent.session, (record) => record.type === 'file-history-snapshot' && JSON.stringify(record).includes('@v20'))
    damage.cutLine(agent.root, agent.session, old, damage.linesOf(agent.root, agent.session)[old]?.lastIndexOf(',"isSnapshotUpdate"') ?? 0)
    const report = await check(agent.root)
    expect(report.findings.filter(({ severity }) => severity !== 'info').map(({ id }) => id)).toEqual([expect.stringMatching(/damaged-line|spliced-line/)])
  })

  test('before 2.1.208 nothing is evicted and nothing is missing', async () => {
    const agent = await longStore(105, 'G2')
    expect((await check(agent.root)).findings.map(({ id }) => id)).toEqual(['over-cap'])
  })
})
