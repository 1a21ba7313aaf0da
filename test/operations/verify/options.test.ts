import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { NoMatchError, NoStoreError, UsageError } from '../../../src/model/errors.js'
import type { Finding, FindingId, Severity } from '../../../src/model/finding.js'
import { fingerprint } from '../../../src/operations/verify/options.js'
import * as damage from '../../helpers/damage.js'
import { uuidOf } from '../../helpers/identity.js'
import { emptyRoot, H, S1, S2, snap, userLine, writeBackup, writeStoreFile, writeTranscript } from '../../helpers/store.js'
import { goodStore } from './good-store.js'
import { check, found } from './verifying.js'

/** Two sessions, `S1` with a missing backup and `S2` without checkpoints. */
async function twoSessions(): Promise<string> {
  const root = await emptyRoot()
  writeTranscript(root, '-p', S1, [userLine(S2, { cwd: '/p/one' }), snap(S2, { '/x/a': `${H}@v2` })])
  mkdirSync(join(root, 'file-history', S1))
  writeTranscript(root, '-q', S2, [userLine('m1', { session: S2, cwd: '/p/two' })])
  writeStoreFile(root, 'projects/-p/notes.md', 'mine')
  return root
}

const missing = `missing-backup file-history/${S1}/${H}@v2`
const hint = `path-hash-differs projects/-p/${S1}.jsonl`
const bare = `no-checkpoints projects/-q/${S2}.jsonl`
const foreign = 'foreign-file projects/-p/notes.md'

describe('which sessions', () => {
  test('all of them, unless some are named by id or unique prefix', async () => {
    const root = await twoSessions()
    expect(found(await check(root))).toEqual([foreign, missing, bare, hint].sort())
    expect(found(await check(root, { sessions: [S2] }))).toEqual([bare])
    expect(found(await check(root, { sessions: ['1111'] }))).toEqual([missing, hint])
    expect((await check(root, { sessions: [S1, '1', S1] })).summary.sessions).toBe(1)
  })

  test('only those of a project', async () => {
    const root = await twoSessions()
    expect(found(await check(root, { project: '/p/two' }))).toEqual([bare])
    await expect(check(root, { project: '/p' })).rejects.toThrow(NoMatchError)
  })

  test('a prefix of several is refused with their names, one of none matches nothing', async () => {
    const root = await twoSessions()
    writeTranscript(root, '-p', S1.replace('1111-4', '1112-4'), [])
    await expect(check(root, { sessions: ['1111'] })).rejects.toThrow(UsageError)
    await expect(check(root, { sessions: ['1111'] })).rejects.toThrow(S1)
    await expect(check(root, { sessions: ['9'] })).rejects.toThrow(NoMatchError)
    expect((await check(root, { sessions: [S1] })).summary.sessions).toBe(1)
  })

  test('R18: nothing recognised in a store that is not empty is an error of its own', async () => {
    const root = await emptyRoot()
    expect((await check(root)).exitCode).toBe(0)
    writeStoreFile(root, `projects/-p/${S1}.jsonl.zst`, 'x')
    await expect(check(root)).rejects.toThrow(NoStoreError)
    await expect(check(root)).rejects.toMatchObject({ exitCode: 10, code: 'NO_STORE' })
  })
})

