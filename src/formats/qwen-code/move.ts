import { createHash } from 'node:crypto'
import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { AnchoredFolder } from '../../fs/anchored-folder.js'
import { digestStretch } from '../../fs/content.js'
import { finding, type Finding } from '../../model/finding.js'
import { movedPath } from '../../model/session-state.js'
import type { Member, SessionReading, SessionRef } from '../../model/session.js'
import type { MigratedFile, Migration, MigrationRequest } from '../format.js'
import { filesOf } from '../member-files.js'
import { writeMoved, type IsHistory } from '../moved-lines.js'
import { projectFoldersOf } from './contents.js'
import { projectsFolder, promptsOf } from './layout.js'
import { shortened } from './snapshots.js'

type Move = NonNullable<MigrationRequest['move']>

const snapshotMark = Buffer.from('"file_history_snapshot"')
/** Files beside a transcript that tell where the session is at work: every path in them counts. */
const placeFile = /\.(?:runtime|worktree)\.json$/

/**
 * What takes a session along to the place that its project was moved to, so that the agent resumes it there (formats/qwen-code
 * section 1; R45, R100): it looks for transcripts in the folder that is named for the new place, and asks the `cwd` of the first
 * record whose they are. Absolute keys of snapshots move as well, backups keep names and bytes. `undefined` for a session that was
 * not started in the folder that moved, or below it, and for one that is there already.
 * @param outside its transcripts beyond the root, where nothing is written
 */
export function planMove(root: string, session: SessionRef, reading: SessionReading, outside: readonly string[], move: Move): Migration | { readonly refusal: string } | undefined {
  const moved = (path: string): string => movedPath(path, move.from, move.to)
  const inside = reading.folders.filter((folder) => moved(folder) !== folder)
  if (inside.length === 0) return undefined
  const [beyond] = outside
  if (beyond !== undefined) return { refusal: `its transcript ${beyond} lies outside of the store, where nothing is written` }
  const keys = keysAfter(reading, inside, moved)
  if ('clash' in keys) return { refusal: keys.clash }
  const files: MigratedFile[] = []
  const drop: Member[] = []
  for (const member of session.members) {
    if (member.kind !== 'transcript' && member.kind !== 'companion') continue
    const place = newPlace(member.path, slugsOf(inside, moved, member.path))
    for (const path of filesOf(root, member)) {
      const file = movedFile(root, path, place + path.slice(member.path.length), move)
      const there = digestAt(root, file.path)
      const isThere = there !== undefined && there === digestOf(file)
      if (!isThere && there !== undefined && file.path !== path) return { refusal: `another file stands at ${file.path}` }
      if (!isThere) files.push(file)
    }
    if (place !== member.path) drop.push(member)
  }
  if (files.length === 0 && drop.length === 0) return undefined
  return {
    reason: `its project moved from ${move.from} to ${move.to}`,
    files,
    drop,
    emptied: [...new Set(drop.flatMap(({ path }) => projectFoldersOf(path)))],
    newKey: keys.newKey,
    findings: promptsLeft(root, session, move),
  }
}

/** What keys are called afterwards: the agent shortens those that lie in the folder it starts in. */
function keysAfter({ history, folders }: SessionReading, inside: readonly string[], moved: (path: string) => string): { readonly newKey: (key: string) => string } | { readonly clash: string } {
  const start = folders.find((folder) => inside.includes(folder))
  const newKey = (key: string): string => shortened(moved(key), start === undefined ? undefined : moved(start))
  const before = new Map<string, string>()
  for (const key of history.tracked) {
    const other = before.get(newKey(key))
    if (other !== undefined) return { clash: `it tracks ${other} and ${key}, which would be one file` }
    before.set(newKey(key), key)
  }
  return { newKey }
}

/** The name of the folder of a project: not cut, and not to be read back (section 1). */
function slugOf(folder: string): string {
  return folder.replace(/[^A-Za-z0-9]/g, '-')
}

/** Names of the folders that the session may lie in, with their new ones; on some systems they are in lower case. */
function slugsOf(inside: readonly string[], moved: (path: string) => string, path: string): ReadonlyMap<string, string> {
  const names = inside.map((folder): [string, string] => [slugOf(folder), slugOf(moved(folder))])
  const isLower = names.every(([slug]) => !path.split('/').includes(slug))
  return new Map(isLower ? names.map(([from, to]) => [from.toLowerCase(), to.toLowerCase()]) : names)
}

/** `…projects/<slug>/…` with the slug that the folder has now. */
function newPlace(path: string, slugs: ReadonlyMap<string, string>): string {
  const names = path.split('/')
  const at = names.lastIndexOf(projectsFolder) + 1
  return names.map((name, index) => (index === at && at > 0 ? (slugs.get(name) ?? name) : name)).join('/')
}

function movedFile(root: string, path: string, place: string, move: Move): MigratedFile {
  const { mode, mtimeMs } = lstatSync(join(root, path))
  const isHistory: IsHistory = placeFile.test(path) ? () => true : (line) => line.includes(snapshotMark)
  return { path: place, mode: mode & 0o7777, mtimeMs, write: (take) => { writeMoved(join(root, path), move, isHistory, take) } }
}

function digestOf(file: MigratedFile): string {
  const hash = createHash('sha256')
  file.write((bytes) => { hash.update(bytes) })
  return hash.digest('hex')
}

/** sha256 of what stands at a path, `undefined` when nothing does; another word for what is no plain file. */
function digestAt(root: string, path: string): string | undefined {
  const status = lstatSync(join(root, path), { throwIfNoEntry: false })
  if (status === undefined) return undefined
  if (!status.isFile()) return 'no file'
  const folder = AnchoredFolder.open(join(root, path, '..'))
  try {
    return digestStretch(folder, path.slice(path.lastIndexOf('/') + 1), { offset: 0, size: status.size })
  } finally {
    folder.close()
  }
}

/** The typed prompts of a project belong to no session: they stay, and whoever moved the project is told. */
function promptsLeft(root: string, session: SessionRef, { from }: Move): Finding[] {
  const bases = new Set(session.members.flatMap(({ kind, path }) => (kind === 'transcript' ? [path.slice(0, Math.max(0, path.lastIndexOf(`${projectsFolder}/`)))] : [])))
  const left = [...bases].map((base) => base + promptsOf(from)).filter((path) => lstatSync(join(root, path), { throwIfNoEntry: false }) !== undefined)
  return left.map((path) => finding('memory-left', `${path} holds the typed prompts of the project and stays: the agent begins a new list in the new place`, { session: session.id, path }))
}
