import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Member } from '../model/session.js'

/** Plain files of a member, all the way down, relative to the root; links and other things are left out. @throws system errors */
export function filesOf(root: string, { path, folder }: Member): string[] {
  if (!folder) return [path]
  return readdirSync(join(root, path), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => `${path}/${join(entry.parentPath, entry.name).slice(join(root, path).length + 1)}`)
    .sort()
}
