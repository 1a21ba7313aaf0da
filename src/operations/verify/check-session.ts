import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../../formats/format.js'
import { stampOf, type ProbedFolder } from '../../fs/probe.js'
import { proofsOf } from '../../model/evidence.js'
import { systemErrorCode } from '../../model/errors.js'
import type { Finding, Place } from '../../model/finding.js'
import { membersOf, type SessionReading, type SessionRef } from '../../model/session.js'
import { backupNameAt, isBackupOf } from '../backup-files.js'
import type { Seal, SessionSeals } from '../seals.js'
import type { SessionFacts, Step } from './facts.js'
import { checkAges, checkCheckpoints } from './steps/caps.js'
import { checkDigests, checkLossy, checkSeals, checkVersions } from './steps/content.js'
import { copiesOf, type Copy } from './steps/forks.js'
import { checkNames } from './steps/names.js'
import { checkProofs } from './steps/proof.js'
import { checkPathHashes, checkReferences, checkUnreferenced } from './steps/references.js'

/** The steps that need no more than names and records, from cheap to dear (design section 6). */
const cheapSteps: readonly Step[] = [
  checkNames,
  (facts) => [...facts.reading.findings],
  checkReferences,
  checkUnreferenced,
  checkPathHashes,
  checkCheckpoints,
  checkAges,
]

const contentSteps: readonly Step[] = [checkSeals, checkDigests, checkLossy, checkVersions]

/** What checking a session yields. */
export interface SessionCheck {
  readonly findings: readonly Finding[]
  /** Names of backups whose bytes the transcript proves. */
  readonly proven: ReadonlySet<string>
  /** What `ForkComparison` compares with other sessions. */
  readonly copies: readonly Copy[]
}

/** Runs every step on a session whose transcripts were read and whose backup folder was probed; `now` in milliseconds since 1970. */
export function checkSession(
  store: Store,
  ref: SessionRef,
  reading: SessionReading,
  folder: ProbedFolder | undefined,
  seals: SessionSeals | undefined,
  now: number,
): SessionCheck {
  const { evidence } = reading
  const facts: SessionFacts = {
    store,
    ref,
    reading,
    folder,
    entries: new Map(folder?.entries.map((entry) => [entry.name, entry])),
    seals,
    proofs: evidence === undefined || evidence.edits.length === 0 ? [] : proofsOf(reading.history, evidence.edits, evidence.makers, reading.project),
  }
  const findings = [...cheapSteps, () => store.check?.(ref, reading, { now }) ?? [], ...contentSteps].flatMap((step) => step(facts))
  const proof = checkProofs(facts)
  const known = new Set(findings.filter(({ id }) => id === 'changed-after-seal').map(({ place }) => place?.path))
  // A backup that its seal already convicts is reported once.
  findings.push(...proof.findings.filter(({ place }) => !known.has(place?.path)))
  return { findings, proven: proof.proven, copies: copiesOf(facts, suspectsOf(store, findings), proof.proven) }
}

/** Names of backups that a finding already speaks against. */
export function suspectsOf(store: Store, findings: readonly Finding[]): Set<string> {
  const suspects = new Set<string>()
  for (const { id, session, place } of findings) {
    if (id !== 'changed-after-seal' && id !== 'contradicts-record' && id !== 'contradicts-transcript' && id !== 'fork-differs') continue
    suspects.add(backupOf(store, session, place))
  }
  return suspects
}

/** Stamps of the transcripts and records of a session: equal stamps mean that nothing was written. */
export function transcriptStamps(store: Store, ref: SessionRef): string {
  const records = store.recordStamp?.(ref)
  return [...(records === undefined ? [] : [records]), ...membersOf(ref, 'transcript')
    .map(({ path }) => {
      try {
        return stampOf(lstatSync(join(store.root, path)))
      } catch (error) {
        return systemErrorCode(error) ?? 'UNKNOWN'
      }
    })].join(' ')
}

/** True when the folder holds exactly the sealed backups, none of them written to since. */
export function isUnchanged(store: Store, folder: ProbedFolder | undefined, sealed: ReadonlyMap<string, Seal>): boolean {
  const all = folder?.entries ?? []
  // Records lie beside backups where a format has several folders; their stamp tells whether they changed.
  const entries = store.isBackup === undefined ? all : all.filter(({ name }) => isBackupOf(store, sealed, name))
  return (
    folder?.error === undefined &&
    entries.length === sealed.size &&
    entries.every((entry) => entry.error === undefined && entry.node === 'file' && sealed.get(entry.name)?.stamp === stampOf(entry))
  )
}

/** Milliseconds for which a backup of a live session may still be in the making. */
const young = 60_000

/**
 * The seals after a check: new digests are sealed at first sight, a digest that agrees renews its stamp, and what a
 * finding speaks against keeps the seal it has, or none. Backups of a live session wait until they are a minute old.
 */
export function renewedSeals(
  store: Store,
  reading: SessionReading,
  before: SessionSeals | undefined,
  folder: ProbedFolder | undefined,
  findings: readonly Finding[],
  live: boolean,
  now: number,
): Map<string, Seal> {
  const seals = new Map(before?.backups)
  const suspects = suspectsOf(store, findings)
  forgetPruned(store, seals, folder, findings)
  for (const entry of folder?.entries ?? []) {
    const { name, node, digest, mtimeMs } = entry
    // Foreign files belong to somebody else, who may change them (R14).
    if (node !== 'file' || digest === undefined || !isBackupOf(store, reading.history.references, name) || suspects.has(name)) continue
    const seal = seals.get(name)
    if (seal === undefined ? live && now - mtimeMs < young : seal.sha256 !== digest) continue
    seals.set(name, { sha256: digest, stamp: stampOf(entry) })
  }
  return seals
}

/** Lets go of backups that the agent removed; what is missing keeps its seal, which can prove a rebuilt one. */
function forgetPruned(store: Store, seals: Map<string, Seal>, folder: ProbedFolder | undefined, findings: readonly Finding[]): void {
  if (folder === undefined || folder.error !== undefined) return
  const kept = new Set(folder.entries.map((entry) => entry.name))
  for (const { id, session, place } of findings) if (id === 'missing-backup') kept.add(backupOf(store, session, place))
  for (const name of seals.keys()) if (!kept.has(name)) seals.delete(name)
}

/** The backup that a finding speaks of. */
function backupOf(store: Store, session: string | undefined, place: Place | undefined): string {
  return session === undefined || place === undefined ? '' : backupNameAt(store, session, place.path)
}
