import { join } from 'node:path'
import type { Store } from '../../formats/format.js'
import { digestFile, probeFolder, type ProbedFolder } from '../../fs/probe.js'
import { systemErrorCode } from '../../model/errors.js'
import { isPruned } from '../../model/cap.js'
import type { Finding, FindingId } from '../../model/finding.js'
import type { BrokenBackup, Damage } from '../../model/repair-plan.js'
import type { SessionReading, SessionRef } from '../../model/session.js'
import { readSession } from '../read-session.js'
import { backupJob, backupNameAt, isBackupOf } from '../backup-files.js'
import type { SealStore, SessionSeals } from '../seals.js'
import { checkSession } from '../verify/check-session.js'
import type { ForkComparison } from '../verify/steps/forks.js'

/** One session with its backups digested and its transcripts read for evidence. */
export interface Survey {
  readonly ref: SessionRef
  readonly reading: SessionReading
  readonly folder: ProbedFolder | undefined
  readonly seals: SessionSeals | undefined
  readonly findings: readonly Finding[]
}

const damages: Partial<Record<FindingId, Damage>> = {
  'missing-backup': 'missing',
  'not-regular': 'not-regular',
  'changed-after-seal': 'changed',
  'contradicts-transcript': 'contradicted',
  'fork-differs': 'fork-differs',
}

/** Runs the steps of verify on one session. */
export function surveySession(store: Store, ref: SessionRef, seals: SealStore, forks: ForkComparison | undefined, now: number): Survey {
  const folder = digestAll(store, ref)
  const reading = readSession(store, ref, { now, evidence: true })
  const known = seals.get(ref.id)
  const { findings, copies } = checkSession(store, ref, reading, folder, known, now)
  return { ref, reading, folder, seals: known, findings: [...findings, ...(forks?.compare(store, copies) ?? [])] }
}

/** The broken backup that a finding is about, if it is about one. */
export function brokenIn(store: Store, reading: SessionReading, { id, session, place }: Finding): BrokenBackup | undefined {
  const damage = damages[id]
  if (damage === undefined || session === undefined || place === undefined) return undefined
  const name = backupNameAt(store, session, place.path)
  return isBackupOf(store, reading.history.references, name) ? { session, name, damage } : undefined
}

/** Backups that a session needs and that are gone with their whole folder; one finding stands for all of them. */
export function lostWithFolder(store: Store, { ref, reading }: Survey): BrokenBackup[] {
  const lost = [...reading.history.references.values()].filter(
    (reference) => reference.path !== undefined && !isPruned(reading.history, reference, store.cap),
  )
  return lost.map(({ name }) => ({ session: ref.id, name, damage: 'missing' }))
}

function digestAll(store: Store, ref: SessionRef): ProbedFolder | undefined {
  const job = backupJob(store, ref, 'all')
  if (job === undefined) return undefined
  const folder = probeFolder(job)
  const entries = folder.entries.map((entry) => {
    if (entry.deferred !== true) return entry
    try {
      return { ...entry, ...digestFile(join(folder.path, entry.name)) }
    } catch (error) {
      return { ...entry, error: systemErrorCode(error) ?? 'UNKNOWN' }
    }
  })
  return { ...folder, entries }
}
