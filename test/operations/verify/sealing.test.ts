import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Machine } from '../../../src/formats/format.js'
import { NewerFormatError } from '../../../src/model/errors.js'
import { SealStore } from '../../../src/operations/seals.js'
import * as damage from '../../helpers/damage.js'
import { uuidOf } from '../../helpers/identity.js'
import { emptyRoot, H, S2, setTime, snap, userLine, writeBackup, writeStoreFile, writeTranscript } from '../../helpers/store.js'
import { sameTree, snapshotTree } from '../../helpers/tree.js'
import { goodStore } from './good-store.js'
import { check, found, now, quietMachine, sealed, sealFile } from './verifying.js'

describe('--sample', () => {
  test('buckets digest a part each, together all, and find what lies in them', async () => {
    const store = await goodStore()
    damage.flipBit(store.root, store.session, store.first)
    let digested = 0
    let errors = 0
    for (let number = 1; number <= 4; number += 1) {
      const { summary } = await check(store.root, { sample: { kind: 'bucket', number, of: 4 } })
      digested += Number(summary.digested)
      errors += Number(summary.errors)
    }
    expect([digested, errors]).toEqual([store.report.summary.backups, 1])
  })

  test('a size limit begins at another session each time, so that in time all are read', async () => {
    const root = await emptyRoot()
    for (let index = 0; index < 10; index += 1) {
      const session = uuidOf(`session ${String(index)}`)
      writeTranscript(root, '-p', session, [userLine(S2, { session }), snap(S2, { a: `${H}@v1` })])
      writeBackup(root, session, `${H}@v1`, 'x'.repeat(100))
    }
    const sealedBy = async (place: number): Promise<string[]> => {
      await check(root, { seal: true, sample: { kind: 'bytes', bytes: 100 } }, { random: () => place })
      return readdirSync(join(root, '.rewind-admin', 'seals'))
    }
    for (let index = 0; index < 10; index += 1) await sealedBy((index + 0.5) / 10)
    expect((await check(root)).summary).toMatchObject({ backups: 10, sealed: 10 })
  })
})

describe('seals', () => {
  test('every backup is sealed, in a folder of our own that nobody else can enter', async () => {
    const store = await goodStore()
    await check(store.root, { seal: true })
    expect(sealed(store.root, store.session)).toEqual(readdirSync(store.agent.backups).sort())
    const modes = ['.rewind-admin', '.rewind-admin/seals'].map((path) => statSync(join(store.root, path)).mode & 0o777)
    expect([...modes, statSync(sealFile(store.root, store.session)).mode & 0o777]).toEqual([0o700, 0o700, 0o600])
    expect((await check(store.root)).summary).toMatchObject({ sealed: 7, digested: 7 })
  })

  test('sealing twice changes nothing, and no seal is given up for another digest', async () => {
    const store = await goodStore()
    await check(store.root, { seal: true })
    const before = snapshotTree(join(store.root, '.rewind-admin'))[`seals/${SealStore.shardOf(store.session)}.json`]?.sha256
    await check(store.root, { seal: true })
    expect(snapshotTree(join(store.root, '.rewind-admin'))[`seals/${SealStore.shardOf(store.session)}.json`]?.sha256).toBe(before)
  })

  test('a live session\'s young backups wait; a minute later they are sealed', async () => {
    const store = await goodStore()
    const young = damage.backupOf(store.root, store.session, store.last)
    setTime(young, now - 30_000)
    writeStoreFile(store.root, 'sessions/4242.json', JSON.stringify({ pid: 4242, sessionId: store.session, procStart: '7', pidDomain: 'tests', updatedAt: now }))
    const machine: Machine = { processStart: () => '7', processExists: (pid) => pid === 4242, pidDomain: 'tests' }
    await check(store.root, { seal: true }, { machine })
    expect(sealed(store.root, store.session)).toEqual(readdirSync(store.agent.backups).filter((name) => name !== store.last).sort())
    await check(store.root, { seal: true }, { machine, now: now + 31_000 })
    expect(sealed(store.root, store.session)).toContain(store.last)
  })

  test('without a running process young backups are sealed at once', async () => {
    const store = await goodStore()
    setTime(damage.backupOf(store.root, store.session, store.last), now - 1000)
    await check(store.root, { seal: true }, { machine: quietMachine })
    expect(sealed(store.root, store.session)).toContain(store.last)
  })

  test('seals of sessions that are gone are let go, those of backups that the agent removed too; missing ones keep theirs', async () => {
    const store = await goodStore()
    writeTranscript(store.root, '-q', S2, [userLine('m', { session: S2 })])
    writeBackup(store.root, S2, `${H}@v1`, 'x')
    writeBackup(store.root, store.session, `${H}@v7`, 'nobody names it')
    await check(store.root, { seal: true })
    expect([sealed(store.root, S2), sealed(store.root, store.session).includes(`${H}@v7`)]).toEqual([[`${H}@v1`], true])
    damage.removeBackupFolder(store.root, S2)
    damage.removeTranscript(store.root, S2)
    damage.removeBackup(store.root, store.session, `${H}@v7`)
    damage.removeBackup(store.root, store.session, store.second)
    await check(store.root, { seal: true })
    expect([sealed(store.root, S2), sealed(store.root, store.session).includes(`${H}@v7`)]).toEqual([[], false])
    expect(sealed(store.root, store.session)).toContain(store.second)
  })

  test('seals of another session stay when only one is verified', async () => {
    const store = await goodStore()
    writeTranscript(store.root, '-q', S2, [userLine('m', { session: S2 })])
    writeBackup(store.root, S2, `${H}@v1`, 'x')
    await check(store.root, { seal: true })
    await check(store.root, { seal: true, sessions: [store.session] })
    expect(sealed(store.root, S2)).toEqual([`${H}@v1`])
  })

  test('seals of a newer version of ours stop the run and stay as they are', async () => {
    const store = await goodStore()
    await check(store.root, { seal: true })
    const file = sealFile(store.root, store.session)
    const newer = JSON.stringify({ ...(JSON.parse(readFileSync(file, 'utf8')) as object), schemaVersion: 2 })
    writeFileSync(file, newer)
    for (const options of [{}, { seal: true }, { quick: true }]) await expect(check(store.root, options)).rejects.toThrow(NewerFormatError)
    expect(readFileSync(file, 'utf8')).toBe(newer)
  })

  test.each(['', '{"schemaVersion":1,', '{"schemaVersion":1}', '[]', '{"schemaVersion":1,"sessions":{"x":{"backups":{"y":5}}}}'])('a damaged seal file (%j) is reported, and sealed anew on demand only', async (text) => {
    const store = await goodStore()
    await check(store.root, { seal: true })
    const file = sealFile(store.root, store.session)
    writeFileSync(file, text)
    const before = snapshotTree(store.root)
    const report = await check(store.root)
    expect([found(report), report.exitCode]).toEqual([[`sidecar-damaged ${file}`], 0])
    sameTree(store.root, before)
    await check(store.root, { seal: true })
    expect(found(await check(store.root))).toEqual([])
    expect(sealed(store.root, store.session)).toHaveLength(7)
  })
})
