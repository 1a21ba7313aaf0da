import { chmodSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import * as damage from '../../helpers/damage.js'
import { H, S2, snap, userLine, writeTranscript } from '../../helpers/store.js'
import { sameTree, snapshotTree } from '../../helpers/tree.js'
import { asNobody, giveAway, needs } from '../../helpers/unprivileged.js'
import { backupPath, goodStore, transcriptPath } from './good-store.js'
import { check, found } from './verifying.js'

describe('R108: what cannot be read', () => {
  test('an unreadable backup folder is one finding, its session is left alone, the others are processed', async (context) => {
    needs(context, 'unprivileged')
    const store = await goodStore()
    writeTranscript(store.root, '-other', S2, [userLine(S2, { session: S2 }), snap(S2, { a: `${H}@v1` })])
    chmodSync(join(store.root, 'file-history', store.session), 0o000)
    giveAway(dirname(store.root))
    const report = await asNobody(() => check(store.root))
    const errors = report.findings.filter(({ severity }) => severity === 'error').map(({ id, place }) => `${id} ${place?.path ?? ''}`)
    expect(errors.sort()).toEqual([`missing-backup file-history/${S2}/${H}@v1`, `unreadable file-history/${store.session}`])
    expect([report.summary.sessions, report.exitCode]).toEqual([2, 1])
  })

  test('one unreadable backup is neither missing nor damaged', async (context) => {
    needs(context, 'unprivileged')
    const store = await goodStore()
    chmodSync(damage.backupOf(store.root, store.session, store.second), 0o000)
    giveAway(dirname(store.root))
    for (const options of [{}, { quick: true }, { seal: true }, { sample: { kind: 'percent', percent: 100 } as const }]) {
      const report = await asNobody(() => check(store.root, options))
      if ('quick' in options) continue
      expect(found(report)).toEqual([`unreadable ${backupPath(store, store.second)}`])
    }
  })

  test('a project folder that lists its names and nothing more ends no run', async (context) => {
    needs(context, 'unprivileged')
    const store = await goodStore()
    chmodSync(dirname(store.agent.transcript), 0o400)
    giveAway(dirname(store.root))
    for (const options of [{}, { quick: true }, { seal: true }]) {
      const report = await asNobody(() => check(store.root, options))
      expect(found(report)).toContain(`unreadable ${transcriptPath(store)}`)
      expect(report.findings.filter(({ severity }) => severity === 'error')).toHaveLength(1)
    }
  })

  test('an unreadable project folder makes no orphans', async (context) => {
    needs(context, 'unprivileged')
    const store = await goodStore()
    chmodSync(dirname(store.agent.transcript), 0o000)
    giveAway(dirname(store.root))
    expect(found(await asNobody(() => check(store.root)))).toEqual([`unreadable projects/${store.agent.slug}`])
  })
})

describe('links in the store (R55)', () => {
  test('a backup folder that is a link is reported and not entered', async () => {
    const store = await goodStore()
    const outside = join(store.root, '..', 'outside')
    damage.replaceBackupFolderBySymlink(store.root, store.session, outside)
    const before = snapshotTree(outside)
    const report = await check(store.root, { seal: true })
    expect(found(report)).toContain(`not-regular file-history/${store.session}`)
    expect(report.summary).toMatchObject({ backups: 0, digested: 0 })
    sameTree(outside, before)
  })

  test('a transcript that is a link is told, its backups are no orphans', async () => {
    const store = await goodStore()
    const file = damage.transcriptOf(store.root, store.session)
    const outside = join(store.root, '..', 'elsewhere.jsonl')
    writeFileSync(outside, readFileSync(file))
    damage.removeTranscript(store.root, store.session)
    symlinkSync(outside, file)
    expect(found(await check(store.root))).toContain(`not-regular ${transcriptPath(store)}`)
    expect(found(await check(store.root)).some((words) => words.startsWith('orphan'))).toBe(false)
  })
})
