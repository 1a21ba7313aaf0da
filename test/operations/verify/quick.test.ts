import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import * as damage from '../../helpers/damage.js'
import { H, setTime, writeBackup, writeStoreFile } from '../../helpers/store.js'
import { sameTree, snapshotTree } from '../../helpers/tree.js'
import { backupPath, goodStore, type GoodStore } from './good-store.js'
import { check, found, now, sealed } from './verifying.js'

describe('--quick', () => {
  async function sealedStore(): Promise<GoodStore> {
    const store = await goodStore()
    writeBackup(store.root, store.session, `${H}@v7`, 'x')
    await check(store.root, { seal: true })
    return store
  }

  test('an unchanged session is taken as good without reading it, with what was found before', async () => {
    const store = await sealedStore()
    const report = await check(store.root, { quick: true })
    expect(report.summary).toMatchObject({ sessions: 1, unchanged: 1, digested: 0, backups: 8, sealed: 8 })
    expect(found(report)).toEqual([`unreferenced-backup ${backupPath(store, `${H}@v7`)}`])
  })

  test('without seals it checks names and references, and reads no content', async () => {
    const store = await goodStore()
    damage.removeBackup(store.root, store.session, store.second)
    damage.flipBit(store.root, store.session, store.first)
    const report = await check(store.root, { quick: true })
    expect(found(report)).toEqual([`missing-backup ${backupPath(store, store.second)}`])
    expect(report.summary).toMatchObject({ unchanged: 0, digested: 0 })
  })

  const changes: readonly (readonly [string, (store: GoodStore) => void, (store: GoodStore) => string])[] = [
    ['another size', (s) => { writeFileSync(damage.backupOf(s.root, s.session, s.second), 'longer than before\n') }, (s) => `changed-after-seal ${backupPath(s, s.second)}`],
    ['another time', (s) => {
      damage.flipBit(s.root, s.session, s.second)
      setTime(damage.backupOf(s.root, s.session, s.second), now)
    }, (s) => `changed-after-seal ${backupPath(s, s.second)}`],
    ['another inode, same bytes elsewhere', (s) => {
      const bytes = readFileSync(damage.backupOf(s.root, s.session, s.second))
      damage.removeBackup(s.root, s.session, s.second)
      writeBackup(s.root, s.session, s.second, Buffer.concat([bytes.subarray(1), Buffer.from('!')]))
    }, (s) => `changed-after-seal ${backupPath(s, s.second)}`],
    ['a backup gone', (s) => { damage.removeBackup(s.root, s.session, s.second) }, (s) => `missing-backup ${backupPath(s, s.second)}`],
    ['a link in its place', (s) => { damage.replaceBySymlink(s.root, s.session, s.second, 'x') }, (s) => `not-regular ${backupPath(s, s.second)}`],
    ['a foreign file', (s) => { writeStoreFile(s.root, backupPath(s, 'mine'), 'x') }, (s) => `foreign-file ${backupPath(s, 'mine')}`],
    ['a transcript that was written to', (s) => { damage.snapshotWithoutMessage(s.root, s.session, 'x'); damage.appendLines(s.root, s.session, '{"cut') }, (s) =>
      `damaged-line projects/${s.agent.slug}/${s.session}.jsonl`],
  ]
  test.each(changes)('%s is found', async (_, act, expected) => {
    const store = await sealedStore()
    act(store)
    const report = await check(store.root, { quick: true })
    expect(found(report)).toEqual([expected(store), `unreferenced-backup ${backupPath(store, `${H}@v7`)}`].sort())
    expect(report.summary.unchanged).toBe(0)
  })

  test('a change in place that keeps size and time is not found, but by the full pass it is', async () => {
    const store = await sealedStore()
    damage.flipBit(store.root, store.session, store.last)
    expect(found(await check(store.root, { quick: true }))).toEqual([`unreferenced-backup ${backupPath(store, `${H}@v7`)}`])
    expect(found(await check(store.root))).toContain(`changed-after-seal ${backupPath(store, store.last)}`)
  })

  test('only what changed is read again', async () => {
    const store = await sealedStore()
    setTime(damage.backupOf(store.root, store.session, store.second), now)
    const report = await check(store.root, { quick: true })
    expect(report.summary).toMatchObject({ digested: 1, errors: 0 })
  })

  test('with seals it reads and seals what is new', async () => {
    const store = await sealedStore()
    writeBackup(store.root, store.session, `${H}@v8`, 'new')
    const report = await check(store.root, { quick: true, seal: true })
    expect(report.summary.digested).toBe(1)
    expect(sealed(store.root, store.session)).toContain(`${H}@v8`)
  })

  test('after the agent evicted backups a session can be unchanged again', async () => {
    const store = await sealedStore()
    damage.removeBackup(store.root, store.session, `${H}@v7`)
    await check(store.root, { seal: true })
    expect((await check(store.root, { quick: true })).summary.unchanged).toBe(1)
  })

  test('it writes nothing', async () => {
    const store = await sealedStore()
    chmodSync(join(store.root, '.rewind-admin'), 0o700)
    const before = snapshotTree(store.root)
    await check(store.root, { quick: true })
    sameTree(store.root, before)
  })
})
