import { execFileSync } from 'node:child_process'
import { appendFileSync, existsSync, linkSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { nightly } from '../../jobs/nightly.js'
import type { Store } from '../../src/formats/format.js'
import { FenceError } from '../../src/model/errors.js'
import { historyLength, readHistory, recordHistory, type HistoryRun } from '../../src/operations/history.js'
import { runJob } from '../../src/operations/run/run-job.js'
import { configOf, daysAgo, machineWith, now, openStore, session, sidecarFile } from '../helpers/removal.js'
import { H, S1, S2, emptyRoot, writeBackup } from '../helpers/store.js'
import { needs } from '../helpers/unprivileged.js'

function runAt(time: number, given: Partial<HistoryRun> = {}): HistoryRun {
  return { now: time, job: 'nightly', runId: 'r', exitCode: 0, done: [], ...given }
}

async function oneSession(): Promise<{ root: string; store: Store }> {
  const root = await emptyRoot()
  session(root, '-p', S1, 1)
  return { root, store: openStore(root) }
}

describe('the history of runs', () => {
  it('R86: has one private line a run with what was left after it, counted by inode, and what it removed', async () => {
    const { root, store } = await oneSession()
    session(root, '-p', S2, 1)
    writeBackup(root, S1, `${H}@v1`, 'x'.repeat(1000))
    writeBackup(root, S2, `${H}@v2`, 'y'.repeat(30))
    // A fork: the same inode under a second name.
    linkSync(join(root, 'file-history', S1, `${H}@v1`), join(root, 'file-history', S2, `${H}@v1`))
    const transcripts = [S1, S2].reduce((sum, id) => sum + statSync(join(root, 'projects/-p', `${id}.jsonl`)).size, 0)
    recordHistory(store, runAt(now, { exitCode: 1, done: [{ action: 'trash-session', bytes: 70 }, { action: 'trash-backups', bytes: 5 }] }))
    const [entry, ...more] = readHistory(store)
    expect(more).toEqual([])
    expect(entry).toMatchObject({
      time: '2026-11-30T12:00:00.000Z',
      job: 'nightly',
      runId: 'r',
      exitCode: 1,
      sessions: 2,
      backups: 3,
      bytes: transcripts + 1030,
      backupBytes: 1030,
      removedSessions: 1,
      removedBytes: 75,
    })
    expect(statSync(sidecarFile(root, 'history.ndjson')).mode & 0o777).toBe(0o600)
  })

  it('passes over a torn line and one that is not ours, and the next run begins on a line of its own', async () => {
    const { root, store } = await oneSession()
    recordHistory(store, runAt(daysAgo(2)))
    appendFileSync(sidecarFile(root, 'history.ndjson'), '{"time":"yesterday"}\n{"time":"2026-11-29T12:00:00.000Z","job":"nigh')
    recordHistory(store, runAt(now))
    expect(readHistory(store).map(({ time }) => time)).toEqual(['2026-11-28T12:00:00.000Z', '2026-11-30T12:00:00.000Z'])
  })

  it('never grows without end: the newest 400 stay', async () => {
    const { root, store } = await oneSession()
    recordHistory(store, runAt(daysAgo(1000), { runId: 'first' }))
    const path = sidecarFile(root, 'history.ndjson')
    const [line = ''] = readFileSync(path, 'utf8').split('\n')
    appendFileSync(path, Array.from({ length: 499 }, (_, index) => `${line.replace('"first"', `"run ${String(index)}"`)}\n`).join(''))
    expect(readHistory(store)).toHaveLength(historyLength)
    recordHistory(store, runAt(now, { runId: 'last' }))
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
    expect(lines).toHaveLength(400)
    expect([lines[0], lines[399]].map((text) => (JSON.parse(text ?? '') as { runId: string }).runId)).toEqual(['run 100', 'last'])
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  it('is not written through a link, and a folder in its place has no history', async () => {
    const { root, store } = await oneSession()
    const victim = join(root, 'victim')
    writeFileSync(victim, 'mine')
    mkdirSync(store.sidecar)
    symlinkSync(victim, sidecarFile(root, 'history.ndjson'))
    expect(() => { recordHistory(store, runAt(now)) }).toThrow()
    expect(readFileSync(victim, 'utf8')).toBe('mine')
    expect(readHistory(store)).toEqual([])
  })

  it('a pipe in its place is refused, and nobody waits for a reader', async (context) => {
    const { root, store } = await oneSession()
    needs(context, 'fifo')
    mkdirSync(store.sidecar)
    execFileSync('mkfifo', [sidecarFile(root, 'history.ndjson')])
    expect(() => { recordHistory(store, runAt(now)) }).toThrow(FenceError)
    expect(readHistory(store)).toEqual([])
  })

  it.each([[true], [false]])('is written by a job that acts, and by no other (apply %s)', async (apply) => {
    const root = await emptyRoot()
    session(root, '-p', S1, 40)
    session(root, '-p', S2, 1)
    const store = openStore(root)
    const machine = machineWith({ [process.pid]: '1' })
    const report = await runJob([store], nightly, {
      apply,
      runId: '20261130T120000000Z-00000001',
      config: configOf(),
      lock: { pid: process.pid, host: 'here', processes: machine, waitMs: 0 },
      now,
      monotonic: () => 0,
      machine,
      random: () => 0,
      threads: 0,
    })
    expect(existsSync(sidecarFile(root, 'history.ndjson'))).toBe(apply)
    const gone = report.plan.reduce((sum, { bytes }) => sum + bytes, 0)
    expect(gone).toBeGreaterThan(0)
    const expected = { time: '2026-11-30T12:00:00.000Z', job: 'nightly', runId: report.runId, exitCode: 0, sessions: 1, removedSessions: 1, removedBytes: gone }
    expect(readHistory(store)).toMatchObject(apply ? [expected] : [])
  })
})
