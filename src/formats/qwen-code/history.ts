import { isFollowed, type BackupRecord } from '../../model/backup.js'
import type { Checkpoint, History, HistoryAnomaly, Reference } from '../../model/history.js'
import { parseBackupName } from '../../model/names.js'
import type { ListedSnapshot, RepeatedPrompt } from './loaded-list.js'
import type { Place } from './scan.js'
import { failedReason, type Snapshot } from './snapshots.js'

/** A backup as snapshots name it: the newest record of it, and the prompts, by number, in the order they were seen. */
interface Mentions {
  path: string
  record: BackupRecord
  readonly prompts: number[]
}

/**
 * Puts the history of a session together: the snapshots of the list are its checkpoints, and every record of the file, on
 * the active chain or not, counts as a mention of the backups it names.
 */
export class HistoryBuilder {
  readonly #mentions = new Map<string, Mentions>()
  /** Prompt id to its number. */
  readonly #prompts = new Map<string, number>()
  readonly #pinned = new Set<string>()
  readonly #anomalies: HistoryAnomaly[] = []
  readonly #told = new Set<string>()
  #records = 0

  /** Takes a snapshot of any record in the file. */
  mention(snapshot: Snapshot, place: Place): void {
    this.#records += 1
    const prompt = this.#prompts.get(snapshot.promptId) ?? this.#prompts.size
    this.#prompts.set(snapshot.promptId, prompt)
    for (const [path, record] of snapshot.files) {
      this.#check(snapshot, path, record, place)
      if (!isFollowed(record)) continue
      const known = this.#mentions.get(record.name)
      if (known === undefined) this.#mentions.set(record.name, { path, record, prompts: [prompt] })
      else {
        if (known.prompts.at(-1) !== prompt) known.prompts.push(prompt)
        // Names are used again (section 6): the newest copy is the one that is there.
        if ((record.time ?? '') > (known.record.time ?? '')) {
          known.path = path
          known.record = record
        }
      }
    }
  }

  /** A backup that stays in use whatever happens: bytes that are no record name it, or a second transcript does. */
  pin(name: string): void {
    this.#pinned.add(name)
  }

  odd(message: string, place: Place): void {
    this.#anomaly('odd-record', message, place)
  }

  /**
   * @param list the snapshots that can be gone back to, in their order
   * @param messageOf the user message that a snapshot was taken for
   * @param certain false when records may be out of reach because of damage: then what only they name stays in use
   */
  finish(list: readonly ListedSnapshot[], repeated: readonly RepeatedPrompt[], messageOf: (snapshot: Snapshot) => string | undefined, certain: boolean): History {
    for (const { promptId, before, after, place } of repeated) {
      this.#anomaly('duplicate-checkpoint', `prompt ${promptId} was recorded at ${before ?? 'no time'} and again at ${after ?? 'no time'}; the newer one took its place`, place)
    }
    const originals = originalsOf(list)
    return {
      checkpoints: checkpointsOf(list, messageOf),
      originals,
      references: this.#references(list, certain),
      tracked: new Set(originals.keys()),
      anomalies: this.#anomalies,
      lines: this.#records,
    }
  }

  #references(list: readonly ListedSnapshot[], certain: boolean): Map<string, Reference> {
    const orders = new Map(list.map(({ promptId }, order) => [this.#prompts.get(promptId) ?? -1, order]))
    const references = new Map<string, Reference>()
    for (const [name, mentions] of this.#mentions) {
      const isListed = mentions.prompts.some((prompt) => orders.has(prompt))
      references.set(name, referenceOf(name, mentions, orders, this.#pinned.has(name) || (!isListed && !certain)))
    }
    for (const name of this.#pinned) {
      const version = parseBackupName(name)?.version
      if (version !== undefined && !references.has(name)) references.set(name, { name, version, oldest: 0, newest: 0, pinned: true })
    }
    return references
  }

  #check({ promptId }: Snapshot, path: string, record: BackupRecord, place: Place): void {
    // The agent records failure so, with the older name and the next version.
    if (record.unusable === failedReason) return
    if (record.unusable !== undefined) {
      this.#anomaly(record.name === null ? 'odd-record' : 'unsafe-name', `prompt ${promptId}, path ${path}: ${record.unusable}`, place)
    }
    const named = record.name === null ? undefined : parseBackupName(record.name)?.version
    if (named !== undefined && named !== record.version) {
      this.#anomaly('version-mismatch', `path ${path}: version ${String(record.version)} is recorded with backup ${String(record.name)}`, place)
    }
  }

  #anomaly(kind: HistoryAnomaly['kind'], message: string, { source, offset }: Place): void {
    if (this.#told.has(message)) return
    this.#told.add(message)
    this.#anomalies.push({ kind, message, source, offset })
  }
}

/** A checkpoint has the id of its message; the prompt id is another word for it, or its id when no message is known. */
function checkpointsOf(list: readonly ListedSnapshot[], messageOf: (snapshot: Snapshot) => string | undefined): Checkpoint[] {
  const taken = new Set<string>()
  return list.map((snapshot, order): Checkpoint => {
    const { promptId, time, files } = snapshot
    const message = messageOf(snapshot)
    const isOwn = message !== undefined && !taken.has(message)
    if (isOwn) taken.add(message)
    const names = isOwn ? { id: message, aliases: [promptId] } : { id: promptId }
    return { ...names, order, ...(time === undefined ? {} : { time }), files }
  })
}

/**
 * What a path falls back to where a snapshot has no record of it: the first record of version 1 in the list (section 5,
 * step 2). A path without one is not known there, and nobody guesses.
 */
function originalsOf(list: readonly ListedSnapshot[]): Map<string, BackupRecord> {
  const originals = new Map<string, BackupRecord>()
  for (const { files } of list) {
    for (const [path, record] of files) {
      const known = originals.get(path)
      if (known?.version === 1) continue
      if (record.version === 1) originals.set(path, record)
      else if (known === undefined) originals.set(path, { name: null, version: 0, unusable: 'no snapshot that is left has its first version' })
    }
  }
  return originals
}

function referenceOf(name: string, { path, record, prompts }: Mentions, orders: ReadonlyMap<number, number>, pinned: boolean): Reference {
  const found = prompts.flatMap((prompt) => orders.get(prompt) ?? [])
  const reference: Reference = { name, path, version: record.version, ...(record.time === undefined ? {} : { time: record.time }), oldest: 0, newest: 0, pinned }
  if (found.length > 0) return { ...reference, oldest: Math.min(...found), newest: Math.max(...found) }
  return pinned ? reference : { ...reference, dropped: true }
}
