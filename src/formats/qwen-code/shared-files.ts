import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { readSmallFile } from '../../fs/read-small.js'
import type { SharedUse } from '../format.js'
import { promptsOf } from './layout.js'

const promptsLimit = 64 * 1024 * 1024

/**
 * The prompts of projects in `tmp/<sha256 of the project>/logs.json` (formats/qwen-code section 1): every one in a file is of
 * the project that the folder is named for.
 * @param base relative path at which the runtime root lies in the root, `''` or with a `/` at its end
 * @param projects folders that sessions of the store were started in
 */
export function findPrompts(root: string, base: string, projects: Iterable<string>, matches: (project: string) => boolean): SharedUse[] {
  const uses: SharedUse[] = []
  for (const project of new Set(projects)) {
    if (!matches(project)) continue
    const path = base + promptsOf(project)
    const use = look(root, path)
    if (use !== undefined) uses.push(use)
  }
  return uses
}

function look(root: string, path: string): SharedUse | undefined {
  const status = lstatSync(join(root, path), { bigint: true, throwIfNoEntry: false })
  if (status === undefined) return undefined
  const common = { path, what: 'line' as const, keys: [], appendOnly: false, size: Number(status.size), mtimeNs: status.mtimeNs.toString() }
  const found = readSmallFile(join(root, path), { follow: false, limit: promptsLimit })
  if (found.kind === 'missing') return undefined
  if (found.kind === 'unusable') return { ...common, count: 0, refusal: found.reason }
  const prompts = parse(found.bytes)
  if (!Array.isArray(prompts)) return { ...common, count: 0, refusal: 'it is no list of prompts' }
  return prompts.length === 0 ? undefined : { ...common, count: prompts.length, rest: Buffer.from('[]') }
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}
