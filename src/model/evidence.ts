import type { History, Reference } from './history.js'
import { trackedTarget } from './tracked-path.js'

/** A text by its digest: sha256 of its UTF-8 bytes, in hex. */
export interface TextDigest {
  readonly sha256: string
}

/** What the result of one editing tool says of a file (formats/claude-code section 9). */
export interface EditEvidence {
  /** Absolute path, as the tool saw it. */
  readonly path: string
  /** When the result was recorded, milliseconds since 1970. */
  readonly time: number
  /** Id of the assistant message that asked for the edit. */
  readonly maker?: string
  /** Whole text before the edit; `null` when the file was created. */
  readonly before: TextDigest | null
  /** Whole text after the edit, when it can be told without doubt. */
  readonly after?: TextDigest
  /** Where the line stands: which transcript of the session, and its byte offset. */
  readonly source: number
  readonly offset: number
}

/** How far a proof reaches: a difference from a certain or a strong one is damage, from a weak one it says nothing. */
export type ProofGrade = 'certain' | 'strong' | 'weak'

/** One text that a backup should hold, with the edit it comes from. */
export interface Proof {
  readonly name: string
  readonly path: string
  readonly grade: ProofGrade
  readonly sha256: string
  readonly edit: EditEvidence
  readonly side: 'before' | 'after'
}

/**
 * What the transcript itself proves of the backups of a session (formats/claude-code section 9).
 * `makers` maps a tracked path to the outer id of the line that first recorded its version 1; `startFolder` is what
 * relative paths mean.
 */
export function proofsOf(
  history: History,
  edits: readonly EditEvidence[],
  makers: ReadonlyMap<string, string>,
  startFolder: string | undefined,
): Proof[] {
  const byPath = new Map<string, EditEvidence[]>()
  for (const edit of edits) {
    const known = byPath.get(edit.path)
    if (known === undefined) byPath.set(edit.path, [edit])
    else known.push(edit)
  }
  const proofs: Proof[] = []
  for (const reference of history.references.values()) {
    if (reference.path === undefined || reference.time === undefined) continue
    const target = trackedTarget(reference.path, startFolder)
    const ofPath = 'path' in target ? byPath.get(target.path) : undefined
    const time = Date.parse(reference.time)
    if (ofPath === undefined || Number.isNaN(time)) continue
    proofs.push(...(reference.version === 1 ? proofsOfFirst(reference, reference.path, ofPath, time, makers) : proofsOfLater(reference, reference.path, ofPath, time)))
  }
  return proofs
}

/** Version 1 is taken just before the first edit: it holds the text before the edit of the very message that made it. */
function proofsOfFirst(
  reference: Reference,
  path: string,
  edits: readonly EditEvidence[],
  time: number,
  makers: ReadonlyMap<string, string>,
): Proof[] {
  const maker = makers.get(path)
  const own = maker === undefined ? undefined : edits.find((edit) => edit.maker === maker)
  const edit = own ?? edits.find((candidate) => candidate.time >= time)
  if (edit === undefined || edit.before === null) return []
  return [{ name: reference.name, path, grade: own === undefined ? 'weak' : 'certain', sha256: edit.before.sha256, edit, side: 'before' }]
}

/** A later version stands between two edits; when both neighbours say the same, that is strong. */
function proofsOfLater(reference: Reference, path: string, edits: readonly EditEvidence[], time: number): Proof[] {
  const earlier = edits.filter((edit) => edit.time < time)
  const before = earlier[earlier.length - 1]
  const after = edits.find((edit) => edit.time >= time)
  const base = { name: reference.name, path }
  const left = before?.after
  const right = after?.before ?? undefined
  const proofs: Proof[] = []
  const grade: ProofGrade = left !== undefined && left.sha256 === right?.sha256 ? 'strong' : 'weak'
  if (before !== undefined && left !== undefined) proofs.push({ ...base, grade, sha256: left.sha256, edit: before, side: 'after' })
  if (after !== undefined && right !== undefined && grade === 'weak') {
    proofs.push({ ...base, grade, sha256: right.sha256, edit: after, side: 'before' })
  }
  return proofs
}

/** Verdict of comparing a backup's bytes with a text that the transcript holds. */
export type TextVerdict = 'equal' | 'differs' | 'doubtful'

/**
 * Compares bytes with a decoded text (formats/claude-code section 9): only where the decoding leaves no doubt. A byte
 * order mark, UTF-16, carriage returns on one side only, or a replacement character in the text are doubt.
 */
export function compareText(bytes: Uint8Array, text: string): TextVerdict {
  const decoded = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  if (decoded === text) return text.includes('\ufffd') ? 'doubtful' : 'equal'
  if (text.includes('\ufffd') || startsWithMark(bytes)) return 'doubtful'
  if (decoded.includes('\r') !== text.includes('\r')) return 'doubtful'
  return 'differs'
}

function startsWithMark(bytes: Uint8Array): boolean {
  const [first, second, third] = bytes
  return (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff) || (first === 0xef && second === 0xbb && third === 0xbf)
}
