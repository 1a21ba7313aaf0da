import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { listFolder } from '../../fs/folder.js'
import { parseBackupName } from '../../model/names.js'
import type { SessionRef } from '../../model/session.js'
import type { RecordRebuild } from '../format.js'
import { namesIn } from './cap.js'
import { pathsInConversation, pathsInFolder } from './candidates.js'
import { backupNames, isWiped } from './contents.js'
import { foldersOf, type Conversations } from './conversations.js'
import { backupFolderOf, isOtherState, stateName, statePathOf } from './layout.js'
import { allPaths, salvageState, type Salvaged } from './salvage.js'
import { parseState, serialiseState, type Snapshot, type State, type StateRecord } from './state.js'
import { readStateFile, stateTrouble, type StateFile } from './state-file.js'
import { pathHashOf } from './versions.js'

interface RebuildContext {
  readonly root: string
  readonly conversations: Conversations
  readonly baseFolder: string | undefined
}

interface HowToBuild {
  readonly now: number
  uuid(): string
}

/** A state that can stand in for the broken one, with the words for where it comes from. */
interface Candidate {
  readonly bytes: Buffer
  readonly state: State
  readonly proof: string
}

/**
 * The state of a session rebuilt from what proves it: another whole copy of it, what is whole in the broken one, and first
 * versions among the backups, whose names are the hashes of their paths. Nothing is guessed: what a version was kept for, only
 * a state says. `undefined` when nothing is broken.
 */
export function rebuildState(context: RebuildContext, session: SessionRef, how: HowToBuild): RecordRebuild | { readonly refused: string } | undefined {
  const { root } = context
  const path = statePathOf(session.id)
  const file = readStateFile(root, path)
  const trouble = stateTrouble(file)
  const names = backupNames(root, session.id)
  if (trouble === undefined && !(isWiped(file) && names.length > 0)) return undefined
  if (file.kind === 'missing' && names.length === 0) return undefined
  if (file.kind === 'unreadable') return { refused: trouble ?? 'its state cannot be read' }
  // Nothing of a newer state is broken.
  if (file.kind === 'read' && file.parsed.kind === 'newer') return undefined
  const found = otherCopy(root, session.id) ?? fromParts(context, session.id, file, names, how)
  if (found === undefined) return { refused: `${trouble ?? 'its state is empty'}, and nothing proves what its backups are; they are kept` }
  const named = namesIn(found.state)
  const left = names.filter((name) => !named.has(name)).length
  const rest = left === 0 ? '' : `; ${String(left)} backups are named by nothing that is left, and the agent deletes them with its next turn`
  const mode = file.kind === 'read' ? file.mode : 0o600
  return { file: { path, bytes: found.bytes, mode, ...(file.kind === 'read' ? { was: file.stamp } : {}) }, proof: `${found.proof}${rest}` }
}

/** The newest of the whole copies that a crash left, or that somebody put beside it. */
function otherCopy(root: string, session: string): Candidate | undefined {
  const copies = listFolder(join(root, session)).entries.flatMap((entry) => {
    if (entry.name === stateName || !entry.isFile() || !isOtherState(entry.name)) return []
    const file = readStateFile(root, `${session}/${entry.name}`)
    if (file.kind !== 'read' || stateTrouble(file) !== undefined || isWiped(file) || file.parsed.kind !== 'state') return []
    const { state } = file.parsed
    return state.sessionId === session ? [{ name: entry.name, state, bytes: file.bytes, at: newestIn(state), mtimeMs: file.mtimeMs }] : []
  })
  const best = copies.reduce<(typeof copies)[number] | undefined>((a, b) => (a === undefined || b.at > a.at || (b.at === a.at && b.mtimeMs > a.mtimeMs) ? b : a), undefined)
  return best === undefined ? undefined : { bytes: best.bytes, state: best.state, proof: `${best.name} is a whole state of this session` }
}

