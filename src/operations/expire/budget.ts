import { finding, type Finding } from '../../model/finding.js'
import { FreedBytes, type Planned } from '../../plan/planned-item.js'
import { freedBy } from '../session-size.js'

/** A session that may go. */
export interface Candidate {
  /** Last activity in milliseconds since 1970; `undefined` counts as the oldest. */
  readonly at: number | undefined
  readonly planned: readonly Planned[]
}

export interface Choice<C extends Candidate> {
  readonly go: readonly C[]
  readonly stay: readonly C[]
  /** Bytes that are left when the chosen ones have gone. */
  readonly left: number
}

/**
 * The sessions that have to go until no more than `maxBytes` are left: the oldest first, of those that were last active at the same
 * time the largest (R86). What is linked into a session that stays frees nothing (R68).
 * @param bytes what all sessions of the store take up, each inode once
 */
export function chooseForBudget<C extends Candidate>(candidates: readonly C[], bytes: number, maxBytes: number): Choice<C> {
  const size = ({ planned }: C): number => planned.reduce((sum, { inodes }) => inodes.reduce((inner, inode) => inner + inode.bytes, sum), 0)
  const sorted = candidates.map((candidate) => ({ candidate, at: candidate.at ?? 0, size: size(candidate) })).sort((one, other) => one.at - other.at || other.size - one.size)
  const freed = new FreedBytes()
  const go = new Set<C>()
  let left = bytes
  for (const { candidate } of sorted) {
    if (left <= maxBytes) break
    left -= freedBy(freed, candidate.planned)
    go.add(candidate)
  }
  const inOrder = sorted.map(({ candidate }) => candidate)
  return { go: inOrder.filter((candidate) => go.has(candidate)), stay: inOrder.filter((candidate) => !go.has(candidate)), left }
}

/** What the sessions take up, what they may take up, and what they take up when the plan was carried out; bytes. */
export interface Budget {
  readonly maxBytes: number
  readonly bytes: number
  readonly left: number
}

/** Says that a budget cannot be kept. */
export function overBudget({ maxBytes, left }: Budget): Finding {
  return finding('over-budget', `the sessions still take up ${String(left)} bytes, more than the ${String(maxBytes)} that they may: nothing else may go`)
}
