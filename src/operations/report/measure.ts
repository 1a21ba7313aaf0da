import type { Inventory, Store } from '../../formats/format.js'
import { observe } from '../../fs/identity.js'
import { insideRoot } from '../../fs/safe-path.js'
import { RewindAdminError, systemErrorCode } from '../../model/errors.js'
import type { ErrorItem } from '../../model/report.js'
import { isConversation, type Member, type MemberKind } from '../../model/session.js'
import { InodeCount } from '../session-facts.js'

/** Bytes by what they are for, each inode counted once (R68, R86). `own` is our own folder, the trash included. */
export interface Areas {
  readonly transcripts: number
  readonly backups: number
  readonly companions: number
  readonly leftovers: number
  readonly own: number
}

/** What one session takes up in bytes; what is linked into several sessions counts for the first of them. */
export type SessionBytes = Omit<Areas, 'own'>

/** What a store takes up, from its names and metadata alone: nothing is opened but folders. */
export interface StoreSize {
  /** Conversations; what is left of removed ones counts in `areas` only. */
  readonly sessions: number
  /** Files in the folders of backups. */
  readonly backups: number
  readonly areas: Areas
  readonly bySession: ReadonlyMap<string, SessionBytes>
  /** What could not be looked at; it counts nothing. */
  readonly errors: readonly ErrorItem[]
}

const areaOf: Readonly<Record<MemberKind, keyof SessionBytes>> = {
  transcript: 'transcripts',
  backups: 'backups',
  companion: 'companions',
  agent: 'companions',
  leftover: 'leftovers',
}

/** Everything that is of the agent's sessions. */
export function sessionTotal(bytes: SessionBytes): number {
  return bytes.transcripts + bytes.backups + bytes.companions + bytes.leftovers
}

/** Measures a store (R68, R86). Never writes, follows no link; a path that cannot be looked at is an error in the result. */
export function measure(store: Store, inventory: Inventory = store.inventory()): StoreSize {
  const walk = new SizeWalk(store)
  const bySession = new Map<string, SessionBytes>()
  for (const { id, members } of inventory.sessions) bySession.set(id, walk.session(members))
  return {
    sessions: inventory.sessions.filter(isConversation).length,
    backups: walk.backups,
    areas: { ...sumOf(bySession.values()), own: walk.bytesAt(store.sidecar).bytes },
    bySession,
    errors: walk.errors,
  }
}

class SizeWalk {
  readonly errors: ErrorItem[] = []
  backups = 0
  readonly #store: Store
  readonly #inodes = new InodeCount()
  readonly #seen = new Set<string>()

  constructor(store: Store) {
    this.#store = store
  }

  session(members: readonly Member[]): SessionBytes {
    const sizes = { transcripts: 0, backups: 0, companions: 0, leftovers: 0 }
    for (const { kind, path } of members) {
      if (this.#seen.has(path)) continue
      this.#seen.add(path)
      const { bytes, files } = this.#look(path, () => insideRoot(this.#store.root, path))
      sizes[areaOf[kind]] += bytes
      if (kind === 'backups') this.backups += files
    }
    return sizes
  }

  bytesAt(path: string): { readonly bytes: number; readonly files: number } {
    return this.#look(path, () => path)
  }

  #look(path: string, find: () => string | undefined): { readonly bytes: number; readonly files: number } {
    try {
      const found = find()
      const inodes = found === undefined ? [] : (observe(found)?.inodes ?? [])
      return { bytes: inodes.reduce((sum, { key, links, bytes }) => sum + this.#inodes.add(key, links, bytes), 0), files: inodes.length }
    } catch (error) {
      const code = error instanceof RewindAdminError ? error.code : systemErrorCode(error)
      if (code === undefined) throw error
      this.errors.push({ code, path, message: `${path} could not be measured (${code})` })
      return { bytes: 0, files: 0 }
    }
  }
}

function sumOf(all: Iterable<SessionBytes>): SessionBytes {
  const sum = { transcripts: 0, backups: 0, companions: 0, leftovers: 0 }
  for (const { transcripts, backups, companions, leftovers } of all) {
    sum.transcripts += transcripts
    sum.backups += backups
    sum.companions += companions
    sum.leftovers += leftovers
  }
  return sum
}