function fromParts(context: RebuildContext, session: string, file: StateFile, names: readonly string[], how: HowToBuild): Candidate | undefined {
  const salvaged = file.kind === 'read' ? salvageState(file.bytes, session) : undefined
  const firsts = firstVersions(context, session, names, salvaged?.state)
  const known = salvaged?.state ?? emptyState(session)
  const originals = new Map([...known.originals, ...[...firsts].filter(([path]) => !known.originals.has(path))])
  const added = originals.size - known.originals.size
  const snapshots = withBaseline(known.snapshots, [...originals.values()], how)
  const state: State = { ...known, sessionId: session, snapshots, originals, trackedFiles: [...new Set([...allPaths(known), ...originals.keys()])] }
  const operations = known.snapshots.filter(({ kind }) => kind !== 'baseline').length
  if (operations === 0 && originals.size === 0) return undefined
  const bytes = serialiseState(state)
  const faults = file.kind === 'read' && file.parsed.kind === 'state' ? file.parsed.faults.length : 0
  const parsed = parseState(bytes)
  // A record that cannot be mended stays as it is: then there is nothing to do.
  if (parsed.kind !== 'state' || (faults > 0 && parsed.faults.length >= faults)) return undefined
  return { bytes, state, proof: proofWords(salvaged, operations, added) }
}

function proofWords(salvaged: Salvaged | undefined, operations: number, added: number): string {
  const parts = [
    ...(salvaged === undefined ? [] : [`${String(operations)} snapshots of the damaged state are whole`]),
    ...(added === 0 ? [] : [`${String(added)} first versions among the backups have the hash of their path for a name`]),
  ]
  const lost = salvaged === undefined || salvaged.lost.length === 0 ? '' : `; lost: ${salvaged.lost.slice(0, 3).join(', ')}${salvaged.lost.length > 3 ? ', …' : ''}`
  return `${parts.join('; ')}${lost}`
}

/** Paths whose first version lies among the backups: it is what the file was before the agent touched it (sections 3 and 4). */
function firstVersions({ root, conversations, baseFolder }: RebuildContext, session: string, names: readonly string[], state: State | undefined): Map<string, StateRecord> {
  const firsts = new Map(names.flatMap((name) => {
    const parsed = parseBackupName(name)
    return parsed?.version === 1 ? [[parsed.pathHash, name] as const] : []
  }))
  const found = new Map<string, StateRecord>()
  const look = (paths: Iterable<string>): void => {
    for (const path of paths) {
      const name = firsts.get(pathHashOf(path))
      if (name === undefined || found.has(path)) continue
      const { mtimeMs } = lstatSync(join(root, backupFolderOf(session), name))
      found.set(path, { backupFileName: name, version: 1, backupTime: new Date(Math.floor(mtimeMs)).toISOString() })
    }
  }
  if (state !== undefined) look(allPaths(state))
  const [recorded, other] = foldersOf(conversations, session)
  const folder = other === undefined ? (recorded ?? baseFolder) : undefined
  if (folder === undefined || found.size === firsts.size) return found
  const conversation = conversations.of(session, Number.POSITIVE_INFINITY)
  if (conversation !== undefined) look(pathsInConversation(conversation, folder))
  if (found.size < firsts.size) look(pathsInFolder(folder))
  return found
}

function withBaseline(snapshots: readonly Snapshot[], originals: readonly StateRecord[], how: HowToBuild): readonly Snapshot[] {
  if (snapshots.some(({ kind }) => kind === 'baseline')) return snapshots
  const times = [...snapshots.map(({ createdAt }) => createdAt), ...originals.map(({ backupTime }) => backupTime)].filter((time) => time !== undefined)
  const createdAt = times.sort()[0] ?? new Date(how.now).toISOString()
  return [{ id: how.uuid(), key: 'baseline', kind: 'baseline', createdAt, files: new Map() }, ...snapshots]
}

function newestIn({ snapshots, originals, redo }: State): number {
  const times = [...snapshots.map(({ createdAt }) => createdAt), ...redo.map(({ createdAt }) => createdAt), ...[...originals.values()].map(({ backupTime }) => backupTime)]
  return times.reduce((newest, time) => Math.max(newest, Date.parse(time ?? '') || 0), 0)
}

function emptyState(sessionId: string): State {
  return { sessionId, snapshots: [], originals: new Map(), trackedFiles: [], redo: [] }
}
