import { createHash } from 'node:crypto'
import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../../formats/format.js'
import { eachBlockAt } from '../../fs/content.js'
import { RewindAdminError, systemErrorCode } from '../../model/errors.js'
import { resolve, type Resolution } from '../../model/resolve.js'
import type { SessionReading } from '../../model/session.js'
import { BackupSource, isFileName } from '../restore/backup-source.js'

/** What every path is at every checkpoint: the digest of its bytes, `absent`, or why nobody can tell. */
export type Resolutions = ReadonlyMap<string, ReadonlyMap<string, string>>

/**
 * Resolves every checkpoint of a session down to the bytes (design section 3, promise 2: what a migration must not change).
 * Each backup is read once.
 */
export function resolutionsOf(store: Store, reading: SessionReading): Resolutions {
  const digests = new Map<string, string>()
  const source = openSource(join(store.root, store.backupFolder(reading.id)))
  const wordFor = (resolution: Resolution): string => {
    if (resolution.state === 'unknown') return 'unknown'
    if (resolution.state === 'absent') return 'absent'
    const { name, record } = resolution
    const known = digests.get(name) ?? digestOf(store, reading.id, source, name)
    digests.set(name, known)
    return `${known}${record.lossy === true ? ' lossy' : ''}`
  }
  try {
    return new Map(
      reading.history.checkpoints.map((checkpoint) => [
        checkpoint.id,
        new Map([...resolve(reading.history, checkpoint)].map(([path, resolution]) => [path, wordFor(resolution)])),
      ]),
    )
  } finally {
    source?.close()
  }
}

function digestOf(store: Store, session: string, source: BackupSource | undefined, name: string): string {
  const inline = store.inlineBytes?.(session, name)
  if (inline !== undefined) return createHash('sha256').update(inline).digest('hex')
  if (source === undefined || !isFileName(name)) return 'missing'
  try {
    const at = source.at(name)
    if ('bytes' in at) return createHash('sha256').update(at.bytes).digest('hex')
    const status = lstatSync(at.folder.at(at.name))
    if (!status.isFile()) return 'not a file'
    const hash = createHash('sha256')
    eachBlockAt(at, { offset: 0, size: status.size }, (block) => hash.update(block))
    return hash.digest('hex')
  } catch (error) {
    if (error instanceof RewindAdminError) return 'behind a link'
    const code = systemErrorCode(error)
    if (code === undefined) throw error
    return code === 'ENOENT' ? 'missing' : code
  }
}

function openSource(folder: string): BackupSource | undefined {
  try {
    return BackupSource.open(folder)
  } catch (error) {
    if (error instanceof RewindAdminError || systemErrorCode(error) !== undefined) return undefined
    throw error
  }
}

/** The first difference between what was and what is, in words; `newKey` says what a path is called now. */
export function firstDifference(before: Resolutions, after: Resolutions, newKey: (key: string) => string): string | undefined {
  for (const [checkpoint, paths] of before) {
    const now = after.get(checkpoint)
    if (now === undefined) return `checkpoint ${checkpoint} is gone`
    for (const [path, word] of paths) {
      if (now.get(newKey(path)) !== word) return `checkpoint ${checkpoint} says another thing of ${newKey(path)} than before`
    }
    if (now.size !== new Set([...paths.keys()].map(newKey)).size) return `checkpoint ${checkpoint} has other files than before`
  }
  return after.size === before.size ? undefined : 'there are checkpoints that were not there before'
}
