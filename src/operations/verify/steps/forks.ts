import { finding, type Finding } from '../../../model/finding.js'
import type { Store } from '../../../formats/format.js'
import type { SessionFacts } from '../facts.js'

/** A backup that a fork of the session may have too. */
export interface Copy {
  /** Its name and the time of its record: equal ones mean the same backup. */
  readonly key: string
  readonly session: string
  readonly digest: string
  /** True when the transcript proves its bytes. */
  readonly proven: boolean
}

/** The backups of a session that a fork may have too. `suspects` have a finding of their own already; they are reported once. */
export function copiesOf(facts: SessionFacts, suspects: ReadonlySet<string>, proven: ReadonlySet<string>): Copy[] {
  const copies: Copy[] = []
  for (const { name, time } of facts.reading.history.references.values()) {
    const digest = facts.entries.get(name)?.digest
    if (digest === undefined || time === undefined || suspects.has(name)) continue
    copies.push({ key: `${name} ${time}`, session: facts.ref.id, digest, proven: proven.has(name) })
  }
  return copies
}

/**
 * Compares the same backup in forked sessions. A fork copies records with their times, so an equal name and time means
 * the same copy; equal names alone do not (two sessions may edit the same file, R59).
 */
export class ForkComparison {
  readonly #copies = new Map<string, Copy>()

  compare(store: Store, copies: readonly Copy[]): Finding[] {
    const findings: Finding[] = []
    for (const own of copies) {
      const other = this.#copies.get(own.key)
      if (other === undefined) this.#copies.set(own.key, own)
      else if (other.digest !== own.digest) {
        findings.push(differing(store, own, other))
        if (own.proven && !other.proven) this.#copies.set(own.key, own)
      }
    }
    return findings
  }
}

function differing(store: Store, own: Copy, other: Copy): Finding {
  const wrong = own.proven && !other.proven ? other : own
  const right = wrong === own ? other : own
  const words = right.proven ? ', whose bytes the transcript proves' : '; which of the two is right cannot be told'
  const path = `${store.backupFolder(wrong.session)}/${own.key.slice(0, own.key.indexOf(' '))}`
  return finding('fork-differs', `differs from the same backup in session ${right.session}${words}`, { session: wrong.session, path })
}
