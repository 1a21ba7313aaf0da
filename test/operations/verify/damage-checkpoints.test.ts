import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import * as damage from '../../helpers/damage.js'
import {
  assistantLine, delta, emptyRoot, H, H2, S1, S2, setTime, snap, toolResultLine, userLine, writeBackup, writeTranscript,
} from '../../helpers/store.js'
import { goodStore, transcriptPath } from './good-store.js'
import { added, check, found } from './verifying.js'

describe('checkpoints that are not made', () => {
  test('R119: edits days after the last checkpoint', async () => {
    const root = await emptyRoot()
    const day = (of: number): string => `2026-11-0${String(of)}T12:00:00.000Z`
    const edit = (uuid: string, of: number): string => toolResultLine(uuid, { filePath: '/p/a', originalFile: 'x', content: 'y' }, { time: day(of) })
    const talk = Array.from({ length: 200 }, (_, index) => assistantLine(`x${String(index)}`, { time: day(1 + Math.floor(index / 40)) }))
    writeTranscript(root, '-p', S1, [userLine(S2, { time: day(1) }), snap(S2, {}, day(1)), ...talk, edit('u1', 4), edit('u2', 4)])
    const report = await check(root)
    expect(found(report)).toEqual([`checkpointing-stopped projects/-p/${S1}.jsonl`])
    expect(report.findings[0]?.message).toMatch(/^2 edits/)
  })

  test('R120: a session without checkpoints is information with entry point and client, an error on demand', async () => {
    const root = await emptyRoot()
    const edits = Array.from({ length: 20 }, (_, index) => toolResultLine(`u${String(index)}`, { filePath: '/p/a', originalFile: 'x', content: 'y' }, { entrypoint: 'sdk-ts', version: '2.1.100' }))
    writeTranscript(root, '-p', S1, edits)
    const report = await check(root)
    expect([found(report), report.exitCode]).toEqual([[`no-checkpoints projects/-p/${S1}.jsonl`], 0])
    expect(report.findings[0]).toMatchObject({ severity: 'info', message: expect.stringMatching(/sdk-ts.*2\.1\.100/) as string })
    const strict = await check(root, { requireCheckpoints: true })
    expect([strict.findings[0]?.severity, strict.exitCode]).toEqual(['error', 1])
  })

  test('R41: versions from before a compaction are information, not errors', async () => {
    const root = await emptyRoot()
    const lines = [...Array.from({ length: 10 }, (_, index) => userLine(`m${String(index)}`)), JSON.stringify({ type: 'system', subtype: 'compact_boundary', uuid: 'c' })]
    writeTranscript(root, '-p', S1, [...lines, userLine(S2), snap(S2, { a: `${H}@v7` })])
    for (let version = 1; version <= 7; version += 1) writeBackup(root, S1, `${H}@v${String(version)}`, String(version))
    const { findings, exitCode } = await check(root)
    // Version 1 is never an orphan; versions 2 to 6 are.
    expect(findings.filter(({ id }) => id === 'unreferenced-backup')).toHaveLength(5)
    expect([findings.every(({ severity }) => severity === 'info'), exitCode]).toEqual([true, 0])
  })

  test('R51: two consecutive versions with the same bytes and mode are told', async () => {
    const root = await emptyRoot()
    writeTranscript(root, '-p', S1, [userLine(S2), snap(S2, { a: `${H}@v2`, b: `${H2}@v2` }), delta('e', S2, 'c', `${H}@v1`), delta('e', S2, 'd', `${H2}@v1`)])
    for (const [name, mode] of [[`${H}@v1`, 0o644], [`${H}@v2`, 0o644], [`${H2}@v1`, 0o644], [`${H2}@v2`, 0o755]] as const) writeBackup(root, S1, name, 'same', { mode })
    const identical = (await check(root)).findings.filter(({ id }) => id === 'identical-versions')
    expect(identical.map(({ message }) => message)).toEqual([`${H}@v2 has the bytes and mode of the version before`])
  })

  test('R48: a project that moved is a hint', async () => {
    const store = await goodStore()
    const file = damage.transcriptOf(store.root, store.session)
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(store.agent.project, '/srv/p'))
    setTime(file, '2026-11-01T10:00:00.000Z')
    const report = await check(store.root)
    expect(found(report)).toEqual([`path-hash-differs ${transcriptPath(store)}`])
    expect(report.exitCode).toBe(0)
  })
})

test('findings of a good store stay when another session is damaged', async () => {
  const store = await goodStore()
  const before = await check(store.root)
  damage.makeOrphanFolder(store.root, S2, `${H}@v1`)
  expect(added(await check(store.root), before).map(({ id }) => id)).toEqual(['orphan-backups'])
  expect(existsSync(join(store.root, '.rewind-admin'))).toBe(false)
})
