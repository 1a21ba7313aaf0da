import { dirname } from 'node:path'
import { statusOf } from './identity.js'

/**
 * Device number of the file system that a path lies on, or would lie on once made: the device of the nearest folder
 * above it that exists. Decimal text.
 */
export function deviceOf(path: string): string {
  for (let at = path; ; at = dirname(at)) {
    const status = statusOf(at)
    if (status !== undefined && !status.isSymbolicLink()) return status.dev.toString()
    if (dirname(at) === at) throw new Error(`no folder above ${path} exists`)
  }
}
