import { lstatSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { AnchoredFolder } from '../../fs/anchored-folder.js'
import { readPlain } from '../../fs/blocks.js'
import { sameBytes } from '../../fs/content.js'
import { listFolder } from '../../fs/folder.js'
import type { SessionRef } from '../../model/session.js'
import type { MigratedFile, SessionMerge } from '../format.js'
import { readContents } from './contents.js'
import { formatMarker, inGroup, isTemporary, journalId, pendingFolder, sideFileOf, storeMarker } from './layout.js'
import { madeFrom } from './migrate-files.js'
import { proveFormat } from './migrate-proof.js'
import { readingOf, type SessionState } from './reading.js'
import { inlineBytesOf, type StoredRecord } from './record.js'
import type { Marker, SessionRecords } from './records.js'

/** A file of more bytes than this is not merged. */
const limit = 256 * 1024 * 1024

/** One session in one of two roots. */
export interface MergeSide {
  readonly root: string
  readonly state: SessionState
  /** True when a log of an older format lies beside the one that counts. */
  readonly converted: boolean
}

/**
 * What brings a session of another root into this one (section 1.1: nothing moves the old root). Records of both are kept
 * under their names; the earliest one at or after a message decides, as everywhere. Files come in an order in which every
 * message means, at any moment, what it meant here before or what it will mean: a side file before its record, and records from
 * the earliest on, so that no link points at a file that is not there. `undefined` when there is nothing to bring.
 */
export function planMerge(session: SessionRef, to: MergeSide, from: MergeSide, now: number): SessionMerge | { readonly refusal: string } | undefined {
  const names = filesIn(join(from.root, session.id))
  if (names.length === 0) return undefined
  const refusal = refusalOf(session, to, from) ?? conflictOf(session.id, to.root, from.root, names)
  if (refusal !== undefined) return { refusal }
  const missing = new Set(names.filter((name) => nodeAt(to.root, session.id, name) === undefined))
  const ordered = inOrder(from.state.records, names).filter((name) => missing.has(name))
  const records = union(to.state.records, from.state.records)
  const rootOf = (name: string): string => (nodeAt(to.root, session.id, name) === undefined ? from.root : to.root)
  return {
    files: ordered.map((name): MigratedFile => madeFrom(from.root, `${session.id}/${name}`, `${session.id}/${name}`, (bytes) => bytes)),
    folders: foldersOf(ordered).flatMap((name) => {
      const path = name === '' ? session.id : `${session.id}/${name}`
      return nodeAt(to.root, path, '') === undefined ? [{ path, mtimeNs: lstatSync(join(from.root, path), { bigint: true }).mtimeNs }] : []
    }),
    reading: readingOf(session, { records, journals: [], log: to.state.log ?? from.state.log }, { now }),
    bytes: (name) => {
      const bytes = readPlain(join(rootOf(name), session.id, name), limit)
      return bytes === undefined || name.endsWith('.before') ? bytes : inlineBytesOf(bytes)
    },
    check: () => {
      const odd = ordered.find((name) => !isSame(join(to.root, session.id, name), join(from.root, session.id, name)))
      return odd === undefined ? undefined : `${odd} is not what it was`
    },
  }
}

function refusalOf(session: SessionRef, to: MergeSide, from: MergeSide): string | undefined {
  for (const { root, state } of [to, from]) {
    if (state.records.newer) return `its store version in ${root} is newer than this version knows`
    const [unread] = state.records.unread
    if (unread !== undefined) return `${unread.path} in ${root} cannot be read (${unread.reason})`
  }
  const { foreign, unreadable } = readContents(from.root, session)
  const [odd] = [...foreign, ...unreadable.map(({ path }) => path)]
  if (odd !== undefined) return `${odd} in ${from.root} is none of the plugin's own`
  if (isEmpty(to.state) || isEmpty(from.state)) return undefined
  const [here, there] = [numberingOf(to), numberingOf(from)]
  if (here === there) return undefined
  return `its groups are numbered by format ${here ?? 'nobody knows which'} in ${to.root}, by format ${there ?? 'nobody knows which'} in ${from.root}`
}

/** A name that both roots have is the same in both, or the session stays in both. */
function conflictOf(session: string, to: string, from: string, names: readonly string[]): string | undefined {
  for (const name of names) {
    const [here, there] = [join(to, session, name), join(from, session, name)]
    if (nodeAt(from, session, name)?.isFile() !== true) return `${name} in ${from} is no plain file`
    if (lstatSync(there).size > limit) return `${name} in ${from} is too large`
    if (nodeAt(to, session, name) !== undefined && !isSame(here, there)) return `${name} is not the same in ${from} and in ${to}`
  }
  return undefined
}

/** The log format that the groups are numbered by: what the marker says, or what the conversation proves. */
function numberingOf({ state, converted }: MergeSide): string | undefined {
  const { format } = state.records
  if (format.kind === 'number') return String(format.value)
  const proof = proveFormat(state, converted)
  return proof !== undefined && 'format' in proof ? String(proof.format) : undefined
}

function isEmpty({ records, journals }: SessionState): boolean {
  return records.groups.size === 0 && journals.length === 0
}

/** Everything of a session that a reader may look at, by names within it; copies that were never committed are left. */
function filesIn(folder: string, prefix = ''): string[] {
  return listFolder(folder).entries.flatMap((entry) => {
    const name = `${prefix}${entry.name}`
    if (entry.isDirectory()) return name === pendingFolder ? [] : filesIn(join(folder, entry.name), `${name}/`)
    return isTemporary(entry.name) ? [] : [name]
  })
}

function inOrder(records: SessionRecords, names: readonly string[]): string[] {
  const ranked = [...records.groups.values()].flat().sort((a, b) => a.group - b.group || timeOf(a) - timeOf(b))
  const inGroups = ranked.flatMap(({ group, name }) => [inGroup(group, sideFileOf(name)), inGroup(group, name)])
  const last = names.filter((name) => journalId(name) !== undefined)
  const markers = [storeMarker, formatMarker]
  const later = new Set([...inGroups, ...last, ...markers])
  const first = names.filter((name) => !later.has(name))
  return [...first, ...inGroups, ...last, ...markers].filter((name) => names.includes(name))
}

function timeOf(record: StoredRecord): number {
  return record.kind === 'newer' ? 0 : record.time
}

function foldersOf(names: readonly string[]): string[] {
  const above = names.flatMap((name) => name.split('/').slice(0, -1).map((_, index, all) => all.slice(0, index + 1).join('/')))
  return [...new Set(['', ...above])]
}

function union(to: SessionRecords, from: SessionRecords): SessionRecords {
  const numbers = [...new Set([...to.groups.keys(), ...from.groups.keys()])].sort((a, b) => a - b)
  const groups = new Map(
    numbers.map((number): [number, StoredRecord[]] => {
      const here = to.groups.get(number) ?? []
      const names = new Set(here.map(({ name }) => name))
      const all = [...here, ...(from.groups.get(number) ?? []).filter(({ name }) => !names.has(name))]
      return [number, all.sort((a, b) => (a.name < b.name ? -1 : 1))]
    }),
  )
  return { store: marker(to.store, from.store), format: marker(to.format, from.format), newer: false, groups, unread: [] }
}

function marker(here: Marker, there: Marker): Marker {
  return here.kind === 'none' ? there : here
}

function isSame(a: string, b: string): boolean {
  const [here, there] = [lstatSync(a, { throwIfNoEntry: false }), lstatSync(b, { throwIfNoEntry: false })]
  if (here?.isFile() !== true || there?.isFile() !== true || here.size !== there.size) return false
  // The bits of a side file are given to what is restored from it (section 1.2).
  if (a.endsWith('.before') && (here.mode & 0o777) !== (there.mode & 0o777)) return false
  const folder = AnchoredFolder.open(dirname(b))
  try {
    return there.size <= limit && sameBytes(a, folder, basename(b), { offset: 0, size: there.size })
  } finally {
    folder.close()
  }
}

function nodeAt(root: string, session: string, name: string): ReturnType<typeof lstatSync> {
  return lstatSync(join(root, session, name), { throwIfNoEntry: false })
}
