import type { Finding, FindingId, Severity } from '../../model/finding.js'

/** Which backups the content pass reads: all, bucket n of t, a share of them, or up to so many bytes. */
export type Sample =
  | { readonly kind: 'all' }
  | { readonly kind: 'bucket'; readonly number: number; readonly of: number }
  | { readonly kind: 'percent'; readonly percent: number }
  | { readonly kind: 'bytes'; readonly bytes: number }

export interface VerifyOptions {
  /** Session ids or unique prefixes; none means all. */
  readonly sessions?: readonly string[]
  /** Only sessions of this project. */
  readonly project?: string
  /** Metadata only; what is sealed and unchanged is taken as good. */
  readonly quick?: boolean
  /** Write seals into the sidecar. */
  readonly seal?: boolean
  readonly sample?: Sample
  readonly failOn?: Severity
  readonly severities?: ReadonlyMap<FindingId, Severity>
  /** Findings that are known and accepted, as `fingerprint` gives them. */
  readonly baseline?: ReadonlySet<string>
  /** Stop when so many errors were found. */
  readonly maxErrors?: number
  /** Having no checkpoints is an error. */
  readonly requireCheckpoints?: boolean
}

/** What identifies a finding between two runs: its kind, session and path, not its offset or words. */
export function fingerprint(found: Pick<Finding, 'id' | 'session' | 'place'>): string {
  return [found.id, found.session ?? '', found.place?.path ?? ''].join('\u0000')
}
