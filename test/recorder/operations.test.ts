import { mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { pathProbe } from '../../src/fs/path-probe.js'
import { migrate } from '../../src/operations/migrate/migrate.js'
import { planPurge } from '../../src/operations/purge.js'
import { startRecording, type Recording } from '../helpers/recording.js'
import { carry, dayMs, machineWith } from '../helpers/removal.js'

async function begun(): Promise<Recording> {
  const recording = await startRecording()
  await recording.recorder.beginTurn('m1')
  await recording.edit('f', 'A')
  await recording.edit(join(recording.project, '..', 'beside'), 'B')
  await recording.recorder.beginTurn('m2')
  await recording.recorder.endSession()
  return recording
}

describe('a recorded session without any conversation', () => {
  it('belongs to the project that it was started in', async () => {
    const recording = await begun()
    const { store, ref } = recording.store()
    expect(store.head?.(ref).folders).toEqual([recording.project])
  })

  it('is purged with its project, and not with another one', async () => {
    const recording = await begun()
    const { store } = recording.store()
    const at = Date.now() + 2 * dayMs
    const context = { now: at, machine: machineWith(), cwd: '/', home: join(recording.home, '..'), probe: pathProbe }
    const purge = (project: string): ReturnType<typeof planPurge> => planPurge(store, { projects: [project], quietPeriodMs: 1 }, context)
    expect(() => purge(join(recording.home, 'proj'))).toThrow(expect.objectContaining({ code: 'NO_MATCH' }) as Error)
    await carry(store, purge(recording.project), { at })
    expect(store.inventory().sessions).toEqual([])
  })

  it('follows a project that moved: its messages take the files of the new place back', async () => {
    const recording = await begun()
    const moved = join(recording.home, 'moved')
    renameSync(recording.project, moved)
    const { store } = recording.store()
    const move = { from: recording.project, to: moved }
    const report = await migrate(store, { move, apply: true, quietPeriodMs: 1 }, { now: Date.now() + dayMs, machine: machineWith(), token: 'c0ffee' })
    expect([report.exitCode, report.findings, report.errors]).toEqual([0, [], []])
    expect(recording.store().reading.project).toBe(moved)
    mkdirSync(recording.project)
    recording.rewind('m1')
    expect(recording.read(join(moved, 'f'))).toBeNull()
  })
})
