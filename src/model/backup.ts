/**
 * One record of what a path was at one version (formats/claude-code section 2). Three states are never confused (R34):
 * `name === null` says that the file did not exist; a name says that a backup holds its bytes; and whether that backup
 * is there is a fact of the disk, not of the record.
 */
export interface BackupRecord {
  /** Name of the backup, `null` for "the file did not exist". Of an unusable record: what stood there, as text. */
  readonly name: string | null
  readonly version: number
  /** When the backup was made, as recorded (ISO 8601). */
  readonly time?: string
  /** Real path of the file's folder when the backup was made; older records have none. */
  readonly parent?: string
  /** Permission bits of the file, where the record has them; else those of the backup count. */
  readonly mode?: number
  /** Bytes that the backup has, where the record says it. */
  readonly size?: number
  /** The bytes went through a lossy text decoding: they may be compared and are never written (R52). */
  readonly lossy?: true
  /** Why the record cannot be followed (its name has not the shape of a backup name, a field is missing). */
  readonly unusable?: string
  /** The state was not recorded, by rule: nothing is lost, and a rewind passes the path over. Set with `unusable`, which says why. */
  readonly gap?: true
}

/** True when two records say the same. */
export function sameRecord(a: BackupRecord, b: BackupRecord): boolean {
  return (
    a.name === b.name &&
    a.version === b.version &&
    a.time === b.time &&
    a.parent === b.parent &&
    a.mode === b.mode &&
    a.size === b.size &&
    a.lossy === b.lossy &&
    a.unusable === b.unusable &&
    a.gap === b.gap
  )
}

/** True when the record names a backup by a name of known shape. */
export function isFollowed(record: BackupRecord): record is BackupRecord & { readonly name: string } {
  return record.name !== null && record.unusable === undefined
}
