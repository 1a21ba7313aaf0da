import { readdirSync, type Dirent } from 'node:fs'
import { systemErrorCode } from '../model/errors.js'

/** What a folder holds, by names and types alone; `error` is a system error code when it could not be listed. */
export interface Listing {
  readonly entries: readonly Dirent[]
  readonly error?: string
}

/** Lists a folder in the order of its names. A folder that is not there is empty. */
export function listFolder(path: string): Listing {
  try {
    const entries = readdirSync(path, { withFileTypes: true })
    return { entries: entries.sort((a, b) => (a.name < b.name ? -1 : 1)) }
  } catch (error) {
    const code = systemErrorCode(error) ?? 'UNKNOWN'
    return code === 'ENOENT' ? { entries: [] } : { entries: [], error: code }
  }
}
