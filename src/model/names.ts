/**
 * Shapes of names that come out of transcripts and folders. A name that does not have its shape is never joined to a
 * path (R44) and never removed (R14).
 */

const backupNamePattern = /^([0-9a-f]{16})@v([1-9][0-9]{0,14})$/
const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export interface BackupName {
  /** First 16 hex digits of a sha256 over the path as the agent saw it: a hint, never proof. */
  readonly pathHash: string
  readonly version: number
}

/** Takes `<16 hex>@v<N>` apart (formats/claude-code section 1); `undefined` for any other text. */
export function parseBackupName(name: string): BackupName | undefined {
  const match = backupNamePattern.exec(name)
  if (match === null) return undefined
  const [, pathHash = '', digits = ''] = match
  return { pathHash, version: Number(digits) }
}

/** True for `<16 hex>@v<N>` with N from 1 and no leading zero. */
export function isBackupName(name: string): boolean {
  return backupNamePattern.test(name)
}

/** True for a lower-case UUID, the shape of a Claude Code session id. */
export function isUuid(text: string): boolean {
  return uuidPattern.test(text)
}
