import { closeSync, lstatSync, readSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { openPlain } from '../../fs/blocks.js'
import { finding, type Finding } from '../../model/finding.js'
import { movedPath } from '../../model/session-state.js'
import type { Member, SessionReading, SessionRef } from '../../model/session.js'
import type { MigratedFile, Migration, MigrationRequest } from '../format.js'
import { filesOf } from '../member-files.js'
import { writeMoved } from '../moved-lines.js'
import { projectsFolder } from './layout.js'
import { hasHistoryKey, isHistoryHead } from './line-bytes.js'

type Move = NonNullable<MigrationRequest['move']>

/** Longer folder names are cut and get a hash of which the rule is not known (formats/claude-code section 1). */
const longestSlug = 200
const block = Buffer.allocUnsafeSlow(256 * 1024)

/** The name of the folder of a project (formats/claude-code section 1). */
function slugOf(folder: string): string {
  return folder.replace(/[^A-Za-z0-9]/g, '-')
}

/**
 * What takes a session along to the place that its project was moved to, so that the client resumes it there: transcripts and
 * companions in the new folder's slug, `cwd` and history lines with the new paths (R45). Backups keep their names and bytes.
 * `undefined` for a session that was not started in the folder that moved, or below it.
 */
export function planMove(root: string, session: SessionRef, reading: SessionReading, move: Move): Migration | { readonly refusal: string } | undefined {
  const inside = reading.folders.filter((folder) => movedPath(folder, move.from, move.to) !== folder)
  if (inside.length === 0) return undefined
  const slugs = new Map(inside.map((folder) => [slugOf(folder), slugOf(movedPath(folder, move.from, move.to))]))
  const tooLong = [...slugs.values()].find((slug) => slug.length > longestSlug)
  if (tooLong !== undefined) return { refusal: `the client cuts the folder name of ${move.to} by a rule that is not known` }
  const moving = session.members.filter(({ kind }) => kind === 'transcript' || kind === 'companion' || kind === 'agent')
  const files = moving.flatMap((member) => filesOf(root, member).map((path) => movedFile(root, path, slugs, move)))
  const drop = moving.filter(({ path }) => newPlace(path, slugs) !== path)
  if (files.length === 0) return undefined
  return {
    reason: `its project moved from ${move.from} to ${move.to}`,
    files,
    drop,
    emptied: [...new Set(drop.map(({ path }) => projectFolderOf(path)))],
    newKey: (key) => movedPath(key, move.from, move.to),
    findings: memoryLeft(root, session, drop),
  }
}

function movedFile(root: string, path: string, slugs: ReadonlyMap<string, string>, move: Move): MigratedFile {
  const { mode, mtimeMs } = lstatSync(join(root, path))
  return {
    path: newPlace(path, slugs),
    mode: mode & 0o7777,
    mtimeMs,
    write: (take) => {
      if (path.endsWith('.jsonl')) writeMoved(join(root, path), move, (line) => isHistoryHead(line, 0) || hasHistoryKey(line), take)
      else copyPlain(join(root, path), take)
    },
  }
}

function copyPlain(path: string, take: (bytes: Buffer) => void): void {
  const fd = openPlain(path)
  try {
    for (let count = readSync(fd, block); count > 0; count = readSync(fd, block)) take(block.subarray(0, count))
  } finally {
    closeSync(fd)
  }
}

/** `projects/<slug>/…` with the slug that the folder has now. */
function newPlace(path: string, slugs: ReadonlyMap<string, string>): string {
  const [first, slug, ...rest] = path.split('/')
  const moved = slug === undefined ? undefined : slugs.get(slug)
  return first === projectsFolder && moved !== undefined ? [projectsFolder, moved, ...rest].join('/') : path
}

function projectFolderOf(path: string): string {
  return path.split('/').slice(0, 2).join('/')
}

/** Memory belongs to no session: it stays, and whoever moved the project is told. */
function memoryLeft(root: string, session: SessionRef, drop: readonly Member[]): Finding[] {
  const folders = new Set(drop.map(({ path }) => `${dirname(path).split('/').slice(0, 2).join('/')}/memory`))
  return [...folders]
    .filter((path) => basename(path) === 'memory' && lstatSync(join(root, path), { throwIfNoEntry: false })?.isDirectory() === true)
    .map((path) => finding('memory-left', `${path} is the memory of the project and stays in its old place; move it by hand`, { session: session.id, path }))
}
