import type { SessionState } from './reading.js'

/** What the format marker of a session should say, or why nobody can tell; `undefined` when it is right as it is. */
export type FormatProof = { readonly format: number } | { readonly doubt: string } | undefined

/**
 * Whether the groups of a session are numbered as its conversation is (section 2.8): the conversation is there and whole, was not
 * converted from an older format, and every group and every target of a journal is a message of it.
 * @param converted true when a log of an older format lies beside the one that counts
 */
export function proveFormat({ records, journals, log }: SessionState, converted: boolean): FormatProof {
  if (records.groups.size === 0 && journals.length === 0) return undefined
  const marked = records.format.kind === 'number' ? records.format.value : undefined
  if (log?.version !== undefined && marked === log.version) return undefined
  if (records.format.kind === 'odd') return { doubt: 'its format marker is no plain file' }
  if (log === undefined) return marked === undefined ? { doubt: 'its conversation was not found' } : undefined
  if (log.trouble !== undefined) return { doubt: `its conversation cannot prove where the groups belong: ${log.trouble}` }
  if (log.version === undefined) return { doubt: 'its conversation says no version' }
  if (marked !== undefined) return { doubt: `its groups are numbered by format ${String(marked)}, its conversation has format ${String(log.version)}` }
  if (converted) return { doubt: 'its conversation was converted from an older format, by which its groups may be numbered' }
  const targets = journals.flatMap((journal) => (journal.kind === 'journal' ? [journal.targetSeq] : []))
  const stale = [...records.groups.keys(), ...targets].find((anchor) => !log.anchors.has(anchor))
  return stale === undefined ? { format: log.version } : { doubt: `event ${String(stale)} of its conversation is no message` }
}
