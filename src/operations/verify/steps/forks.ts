import { finding, type Finding } from '../../../model/finding.js'
import type { Store } from '../../../formats/format.js'
import type { SessionFacts } from '../facts.js'

interface Copy {
  readonly session: string
  readonly digest: string
  readonly proven: boolean
}

/** The backups of a session that a fork may have too: for each its name and time, its digest, and whether it is proven. */
export type Copies = readonly string[]

const proof = 'proven'

/** `suspects` are backups with a finding of their own already; they are reported once. */
export function copiesOf(facts: SessionFacts, suspects: ReadonlySet<string>, proven: ReadonlySet<string>): Copies {
  // One flat list of texts: it goes from thread to thread far faster than objects.
  const copies: string[] = []
  for (const { name, time } of facts.reading.history.references.values()) {
    const digest = facts.entries.get(name)?.digest
    if (digest === undefined || time === undefined || suspects.has(name)) continue
    copies.push(`${name} ${time}`, digest, proven.has(name) ? proof : '')
  }
  return copies
}

/**
 * Compares the same backup in forked sessions. A fork copies records with their times, so an equal name and time means
 * the same copy; equal names alone do not (two sessions may edit the same file, R59).
 */
export class ForkComparison {
  readonly #copies = new Map<string, Copy>()

  check(facts: SessionFacts, suspects: ReadonlySet<string>, proven: ReadonlySet<string>): Finding[] {
    return this.compare(facts.store, facts.ref.id, copiesOf(facts, suspects, proven))
  }

  compare(store: Store, session: string, copies: Copies): Finding[] {
    const findings: Finding[] = []
    for (let at = 0; at < copies.length; at += 3) {
      const key = copies[at] ?? ''
      const own = { session, digest: copies[at + 1] ?? '', proven: copies[at + 2] === proof }
      const other = this.#copies.get(key)
      if (other === undefined) this.#copies.set(key, own)
      else if (other.digest !== own.digest) {
        findings.push(differing(store, key.slice(0, key.indexOf(' ')), own, other))
        if (own.proven && !other.proven) this.#copies.set(key, own)
      }
    }
    return findings
  }
}

function differing(store: Store, name: string, own: Copy, other: Copy): Finding {
  const wrong = own.proven && !other.proven ? other : own
  const right = wrong === own ? other : own
  const words = right.proven ? ', whose bytes the transcript proves' : '; which of the two is right cannot be told'
  const path = `${store.backupFolder(wrong.session)}/${name}`
  return finding('fork-differs', `differs from the same backup in session ${right.session}${words}`, { session: wrong.session, path })
}
