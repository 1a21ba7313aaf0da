import type { Finding } from '../../model/finding.js'
import type { Json } from '../../model/report.js'
import type { SessionCounts } from './session-counts.js'

/** Counts what verify looked at. Bytes are counted once per inode (R68). */
export class VerifyTotals {
  #sessions = 0
  #unchanged = 0
  #checkpoints = 0
  #backups = 0
  #bytes = 0
  #digested = 0
  #sealed = 0
  #proven = 0
  readonly #shared = new Set<string>()
  accepted = 0
  stopped = false

  get sessions(): number {
    return this.#sessions
  }

  add(counts: SessionCounts): void {
    this.#sessions += 1
    if (counts.unchanged) this.#unchanged += 1
    this.#checkpoints += counts.checkpoints
    this.#backups += counts.backups
    this.#digested += counts.digested
    this.#sealed += counts.sealed
    this.#proven += counts.proven
    this.#bytes += counts.bytes
    for (let at = 0; at < counts.shared.length; at += 2) {
      const inode = String(counts.shared[at])
      if (this.#shared.has(inode)) continue
      this.#shared.add(inode)
      this.#bytes += Number(counts.shared[at + 1])
    }
  }

  summary(findings: readonly Finding[]): Record<string, Json> {
    const count = (severity: Finding['severity']): number => findings.filter((found) => found.severity === severity).length
    return {
      sessions: this.#sessions,
      unchanged: this.#unchanged,
      checkpoints: this.#checkpoints,
      backups: this.#backups,
      bytes: this.#bytes,
      sharedInodes: this.#shared.size,
      digested: this.#digested,
      sealed: this.#sealed,
      proven: this.#proven,
      errors: count('error'),
      warnings: count('warn'),
      information: count('info'),
      accepted: this.accepted,
      complete: !this.stopped,
    }
  }
}