describe('what counts as failure', () => {
  const rows: readonly (readonly [Severity, number])[] = [['error', 0], ['warn', 1], ['info', 1]]
  test.each(rows)('--fail-on %s', async (failOn, exitCode) => {
    const store = await goodStore()
    damage.makeOrphanFolder(store.root, S2, `${H}@v1`)
    expect((await check(store.root, { failOn })).exitCode).toBe(exitCode)
    expect((await goodStore()).report.exitCode).toBe(0)
  })

  test('information fails only where it was asked for', async () => {
    const store = await goodStore()
    writeBackup(store.root, store.session, `${H}@v7`, 'x')
    expect((await check(store.root, { failOn: 'warn' })).exitCode).toBe(0)
    expect((await check(store.root, { failOn: 'info' })).exitCode).toBe(1)
  })

  test('--severity changes what a kind of finding counts as, or drops it', async () => {
    const root = await twoSessions()
    const severities = new Map<FindingId, Severity>([['missing-backup', 'info'], ['foreign-file', 'error'], ['no-checkpoints', 'ignore'], ['path-hash-differs', 'ignore']])
    const report = await check(root, { severities })
    expect(report.findings.map(({ id, severity }) => `${severity} ${id}`).sort()).toEqual(['error foreign-file', 'info missing-backup'])
    expect(report.summary).toMatchObject({ errors: 1, information: 1, warnings: 0 })
    expect(report.exitCode).toBe(1)
  })

  test('a severity that is asked for is stronger than --require-checkpoints', async () => {
    const root = await twoSessions()
    const severities = new Map<FindingId, Severity>([['no-checkpoints', 'warn']])
    const report = await check(root, { sessions: [S2], severities, requireCheckpoints: true })
    expect(report.findings.map(({ severity }) => severity)).toEqual(['warn'])
  })

  test('a newer format alone ends with its own code, together with damage with that of findings', async () => {
    const store = await goodStore()
    damage.unknownHistoryLine(store.root, store.session, store.second)
    expect((await check(store.root)).exitCode).toBe(12)
    damage.removeBackup(store.root, store.session, store.second)
    expect((await check(store.root)).exitCode).toBe(1)
  })
})

describe('--baseline', () => {
  test('known findings are counted and no more reported; new ones are', async () => {
    const root = await twoSessions()
    const baseline = new Set((await check(root)).findings.map(fingerprint))
    const again = await check(root, { baseline })
    expect([again.findings, again.exitCode, again.summary.accepted]).toEqual([[], 0, 4])
    damage.makeOrphanFolder(root, uuidOf('orphan'), `${H}@v1`)
    expect((await check(root, { baseline })).findings.map(({ id }) => id)).toEqual(['orphan-backups'])
  })

  test('a finding is known by kind, session and path, not by its words or offset', () => {
    const one: Finding = { id: 'damaged-line', severity: 'warn', session: S1, place: { path: 'p', offset: 1 }, message: 'a' }
    expect(fingerprint({ ...one, place: { path: 'p', offset: 9 } })).toBe(fingerprint(one))
    for (const other of [{ ...one, session: S2 }, { ...one, place: { path: 'q' } }, { ...one, id: 'nul-run' as const }]) expect(fingerprint(other)).not.toBe(fingerprint(one))
  })
})

describe('stopping early', () => {
  async function manyErrors(): Promise<string> {
    const root = await emptyRoot()
    for (let index = 0; index < 30; index += 1) {
      const session = uuidOf(`session ${String(index)}`)
      writeTranscript(root, '-p', session, [userLine(S2, { session }), snap(S2, { a: `${H}@v2` })])
    }
    return root
  }

  test('--max-errors ends the run, and the report says that it is not complete', async () => {
    const root = await manyErrors()
    const report = await check(root, { maxErrors: 3 })
    expect(report.summary).toMatchObject({ errors: 3, sessions: 3, complete: false })
    expect(report.exitCode).toBe(1)
    expect((await check(root, { maxErrors: 31 })).summary).toMatchObject({ errors: 30, complete: true })
  })

  test('a signal ends the run after the session in work', async () => {
    const abort = new AbortController()
    const report = await check(await manyErrors(), {}, { signal: abort.signal, progress: (done) => { if (done === 2) abort.abort() } })
    expect(report.summary).toMatchObject({ sessions: 2, complete: false })
  })

  test('a run that was ended seals nothing', async () => {
    const root = await manyErrors()
    await check(root, { seal: true, maxErrors: 1 })
    expect(existsSync(join(root, '.rewind-admin'))).toBe(false)
  })

  test('progress counts every session, up to the last', async () => {
    const seen: (readonly [number, number])[] = []
    await check(await manyErrors(), {}, { progress: (...step) => seen.push(step) })
    expect(seen).toEqual(Array.from({ length: 30 }, (_, index) => [index + 1, 30]))
  })
})
