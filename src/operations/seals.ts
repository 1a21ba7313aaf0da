import { hash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import writeFileAtomic from 'write-file-atomic'
import { NewerFormatError, systemErrorCode } from '../model/errors.js'
import { isFields } from '../model/fields.js'
import { isFindingId, type Finding } from '../model/finding.js'

/** Digest of a backup at first sight, and the stamp it had when it was last known to be that. */
export interface Seal {
  /** sha256 in hex. */
  readonly sha256: string
  /** See `stampOf`. */
  readonly stamp: string
}

/** What is remembered of one session. */
export interface SessionSeals {
  readonly backups: ReadonlyMap<string, Seal>
  /** Stamps of the transcripts when the session was checked, and what was found then: both or none. */
  readonly checked?: { readonly transcripts: string; readonly findings: readonly Finding[] }
}

const schemaVersion = 1

type Shard = Map<string, SessionSeals>

/**
 * The seals of a store, in `<sidecar>/seals`, spread over 256 files by session so that memory stays flat. Reading
 * writes nothing; `save` replaces the files that changed atomically. A damaged file counts as no seals: what it said is
 * sealed anew, and `damaged` names it.
 */
export class SealStore {
  readonly #folder: string
  readonly #shards = new Map<string, Shard>()
  readonly #dirty = new Set<string>()
  /** Names of the parts there are, once looked for; `undefined` when that is not known. */
  #present: ReadonlySet<string> | undefined
  readonly damaged: string[] = []

  constructor(sidecar: string) {
    this.#folder = join(sidecar, 'seals')
  }

  /** The part of the store that a session lies in; taking sessions part by part reads each file once. */
  static shardOf(session: string): string {
    return hash('sha256', session, 'hex').slice(0, 2)
  }

  /** What is sealed of a session. Throws `NewerFormatError` when a newer version of ours wrote it. */
  get(session: string): SessionSeals | undefined {
    this.#present ??= this.#names()
    if (this.#present?.size === 0 && this.#shards.size === 0) return undefined
    return this.#shard(SealStore.shardOf(session)).get(session)
  }

  set(session: string, seals: SessionSeals): void {
    const shard = SealStore.shardOf(session)
    this.#shard(shard).set(session, seals)
    this.#dirty.add(shard)
  }

  /** Forgets every session that is not in `sessions`. */
  prune(sessions: ReadonlySet<string>): void {
    for (const name of this.#names() ?? []) {
      const shard = this.#shard(name)
      for (const session of shard.keys()) {
        if (sessions.has(session)) continue
        shard.delete(session)
        this.#dirty.add(name)
      }
    }
  }

  /** Writes what changed and lets go of what was read. */
  save(): void {
    if (this.#dirty.size > 0) mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    for (const name of this.#dirty) {
      writeFileAtomic.sync(this.#file(name), JSON.stringify(toJson(this.#shard(name))), { mode: 0o600 })
    }
    this.#dirty.clear()
    this.#shards.clear()
    this.#present = undefined
  }

  /** Lets go of what was read and not changed. */
  release(): void {
    for (const name of this.#shards.keys()) if (!this.#dirty.has(name)) this.#shards.delete(name)
  }

  #shard(name: string): Shard {
    const known = this.#shards.get(name)
    if (known !== undefined) return known
    const shard = this.#read(name)
    this.#shards.set(name, shard)
    return shard
  }

  #read(name: string): Shard {
    this.#present ??= this.#names()
    if (this.#present?.has(name) === false) return new Map()
    const file = this.#file(name)
    let text: string
    try {
      text = readFileSync(file, 'utf8')
    } catch (error) {
      if (systemErrorCode(error) !== 'ENOENT') this.damaged.push(file)
      return new Map()
    }
    const shard = fromText(text)
    if (shard === 'newer') {
      const hint = 'update rewind-admin; the seals were left as they are'
      throw new NewerFormatError(`${file} was written by a newer version of rewind-admin`, { hint })
    }
    if (shard === undefined) this.damaged.push(file)
    return shard ?? new Map<string, SessionSeals>()
  }

  /** `undefined` when the folder cannot be listed: then each part has to be tried. */
  #names(): Set<string> | undefined {
    try {
      return new Set(readdirSync(this.#folder).flatMap((name) => (/^[0-9a-f]{2}\.json$/.test(name) ? [name.slice(0, 2)] : [])))
    } catch (error) {
      return systemErrorCode(error) === 'ENOENT' ? new Set() : undefined
    }
  }

  #file(name: string): string {
    return join(this.#folder, `${name}.json`)
  }
}

function fromText(text: string): Shard | 'newer' | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isFields(value) || typeof value.schemaVersion !== 'number') return undefined
  if (value.schemaVersion > schemaVersion) return 'newer'
  if (!isFields(value.sessions)) return undefined
  const shard: Shard = new Map()
  for (const [session, known] of Object.entries(value.sessions)) {
    const seals = sealsFrom(known)
    if (seals === undefined) return undefined
    shard.set(session, seals)
  }
  return shard
}

function sealsFrom(value: unknown): SessionSeals | undefined {
  if (!isFields(value) || !isFields(value.backups)) return undefined
  const backups = new Map<string, Seal>()
  for (const name of Object.keys(value.backups)) {
    const seal = value.backups[name]
    if (!Array.isArray(seal)) return undefined
    const sha256: unknown = seal[0]
    const stamp: unknown = seal[1]
    if (typeof sha256 !== 'string' || typeof stamp !== 'string') return undefined
    backups.set(name, { sha256, stamp })
  }
  const { checked } = value
  if (checked === undefined) return { backups }
  if (!isFields(checked) || typeof checked.transcripts !== 'string' || !Array.isArray(checked.findings)) return undefined
  return { backups, checked: { transcripts: checked.transcripts, findings: (checked.findings as unknown[]).filter(isFinding) } }
}

function isFinding(value: unknown): value is Finding {
  return typeof value === 'object' && value !== null && 'id' in value && typeof value.id === 'string' && isFindingId(value.id)
}

function toJson(shard: Shard): unknown {
  const sessions = [...shard].map(([session, { backups, checked }]): [string, unknown] => [
    session,
    { backups: Object.fromEntries([...backups].map(([name, seal]) => [name, [seal.sha256, seal.stamp]])), ...(checked === undefined ? {} : { checked }) },
  ])
  return { schemaVersion, sessions: Object.fromEntries(sessions) }
}
