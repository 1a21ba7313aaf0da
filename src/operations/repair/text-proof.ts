import { hash } from 'node:crypto'
import { join } from 'node:path'
import type { Store } from '../../formats/format.js'
import { readSmallFile } from '../../fs/read-small.js'
import { proofsOf, type Proof } from '../../model/evidence.js'
import { encodeText, isEnough, textDoubt, textForms, witnessOf, type BrokenBackup, type RepairProof, type TextForm } from '../../model/repair-plan.js'
import type { SessionReading } from '../../model/session.js'
import { trackedTarget } from '../../model/tracked-path.js'
import type { Survey } from './survey.js'

/** A version larger than this many bytes is not looked at for its line ends. */
const witnessLimit = 64 * 1024 * 1024

/** A proof from the transcript with its size, or why there is none. */
export type TextProof = { readonly proof: RepairProof; readonly bytes: number } | { readonly refused: string }

/** Texts of the transcript as proof of the backups of one session (formats/claude-code section 9). */
export class TextProofs {
  readonly #store: Store
  readonly #survey: Survey
  readonly #force: boolean
  readonly #proofs: readonly Proof[]

  constructor(store: Store, survey: Survey, force: boolean) {
    this.#store = store
    this.#survey = survey
    this.#force = force
    this.#proofs = allProofs(survey.reading)
  }

  /** A text whose bytes, in one of the forms that files have, have the digest of the seal. */
  sealed(name: string, sha256: string): TextProof | undefined {
    for (const proof of [...this.#proofs.filter((each) => each.name === name), ...this.#ofPath(name, sha256)]) {
      const text = this.#text(proof)
      if (text === undefined) continue
      for (const form of textForms) {
        const bytes = encodeText(text, form)
        if (hash('sha256', bytes, 'hex') === sha256) return { proof: textProof(proof, form, sha256, true), bytes: bytes.length }
      }
    }
    return undefined
  }

  /** A text that by itself proves the bytes of a backup without a seal. */
  unsealed(broken: BrokenBackup, witnesses: readonly string[]): TextProof {
    const proofs = this.#proofs.filter(({ name, grade }) => name === broken.name && grade !== 'weak')
    const [first] = proofs
    if (first === undefined) return { refused: 'the transcript proves nothing of it for sure' }
    if (proofs.some(({ sha256 }) => sha256 !== first.sha256)) return { refused: 'the texts of the transcript disagree' }
    if (!isEnough(broken.damage, first.grade, this.#force)) return { refused: `something stands there, and the proof is ${first.grade}, not certain` }
    const text = this.#text(first)
    if (text === undefined) return { refused: 'the text can no longer be read' }
    const doubt = textDoubt(text) ?? this.#lineEndDoubt(text, witnesses)
    if (doubt !== undefined) return { refused: `${doubt}, so its bytes cannot be told` }
    const bytes = encodeText(text, { crlf: false, mark: false })
    return { proof: textProof(first, { crlf: false, mark: false }, hash('sha256', bytes, 'hex'), false), bytes: bytes.length }
  }

  /** Editors show texts with one kind of line end: which one the file has, only its other versions tell. */
  #lineEndDoubt(text: string, witnesses: readonly string[]): string | undefined {
    let told = !text.includes('\n')
    for (const path of witnesses) {
      const found = readSmallFile(path, { follow: false, limit: witnessLimit })
      if (found.kind !== 'bytes') continue
      const { tells, doubt } = witnessOf(found.bytes)
      if (doubt !== undefined) return doubt
      told ||= tells
    }
    return told || this.#force ? undefined : 'no other version of the file tells its line ends'
  }

  /** Any text of the same path with that digest: a seal makes a weak proof certain. */
  #ofPath(name: string, sha256: string): Proof[] {
    const { reading } = this.#survey
    const path = reading.history.references.get(name)?.path
    const target = path === undefined ? undefined : trackedTarget(path, reading.project)
    if (path === undefined || target === undefined || !('path' in target)) return []
    return (reading.evidence?.edits ?? []).flatMap((edit): Proof[] => {
      if (edit.path !== target.path) return []
      const sides = [...(edit.before?.sha256 === sha256 ? ['before' as const] : []), ...(edit.after?.sha256 === sha256 ? ['after' as const] : [])]
      return sides.map((side) => ({ name, path, grade: 'weak', sha256, edit, side }))
    })
  }

  #text(proof: Pick<Proof, 'edit' | 'side'>): string | undefined {
    return textOfProof(this.#store, this.#survey.ref, proof)
  }
}

/** The text that a proof is about, read again from its line. */
export function textOfProof(store: Store, session: Survey['ref'], { edit, side }: Pick<Proof, 'edit' | 'side'>): string | undefined {
  const texts = store.editTexts(session, edit)
  return (side === 'before' ? texts?.before : texts?.after) ?? undefined
}

/** Files that tell how the texts of a path are stored: its other versions, and the file itself. Absolute paths. */
export function witnessesOf(store: Store, survey: Survey, name: string, broken: ReadonlySet<string>): string[] {
  const { reading, folder, ref } = survey
  const path = reading.history.references.get(name)?.path
  const versions = (folder?.entries ?? []).flatMap((entry) => {
    // A file that is only wrong in what it says still has the line ends of its path.
    const isOther = entry.node === 'file' && (entry.name === name || !broken.has(entry.name)) && path !== undefined && reading.history.references.get(entry.name)?.path === path
    return isOther ? [join(store.root, store.backupFolder(ref.id), entry.name)] : []
  })
  const target = path === undefined ? undefined : trackedTarget(path, reading.project)
  return target !== undefined && 'path' in target ? [...versions, target.path] : versions
}

function allProofs({ history, evidence, project }: SessionReading): Proof[] {
  return evidence === undefined ? [] : proofsOf(history, evidence.edits, evidence.makers, project)
}

function textProof({ edit, side, grade }: Proof, form: TextForm, sha256: string, sealed: boolean): RepairProof {
  return { kind: 'transcript', grade, sealed, sha256, proof: { edit, side }, form }
}
