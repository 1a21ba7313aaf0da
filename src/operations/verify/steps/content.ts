import { finding, type Finding } from '../../../model/finding.js'
import { isBackupName } from '../../../model/names.js'
import { placeOf, transcriptOf, type SessionFacts } from '../facts.js'

/** A sealed backup whose bytes are other than at first sight is damaged (R47, R67). */
export function checkSeals(facts: SessionFacts): Finding[] {
  const session = facts.ref.id
  const findings: Finding[] = []
  for (const [name, seal] of facts.seals?.backups ?? []) {
    const entry = facts.entries.get(name)
    if (entry?.digest === undefined || entry.digest === seal.sha256) continue
    const empty = entry.size === 0 ? '; it is empty now' : ''
    findings.push(finding('changed-after-seal', `the bytes are not those that were sealed${empty}`, { session, path: placeOf(facts, name) }))
  }
  return findings
}

/** A backup whose record says what its bytes are, and they are not. */
export function checkDigests(facts: SessionFacts): Finding[] {
  const session = facts.ref.id
  return [...facts.reading.history.references.values()].flatMap(({ name, digest }) => {
    const entry = facts.entries.get(name)
    if (digest === undefined || entry?.digest === undefined || entry.digest === digest) return []
    return [finding('contradicts-record', 'the bytes are not those that its record says', { session, path: placeOf(facts, name) })]
  })
}

/** Content that went through a text decoding of the 1.0 clients: invalid bytes became EF BF BD for good (R52). */
export function checkLossy(facts: SessionFacts): Finding[] {
  if (facts.reading.clientVersion?.startsWith('1.') !== true) return []
  const session = facts.ref.id
  return [...facts.entries.values()].flatMap((entry) => {
    if (entry.replaced !== true || !isBackupName(entry.name)) return []
    const message = 'holds replacement characters where the client could not decode the original bytes'
    return [finding('lossy-backup', message, { session, path: placeOf(facts, entry.name) })]
  })
}

/** Consecutive versions of a path that are the same in bytes and mode (R51): a copy may have been taken too early. */
export function checkVersions(facts: SessionFacts): Finding[] {
  const session = facts.ref.id
  let count = 0
  let first = ''
  for (const reference of facts.reading.history.references.values()) {
    if (reference.path === undefined || reference.version < 2) continue
    const entry = facts.entries.get(reference.name)
    const before = facts.entries.get(`${reference.name.slice(0, 16)}@v${String(reference.version - 1)}`)
    if (entry?.digest === undefined || entry.digest !== before?.digest || entry.mode !== before.mode) continue
    if (count === 0) first = reference.name
    count += 1
  }
  if (count === 0) return []
  const message = `${first} has the bytes and mode of the version before${count === 1 ? '' : `; so have ${String(count - 1)} more`}`
  return [finding('identical-versions', message, { session, path: transcriptOf(facts) })]
}
