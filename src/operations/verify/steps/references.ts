import { hash } from 'node:crypto'
import { isPruned } from '../../../model/cap.js'
import { finding, type Finding } from '../../../model/finding.js'
import type { Reference } from '../../../model/history.js'
import { isBackupName, parseBackupName } from '../../../model/names.js'
import { trackedTarget } from '../../../model/tracked-path.js'
import { membersOf } from '../../../model/session.js'
import { placeOf, transcriptOf, type SessionFacts } from '../facts.js'

/** Every backup that a line names: present, missing, or pruned by the agent's own cap (R34, R35, R36, R38). */
export function checkReferences(facts: SessionFacts): Finding[] {
  const { reading, folder } = facts
  if (reading.busy || folder?.error !== undefined) return []
  const missing = [...reading.history.references.values()].filter((reference) => !facts.entries.has(reference.name))
  const lost = missing.filter((reference) => !isGoneByRight(facts, reference))
  const session = facts.ref.id
  if (folder === undefined && lost.length > 1) {
    const message = `the folder is gone; checkpoints name ${String(lost.length)} backups in it`
    return [finding('backups-missing', message, { session, path: facts.store.backupFolder(session) })]
  }
  return missing.map((reference) => {
    const path = placeOf(facts, reference.name)
    if (reference.path === undefined) {
      return finding('pruned-backup', 'a backup that only a damaged line names is not there; nothing says what file it was', { session, path })
    }
    if (reference.dropped === true) return finding('pruned-backup', `${described(reference)}; only checkpoints that were dropped name it`, { session, path })
    return isGoneByRight(facts, reference)
      ? finding('pruned-backup', `${described(reference)}; only checkpoints beyond the newest ${String(facts.store.cap)} name it`, { session, path })
      : finding('missing-backup', `${described(reference)} is not there`, { session, path })
  })
}

/** Backups that no line names. Version 1 is never an orphan: the agent keeps it for its own use (R36, R40, R41). */
export function checkUnreferenced(facts: SessionFacts): Finding[] {
  const session = facts.ref.id
  if (membersOf(facts.ref, 'transcript').length === 0 || facts.reading.busy) return []
  const findings: Finding[] = []
  for (const name of facts.entries.keys()) {
    if (facts.reading.history.references.has(name)) continue
    const version = parseBackupName(name)?.version
    if (version === undefined || version === 1) continue
    findings.push(finding('unreferenced-backup', 'no line of the transcript names it; it is kept', { session, path: placeOf(facts, name) }))
  }
  return findings
}

/** Names that are not the hash of their path: a hint that the project moved, never damage (R48). */
export function checkPathHashes(facts: SessionFacts): Finding[] {
  const differing: string[] = []
  let compared = 0
  for (const reference of facts.reading.history.references.values()) {
    if (reference.path === undefined) continue
    const expected = facts.store.pathHash === undefined ? hashOf(reference.path, facts.reading.project) : facts.store.pathHash(reference.path)
    if (expected === undefined) continue
    compared += 1
    if (!reference.name.startsWith(expected)) differing.push(reference.name)
  }
  const [first] = differing
  if (first === undefined || !isBackupName(first)) return []
  const message = `${String(differing.length)} of ${String(compared)} backup names are not the hash of their path, ${first} among them`
  return [finding('path-hash-differs', message, { session: facts.ref.id, path: transcriptOf(facts) })]
}

/** Hashes of the paths seen last: sessions of one project track the same files. */
const hashes = new Map<string, string | undefined>()
const hashesKept = 4096

/** The first half of the name of a backup of this path, `undefined` when the path cannot be told. */
function hashOf(path: string, project: string | undefined): string | undefined {
  const key = `${project ?? ''}\0${path}`
  const known = hashes.get(key)
  if (known !== undefined || hashes.has(key)) return known
  const target = trackedTarget(path, project)
  const expected = 'path' in target ? hash('sha256', target.path, 'hex').slice(0, 16) : undefined
  if (hashes.size >= hashesKept) hashes.clear()
  hashes.set(key, expected)
  return expected
}

/**
 * Gone by the agent's own cap. Version 1 is exempt from it, so a missing one was lost otherwise. A damaged line pins
 * what it names against removal, but says nothing of the agent's cap: it counts where it stands.
 */
function isGoneByRight(facts: SessionFacts, reference: Reference): boolean {
  return reference.path === undefined || isPruned(facts.reading.history, { ...reference, pinned: false }, facts.store.cap)
}

function described(reference: Reference): string {
  return `version ${String(reference.version)} of ${String(reference.path)}`
}
