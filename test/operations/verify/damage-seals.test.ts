import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import * as damage from '../../helpers/damage.js'
import { S2, writeStoreFile } from '../../helpers/store.js'
import { backupPath, goodStore } from './good-store.js'
import { check, found } from './verifying.js'

describe('damage after sealing (R47)', () => {
  test('one bit over, size and times kept, of each backup: found by its seal, once', async () => {
    const store = await goodStore()
    await check(store.root, { seal: true })
    for (const name of [store.first, store.second, store.last]) {
      damage.flipBit(store.root, store.session, name)
      const report = await check(store.root, { seal: true })
      expect(found(report)).toContain(`changed-after-seal ${backupPath(store, name)}`)
      expect(report.exitCode).toBe(1)
    }
    expect((await check(store.root)).findings).toHaveLength(3)
  })

  test('R47: a backup cut to nothing is found, one that always was empty is not', async () => {
    const store = await goodStore()
    expect(readFileSync(damage.backupOf(store.root, store.session, store.empty))).toHaveLength(0)
    await check(store.root, { seal: true })
    damage.cutToZero(store.root, store.session, store.last)
    const report = await check(store.root)
    expect(found(report)).toEqual([`changed-after-seal ${backupPath(store, store.last)}`])
    expect(report.findings[0]?.message).toContain('empty now')
  })

  test('a damaged backup is never sealed as good, with or without proof', async () => {
    const store = await goodStore()
    damage.flipBit(store.root, store.session, store.first)
    for (let run = 0; run < 3; run += 1) {
      expect(found(await check(store.root, { seal: true }))).toEqual([`contradicts-transcript ${backupPath(store, store.first)}`])
    }
  })

  test('a foreign file in a backup folder is nobody\'s to seal: its owner may change it (R14)', async () => {
    const store = await goodStore()
    const mine = writeStoreFile(store.root, backupPath(store, 'notes.txt'), 'one')
    await check(store.root, { seal: true })
    writeFileSync(mine, 'two')
    expect(found(await check(store.root, { seal: true }))).toEqual([`foreign-file ${backupPath(store, 'notes.txt')}`])
  })

  test('R67: written over through one of two links, the other session is reported too', async () => {
    const store = await goodStore()
    const fork = store.agent.fork(S2)
    fork.end()
    await check(store.root, { seal: true })
    const path = damage.backupOf(store.root, store.session, store.second)
    writeFileSync(path, 'written in place\n')
    expect(found(await check(store.root))).toEqual([
      `changed-after-seal file-history/${S2}/${store.second}`,
      `changed-after-seal file-history/${store.session}/${store.second}`,
    ].sort())
  })
})
