import type { ProofGrade, Proof } from './evidence.js'
import { parseBackupName } from './names.js'

/** What is wrong with a backup: it is gone, no file, not the bytes that were sealed, or not what others prove it to be. */
export type Damage = 'missing' | 'not-regular' | 'changed' | 'contradicted' | 'fork-differs'

/** One backup that verify found broken. */
export interface BrokenBackup {
  readonly session: string
  readonly name: string
  readonly damage: Damage
}

/** What proves the bytes that a broken backup shall have. `sha256` is theirs, in hex. */
export type RepairProof =
  | { readonly kind: 'fork'; readonly session: string; readonly sha256: string }
  | { readonly kind: 'transcript'; readonly grade: ProofGrade; readonly sealed: boolean; readonly sha256: string; readonly proof: Pick<Proof, 'edit' | 'side'>; readonly form: TextForm }
  | { readonly kind: 'file'; readonly path: string; readonly sha256: string }
  | { readonly kind: 'git'; readonly folder: string; readonly object: string; readonly sha256: string }

/** How a text was written as bytes: with which line ends, and whether after a byte order mark. */
export interface TextForm {
  readonly crlf: boolean
  readonly mark: boolean
}

/** The backup is made anew from proof. */
export interface Rebuild extends BrokenBackup {
  readonly proof: RepairProof
  readonly bytes: number
  readonly mode: number
  /** Milliseconds since 1970. */
  readonly mtimeMs: number
}

/** Modes that a rebuilt backup may have when nothing tells: nobody else can read it. */
const safeMode = 0o600

/** The proof in words, for the plan. */
export function proofWords(proof: RepairProof): string {
  if (proof.kind === 'fork') return `the same backup in session ${proof.session}, which agrees with its seal`
  if (proof.kind === 'file') return `the working file ${proof.path}, whose digest is that of the seal`
  if (proof.kind === 'git') return `the git object ${proof.object}, whose digest is that of the seal`
  const { grade, sealed, proof: text } = proof
  const where = `the text ${text.side} the edit at ${new Date(text.edit.time).toISOString()} in the transcript`
  return sealed ? `${where}, whose digest is that of the seal` : `${where} (${grade} proof)`
}

/**
 * Whether proof is good enough for what is broken (formats/claude-code section 9): a missing backup is rebuilt from a certain
 * or a strong one, one that is present only from a certain one, a seal, or when that was asked for.
 */
export function isEnough(damage: Damage, grade: ProofGrade, force: boolean): boolean {
  if (grade === 'certain') return true
  return grade === 'strong' && (damage === 'missing' || damage === 'not-regular' || force)
}

/** One plain file in a backup folder. */
export interface Neighbour {
  readonly name: string
  readonly mode: number
}

/**
 * Mode for a rebuilt backup whose own is lost: that of the nearest version of the same path, the older of two as near;
 * else one that nobody else can read.
 */
export function modeFrom(name: string, neighbours: readonly Neighbour[]): number {
  const own = parseBackupName(name)
  if (own === undefined) return safeMode
  const near = neighbours
    .flatMap(({ name: other, mode }) => {
      const parsed = parseBackupName(other)
      return parsed?.pathHash === own.pathHash && other !== name ? [{ version: parsed.version, mode }] : []
    })
    .sort((a, b) => Math.abs(a.version - own.version) - Math.abs(b.version - own.version) || a.version - b.version)
  return near[0]?.mode ?? safeMode
}

/** Why a text does not tell bytes for sure, or `undefined` when it does as far as the text alone can say. */
export function textDoubt(text: string): string | undefined {
  if (text.includes('\ufffd')) return 'the text was decoded with losses'
  if (/\p{Cs}/u.test(text)) return 'the text holds half a character'
  if (text.startsWith('\ufeff')) return 'the text begins with a byte order mark'
  if (text.includes('\r')) return 'the line ends of the text are mixed'
  return undefined
}

/** What a file of the same path says of how its texts are stored. */
export interface Witness {
  /** True when it has line ends, all of them line feeds. */
  readonly tells: boolean
  /** Why a text of this path does not tell its bytes. */
  readonly doubt?: string
}

/** Asks one version of a path how its texts are stored. */
export function witnessOf(bytes: Buffer): Witness {
  const [first, second, third] = bytes
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) return { tells: false, doubt: 'another version is UTF-16' }
  if (first === 0xef && second === 0xbb && third === 0xbf) return { tells: false, doubt: 'another version begins with a byte order mark' }
  if (bytes.includes(0x0d)) return { tells: false, doubt: 'another version has carriage returns' }
  return { tells: bytes.includes(0x0a) }
}

/** The bytes of a text in a form. */
export function encodeText(text: string, { crlf, mark }: TextForm): Buffer {
  const body = crlf ? text.replaceAll(/\r?\n/g, '\r\n') : text
  return Buffer.from(mark && !body.startsWith('\ufeff') ? `\ufeff${body}` : body, 'utf8')
}

/** Forms that are tried when a seal can tell the right one. */
export const textForms: readonly TextForm[] = [
  { crlf: false, mark: false },
  { crlf: true, mark: false },
  { crlf: false, mark: true },
  { crlf: true, mark: true },
]
