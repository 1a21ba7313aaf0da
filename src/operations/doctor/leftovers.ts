import { lstatSync, readdirSync, type Dirent } from 'node:fs'
import { join } from 'node:path'

const temporaryPrefix = '.rewind-admin-'
const hourMs = 3_600_000

// <root>/<area>/<session or project>/<folder>/<name>: nothing of ours is made deeper.
const depthLimit = 4

/**
 * Temporary names of ours that were not touched for an hour (R87): a run that made them is over. Looks at the store and
 * the sidecar without following links; folders that cannot be listed are passed over. `now` is milliseconds since 1970.
 */
export function findLeftovers(folders: readonly string[], now: number): string[] {
  const found = new Set<string>()
  const queue = folders.map((path) => ({ path, depth: 0 }))
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    for (const entry of list(next.path)) {
      const path = join(next.path, entry.name)
      if (entry.name.startsWith(temporaryPrefix)) {
        if (isOld(path, now)) found.add(path)
      } else if (entry.isDirectory() && next.depth < depthLimit - 1) {
        queue.push({ path, depth: next.depth + 1 })
      }
    }
  }
  return [...found].sort()
}

function list(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}

function isOld(path: string, now: number): boolean {
  try {
    return now - lstatSync(path).mtimeMs > hourMs
  } catch {
    return false
  }
}
