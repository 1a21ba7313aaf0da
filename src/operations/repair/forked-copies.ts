import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../../formats/format.js'
import { listFolder } from '../../fs/folder.js'
import { digestFile } from '../../fs/probe.js'
import type { History } from '../../model/history.js'
import { membersOf, type SessionRef } from '../../model/session.js'
import type { SealStore } from '../seals.js'

/** A backup of the same name in another session. */
export interface ForkedCopy {
  readonly session: string
  /** sha256 of its bytes in hex; `undefined` when it is not there, no plain file, or cannot be read. */
  readonly digest: string | undefined
  readonly size: number
  readonly mode: number
  readonly mtimeMs: number
  /** What was sealed of it there. */
  readonly seal: { readonly sha256: string; readonly size: number } | undefined
}

/** Looks for backups in the other sessions of a store. Folders are listed once, and only wanted names are remembered. */
export class ForkedCopies {
  readonly #store: Store
  readonly #sessions: readonly SessionRef[]
  readonly #seals: SealStore
  readonly #now: number
  readonly #bySession = new Map<string, SessionRef>()
  readonly #histories = new Map<string, History | undefined>()
  #names: Map<string, Set<string>> | undefined

  constructor(store: Store, sessions: readonly SessionRef[], seals: SealStore, now: number) {
    this.#store = store
    this.#sessions = sessions
    this.#seals = seals
    this.#now = now
    for (const session of sessions) this.#bySession.set(session.id, session)
  }

  /** Says which names will be asked for. */
  want(names: Iterable<string>): void {
    const wanted = new Map([...names].map((name): [string, Set<string>] => [name, new Set()]))
    for (const session of this.#sessions) {
      if (membersOf(session, 'backups').length === 0) continue
      for (const name of this.#namesIn(session)) wanted.get(name)?.add(session.id)
      // What is gone may still be sealed.
      for (const name of this.#seals.get(session.id)?.backups.keys() ?? []) wanted.get(name)?.add(session.id)
    }
    this.#names = wanted
  }

  #namesIn(session: SessionRef): string[] {
    const folders = this.#store.backupFolders?.(session) ?? [{ path: this.#store.backupFolder(session.id), prefix: '' }]
    return folders.flatMap(({ path, prefix }) => listFolder(join(this.#store.root, path)).entries.map(({ name }) => prefix + name))
  }

  /** Every copy of a backup outside of its session. */
  of(session: string, name: string): ForkedCopy[] {
    return [...(this.#names?.get(name) ?? [])].filter((other) => other !== session).map((other) => this.#copy(other, name))
  }

  /** Copies that are the same backup by their records: made at the same time (a fork copies records as they are). */
  sameBackup(session: string, name: string, time: string | undefined): ForkedCopy[] {
    if (time === undefined) return []
    return this.of(session, name).filter((copy) => this.#history(copy.session)?.references.get(name)?.time === time)
  }

  #copy(session: string, name: string): ForkedCopy {
    const seal = sealOf(this.#seals, session, name)
    const path = join(this.#store.root, this.#store.backupFolder(session), name)
    try {
      const status = lstatSync(path)
      if (status.isFile()) {
        return { session, digest: digestFile(path).digest, size: status.size, mode: status.mode & 0o7777, mtimeMs: status.mtimeMs, seal }
      }
    } catch {
      // Gone, or not to be read: no proof.
    }
    return { session, digest: undefined, size: 0, mode: 0, mtimeMs: 0, seal }
  }

  #history(session: string): History | undefined {
    if (!this.#histories.has(session)) {
      const ref = this.#bySession.get(session)
      const readable = ref !== undefined && (membersOf(ref, 'transcript').length > 0 || this.#store.conversationsElsewhere === true)
      this.#histories.set(session, readable ? this.#store.read(ref, { now: this.#now }).history : undefined)
    }
    return this.#histories.get(session)
  }
}

/** What was sealed of a backup; the size is the last part of the stamp. */
export function sealOf(seals: SealStore, session: string, name: string): { sha256: string; size: number } | undefined {
  const seal = seals.get(session)?.backups.get(name)
  return seal === undefined ? undefined : { sha256: seal.sha256, size: Number(seal.stamp.split('-').at(-1)) }
}
