import { join } from 'node:path'
import { readPlain } from '../../../fs/blocks.js'
import { systemErrorCode } from '../../../model/errors.js'
import { compareText, type Proof, type TextVerdict } from '../../../model/evidence.js'
import { finding, type Finding } from '../../../model/finding.js'
import { placeOf, type SessionFacts } from '../facts.js'

/** A backup larger than this many bytes is not compared as text; tools do not edit such files as text either. */
const textLimit = 64 * 1024 * 1024

export interface ProofResult {
  readonly findings: readonly Finding[]
  /** Names of backups whose bytes the transcript proves. */
  readonly proven: ReadonlySet<string>
}

/** Compares backups with what the transcript says the files contained (formats/claude-code section 9). */
export function checkProofs(facts: SessionFacts): ProofResult {
  const findings = new Map<string, Finding>()
  const proven = new Set<string>()
  for (const proof of facts.proofs) {
    const entry = facts.entries.get(proof.name)
    if (entry?.digest === undefined || entry.node !== 'file') continue
    const verdict = entry.digest === proof.sha256 ? 'equal' : compareBytes(facts, proof)
    if (verdict === 'equal') proven.add(proof.name)
    else if (verdict === 'differs' && proof.grade !== 'weak') {
      const message = `differs from the text that the transcript has ${words(proof)} (${proof.grade} proof)`
      findings.set(proof.name, finding('contradicts-transcript', message, { session: facts.ref.id, path: placeOf(facts, proof.name) }))
    }
  }
  return { findings: [...findings.values()], proven }
}

function words(proof: Proof): string {
  return `${proof.side} the edit of ${proof.path} at ${new Date(proof.edit.time).toISOString()}`
}

function compareBytes(facts: SessionFacts, proof: Proof): TextVerdict {
  try {
    const texts = facts.store.editTexts(facts.ref, proof.edit)
    const text = proof.side === 'before' ? texts?.before : texts?.after
    if (typeof text !== 'string') return 'doubtful'
    const bytes = readPlain(join(facts.store.root, placeOf(facts, proof.name)), textLimit)
    return bytes === undefined ? 'doubtful' : compareText(bytes, text)
  } catch (error) {
    // The agent removed one of the two since it was read.
    if (systemErrorCode(error) === undefined) throw error
    return 'doubtful'
  }
}
