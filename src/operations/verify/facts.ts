import type { ProbedEntry, ProbedFolder } from '../../fs/probe.js'
import type { Store } from '../../formats/format.js'
import type { Proof } from '../../model/evidence.js'
import type { Finding } from '../../model/finding.js'
import type { SessionReading, SessionRef } from '../../model/session.js'
import type { SessionSeals } from '../seals.js'

/** All that the steps know of one session. Steps read it and return findings; they touch nothing. */
export interface SessionFacts {
  readonly store: Store
  readonly ref: SessionRef
  readonly reading: SessionReading
  /** The folder of its backups, when it has one. */
  readonly folder: ProbedFolder | undefined
  /** Its entries by name. */
  readonly entries: ReadonlyMap<string, ProbedEntry>
  readonly seals: SessionSeals | undefined
  /** What the transcript proves, when that was read. */
  readonly proofs: readonly Proof[]
}

/** One read-only check of a session. */
export type Step = (facts: SessionFacts) => Finding[]

/** Relative path of a backup of the session. */
export function placeOf(facts: SessionFacts, name: string): string {
  return `${facts.store.backupFolder(facts.ref.id)}/${name}`
}

/** The path that a transcript finding of the session points to. */
export function transcriptOf(facts: SessionFacts): string {
  return facts.ref.members.find((member) => member.kind === 'transcript')?.path ?? facts.ref.members[0]?.path ?? facts.ref.id
}
