import { mkdirSync, readFileSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { finding } from '../../../src/model/finding.js'
import { noItems, type Report } from '../../../src/model/report.js'
import { metricsText, writeMetrics } from '../../../src/operations/notify/metrics.js'
import { temporaryFolder } from '../../helpers/temp.js'

const report: Report = {
  command: 'run',
  roots: ['/home/u/.claude'],
  applied: true,
  summary: {},
  ...noItems,
  findings: [finding('missing-backup', 'x'), finding('removal-held', 'x'), finding('removal-held', 'y')],
  plan: [{ action: 'trash-session', path: 'p', bytes: 5, reason: '' }, { action: 'trash-session', path: 'q', bytes: 7, reason: '' }],
  errors: [{ code: 'X', message: 'secret words' }],
  exitCode: 3,
}
const times = { startedAt: 1_796_000_000_500, finishedAt: 1_796_000_002_000 }

/** Values by name and labels, after checking that every line is one of the text format. */
function values(text: string): Record<string, number> {
  const found: Record<string, number> = {}
  const typed = new Set<string>()
  for (const line of text.split('\n').slice(0, -1)) {
    const comment = /^# (?:HELP ([a-z_]+) .+|TYPE ([a-z_]+) gauge)$/.exec(line)
    if (comment !== null) {
      if (comment[2] !== undefined) typed.add(comment[2])
      continue
    }
    const sample = /^([a-z_]+)(\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z_]+="[^"]*")*\}) ([0-9.]+)$/.exec(line)
    if (sample === null || !typed.has(sample[1] ?? '')) throw new Error(`no line of the format: ${line}`)
    found[`${sample[1] ?? ''}${sample[2] ?? ''}`] = Number(sample[3])
  }
  return found
}

describe('the metrics of a run', () => {
  it('are gauges in the text format: times in seconds, result, and counts', () => {
    const text = metricsText('nightly', report, times)
    expect(text.endsWith('\n')).toBe(true)
    expect(values(text)).toEqual({
      'rewind_admin_last_run_start_timestamp_seconds{job="nightly"}': 1_796_000_000.5,
      'rewind_admin_last_run_timestamp_seconds{job="nightly"}': 1_796_000_002,
      'rewind_admin_last_run_duration_seconds{job="nightly"}': 1.5,
      'rewind_admin_last_run_exit_code{job="nightly"}': 3,
      'rewind_admin_last_run_success{job="nightly"}': 0,
      'rewind_admin_last_run_applied{job="nightly"}': 1,
      'rewind_admin_last_run_actions{job="nightly"}': 2,
      'rewind_admin_last_run_bytes{job="nightly"}': 12,
      'rewind_admin_last_run_errors{job="nightly"}': 1,
      'rewind_admin_last_run_findings{job="nightly",severity="error"}': 1,
      'rewind_admin_last_run_findings{job="nightly",severity="warn"}': 2,
      'rewind_admin_last_run_findings{job="nightly",severity="info"}': 0,
    })
  })

  it('of a fleet count the homes by result', () => {
    const fleet = { ...report, summary: { homes: 50, done: 47, failed: 2, leftOut: 1 } }
    expect(values(metricsText('nightly', fleet, times))).toMatchObject({
      'rewind_admin_last_run_homes{job="nightly",result="done"}': 47,
      'rewind_admin_last_run_homes{job="nightly",result="failed"}': 2,
      'rewind_admin_last_run_homes{job="nightly",result="left_out"}': 1,
    })
  })

  it('hold no path, no message and no session, and a job may have any name', () => {
    const text = metricsText('a "b"\\\nc', report, times)
    expect(text).toContain(String.raw`{job="a \"b\"\\\nc"}`)
    expect(() => values(text)).not.toThrow()
    expect(text).not.toMatch(/secret|\/home/)
  })

  it('stand in a file for each job, which others may read, and replace a link instead of following it', async () => {
    const folder = await temporaryFolder()
    writeFileSync(join(folder, 'other'), 'mine')
    symlinkSync('other', join(folder, 'rewind_admin_my__job.prom'))
    expect(writeMetrics(folder, 'nightly', report, times)).toBeUndefined()
    expect(writeMetrics(folder, 'my//job', report, times)).toBeUndefined()
    expect(readdirSync(folder).sort()).toEqual(['other', 'rewind_admin_my__job.prom', 'rewind_admin_nightly.prom'])
    expect(statSync(join(folder, 'rewind_admin_nightly.prom')).mode & 0o777).toBe(0o644)
    expect(readFileSync(join(folder, 'other'), 'utf8')).toBe('mine')
    expect(readFileSync(join(folder, 'rewind_admin_nightly.prom'), 'utf8')).toBe(metricsText('nightly', report, times))
  })

  it('that cannot be written are told in words, and leave nothing behind', async () => {
    const folder = await temporaryFolder()
    expect(writeMetrics(join(folder, 'none'), 'nightly', report, times)).toMatch(/could not be written to .*rewind_admin_nightly\.prom \(ENOENT\)$/)
    mkdirSync(join(folder, 'rewind_admin_nightly.prom/x'), { recursive: true })
    expect(writeMetrics(folder, 'nightly', report, times)).toContain('could not be written')
    expect(readdirSync(folder)).toEqual(['rewind_admin_nightly.prom'])
  })
})
