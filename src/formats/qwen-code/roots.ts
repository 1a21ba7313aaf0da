import { realpathSync } from 'node:fs'
import { isAbsolute, join, relative } from 'node:path'
import { listFolder } from '../../fs/folder.js'
import { isBelow } from '../../model/tracked-path.js'
import type { Surroundings } from '../format.js'
import { archiveFolder, chatsFolder, projectsFolder, transcriptId } from './layout.js'
import { runtimeSetting } from './settings.js'

/** Where the agent keeps its home root: `$QWEN_HOME`, else `~/.qwen`. */
export function homeRoot({ home, env }: Surroundings): string {
  const configured = env.QWEN_HOME
  return configured === undefined || configured === '' ? join(home, '.qwen') : expanded(configured, home)
}

/** The folders that transcripts are read from. */
export interface Roots {
  /** Real path of the home root, which is the root of the store. */
  readonly home: string
  /** Relative paths below the home root at which `projects` stands; `''` is the home root itself. */
  readonly inside: readonly string[]
  /** Real path of a runtime root that lies elsewhere. */
  readonly outside: string | undefined
}

/**
 * Both roots of a store (section 1): transcripts are looked for in the home root, and in the runtime root where that is
 * another folder: as given, else `$QWEN_RUNTIME_DIR`, else a setting.
 */
export function rootsOf(home: string, around: Surroundings): Roots {
  const configured = around.runtimeRoot ?? nonEmpty(around.env.QWEN_RUNTIME_DIR) ?? runtimeSetting(home, around)
  const folder = configured === undefined ? undefined : expanded(configured, around.home)
  // A relative one is relative to wherever the agent was started.
  const runtime = folder !== undefined && isAbsolute(folder) ? realOf(folder) : home
  if (runtime === home) return { home, inside: [''], outside: undefined }
  if (isBelow(runtime, home)) return { home, inside: ['', `${relative(home, runtime)}/`], outside: undefined }
  return { home, inside: [''], outside: runtime }
}

/** Absolute paths of the transcripts outside of the home root, by session; those in use stand before archived ones. */
export function outsideTranscripts({ outside }: Roots): Map<string, string[]> {
  const found = new Map<string, string[]>()
  if (outside === undefined) return found
  const note = (folder: string): void => {
    for (const entry of listFolder(folder).entries) {
      const id = transcriptId(entry.name)
      if (id === undefined || entry.isDirectory()) continue
      const path = join(folder, entry.name)
      const known = found.get(id)
      if (known === undefined) found.set(id, [path])
      else known.push(path)
    }
  }
  const slugs = listFolder(join(outside, projectsFolder)).entries.filter((entry) => entry.isDirectory())
  for (const { name } of slugs) note(join(outside, projectsFolder, name, chatsFolder))
  for (const { name } of slugs) note(join(outside, projectsFolder, name, chatsFolder, archiveFolder))
  return found
}

function expanded(path: string, home: string): string {
  return path === '~' ? home : /^~[\\/]/.test(path) ? join(home, path.slice(2)) : path
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text.trim() === '' ? undefined : text.trim()
}

function realOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
