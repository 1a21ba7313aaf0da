import { lstatSync } from 'node:fs'
import { join } from 'node:path'

import { readJsonObject } from '../../fs/read-small.js'
import { systemErrorCode } from '../../model/errors.js'
import { isFields } from '../../model/fields.js'
import { finding, type Finding } from '../../model/finding.js'
import type { Json } from '../../model/report.js'
import { isFinished, journalledRuns, journalPath } from '../../plan/journal.js'
import { Sidecar, type StorePlace } from '../../plan/sidecar.js'
import { heldBack, holdFinding } from '../run/hold.js'
import { jobsIn } from '../run/status-file.js'

const statusLimit = 1024 * 1024

/** Our own folder beside a store, as rows of the report, and what is wrong with it. */
export interface SidecarState {
  readonly row: Json
  readonly findings: readonly Finding[]
}

/**
 * Looks at a sidecar without writing: its mode, the status file of the last jobs, a failure that holds jobs back, and runs whose
 * journal has no end. `now` is milliseconds since 1970.
 */
export function checkSidecar(place: StorePlace, platform: NodeJS.Platform, now: number): SidecarState {
  const { sidecar } = place
  const folder = modeOf(sidecar)
  if (folder.kind === 'missing') return { row: { path: sidecar, exists: false }, findings: [] }
  if (folder.kind === 'odd') {
    const message = `${sidecar} ${folder.reason}`
    return { row: { path: sidecar, exists: true, usable: false }, findings: [finding('sidecar-damaged', message, { path: sidecar })] }
  }
  const findings: Finding[] = []
  if (platform !== 'win32' && (folder.mode & 0o077) !== 0) {
    const message = `${sidecar} has mode ${octal(folder.mode)}; it should be 0700`
    findings.push(finding('wide-mode', message, { path: sidecar, remedy: 'chmod 700 that folder' }))
  }
  const status = lastRun(join(sidecar, 'status.json'), findings)
  const hold = heldBack(place, now)
  if (hold !== undefined) findings.push(holdFinding(place, hold))
  const runs = unfinishedRuns(place, findings)
  const held = hold === undefined ? {} : { held: { ...hold } }
  return { row: { path: sidecar, exists: true, mode: octal(folder.mode), lastRun: status, ...held, unfinishedRuns: runs }, findings }
}

function lastRun(file: string, findings: Finding[]): Json {
  const status = readJsonObject(file, { follow: false, limit: statusLimit })
  if (status.kind === 'missing') return null
  if (status.kind === 'unusable') {
    findings.push(finding('sidecar-damaged', `${file}: ${status.reason}`, { path: file }))
    return null
  }
  const failed = Object.entries(jobsIn(status.value)).filter(([, last]) => exitCodeIn(last) !== 0)
  for (const [job, last] of failed) {
    findings.push(finding('last-run-failed', `the last run of ${job} ended with exit code ${String(exitCodeIn(last))}`, { path: file }))
  }
  // What an older version left does not name its jobs.
  if (status.value.jobs === undefined && exitCodeIn(status.value) !== 0) {
    findings.push(finding('last-run-failed', `the last run ended with exit code ${String(exitCodeIn(status.value))}`, { path: file }))
  }
  // It was parsed from JSON, so it is JSON.
  return status.value as Json
}

function exitCodeIn(result: unknown): number {
  return isFields(result) && typeof result.exitCode === 'number' ? result.exitCode : 0
}

function unfinishedRuns(place: StorePlace, findings: Finding[]): string[] {
  const sidecar = new Sidecar(place)
  try {
    const runs = journalledRuns(sidecar).filter((run) => !isFinished(sidecar, run))
    for (const run of runs) {
      const path = journalPath(sidecar, run)
      findings.push(finding('unfinished-journal', `run ${run} was interrupted, or is still going on`, { path }))
    }
    return runs
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === undefined) throw error
    findings.push(finding('sidecar-damaged', `the journals in ${sidecar.journals} cannot be read (${code})`, { path: sidecar.journals }))
    return []
  }
}

type FolderMode = { readonly kind: 'missing' } | { readonly kind: 'odd'; readonly reason: string } | { readonly kind: 'folder'; readonly mode: number }

/** The mode of a folder, without following links. */
export function modeOf(path: string): FolderMode {
  try {
    const stat = lstatSync(path)
    return stat.isDirectory() ? { kind: 'folder', mode: stat.mode & 0o7777 } : { kind: 'odd', reason: 'is not a folder' }
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOENT') return { kind: 'missing' }
    return { kind: 'odd', reason: `cannot be looked at (${code ?? 'unknown error'})` }
  }
}

/** A mode as people write it: `0700`. */
export function octal(mode: number): string {
  return `0${mode.toString(8).padStart(3, '0')}`
}
