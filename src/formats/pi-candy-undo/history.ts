import type { BackupRecord } from '../../model/backup.js'
import { finding, type Finding } from '../../model/finding.js'
import type { Checkpoint, History, Reference } from '../../model/history.js'
import { parseBackupName } from '../../model/names.js'
import type { Writable } from '../../model/writable.js'
import { bytesOf, messagesNoted } from './recorded.js'
import type { State, StateRecord } from './state.js'

/** A history with what is wrong with its records. */
export interface ReadHistory {
  readonly history: History
  readonly findings: readonly Finding[]
}

/**
 * The state of a session as checkpoints. `names` are the other words for each snapshot, by its place: messages that mean it.
 * What a path was is the snapshot's record, else the original, else left alone (formats/pi-candy-undo section 6).
 * @param before the state before this one, where it is kept: what only that one names is still in use
 */
export function toHistory(state: State, names: ReadonlyMap<string, number>, place: { readonly session: string; readonly path: string }, before?: State): ReadHistory {
  const reader = new HistoryReader(state, place)
  return reader.read(names, before)
}

class HistoryReader {
  readonly #state: State
  readonly #place: { readonly session: string; readonly path: string }
  readonly #references = new Map<string, Writable<Reference>>()
  readonly #findings = new Map<string, Finding>()

  constructor(state: State, place: { readonly session: string; readonly path: string }) {
    this.#state = state
    this.#place = place
  }

  read(names: ReadonlyMap<string, number>, before: State | undefined): ReadHistory {
    const { snapshots, originals, trackedFiles } = this.#state
    const aliases = snapshots.map(({ key }) => new Set([key]))
    for (const [message, index] of names) aliases[index]?.add(message)
    const ids = idsOf(this.#state)
    const places = new Map(ids.map((id, index) => [id, index]))
    for (const { id, snapshot } of messagesNoted(this.#state)) aliases[places.get(snapshot) ?? -1]?.add(id)
    const checkpoints = snapshots.map((snapshot, order): Checkpoint => {
      const id = ids[order] ?? snapshot.key
      return {
        id,
        order,
        aliases: [...(aliases[order] ?? [])].filter((alias) => alias !== id),
        ...(snapshot.kind === 'operation' ? {} : { kind: snapshot.kind }),
        ...(snapshot.createdAt === undefined ? {} : { time: snapshot.createdAt }),
        files: this.#records(snapshot.files, order),
      }
    })
    const first = this.#records(originals, 0)
    this.#keep(before)
    const history: History = {
      checkpoints,
      originals: first,
      references: this.#references,
      tracked: new Set(trackedFiles),
      anomalies: [],
      lines: checkpoints.length,
    }
    return { history, findings: [...this.#findings.values()] }
  }

  #records(records: ReadonlyMap<string, StateRecord>, order: number): Map<string, BackupRecord> {
    return new Map([...records].map(([path, record]) => [path, this.#record(path, record, order)]))
  }

  #record(path: string, from: StateRecord, order: number): BackupRecord {
    const { backupFileName: name, version, backupTime, unusable } = from
    const { gap, sha256, size, mode } = bytesOf(from)
    const time = backupTime === undefined ? {} : { time: backupTime }
    // What a gap names was never made.
    if (gap !== undefined) return { name, version, ...time, unusable: `its state was not recorded: ${gap}`, gap: true }
    const record: BackupRecord = { name, version, ...time, ...(size === undefined ? {} : { size }), ...(mode === undefined ? {} : { mode }) }
    const parsed = name === null ? undefined : parseBackupName(name)
    if (name !== null && parsed !== undefined) this.#refer(name, { path, version: parsed.version, ...time, ...(sha256 === undefined ? {} : { digest: sha256 }) }, order)
    const reason = unusable ?? (name !== null && parsed === undefined ? 'its backup has not the name of a backup' : undefined) ?? leavesProject(path)
    if (name !== null && parsed === undefined) this.#report('unsafe-name', `${path}: a record names its backup ${JSON.stringify(name)}, which is not the name of a backup`)
    else if (parsed !== undefined && parsed.version !== version) {
      this.#report('version-mismatch', `${path}: the record says version ${String(version)}, the name of its backup ${String(parsed.version)}`)
    }
    return reason === undefined ? record : { ...record, unusable: reason }
  }

  /** A backup that the state names is in use as long as it does so: the plugin removes none of them (section 8). */
  #refer(name: string, about: Pick<Reference, 'path' | 'version' | 'time' | 'digest'>, order: number): void {
    const known = this.#references.get(name)
    if (known !== undefined) known.oldest = Math.min(known.oldest, order)
    else this.#references.set(name, { name, ...about, oldest: order, newest: this.#state.snapshots.length - 1, pinned: true })
  }

  #keep(before: State | undefined): void {
    if (before === undefined) return
    for (const files of [before.originals, ...before.snapshots.map((snapshot) => snapshot.files)]) {
      for (const [path, record] of files) {
        const { backupFileName: name, version } = record
        if (name === null || parseBackupName(name) === undefined || this.#references.has(name) || bytesOf(record).gap !== undefined) continue
        this.#references.set(name, { name, path, version, oldest: 0, newest: this.#state.snapshots.length - 1, pinned: true, dropped: true })
      }
    }
  }

  #report(id: 'unsafe-name' | 'version-mismatch', message: string): void {
    this.#findings.set(message, finding(id, message, this.#place))
  }
}

/** Ids of the snapshots: their own, else their key; a second one of the same name gets its place behind it. */
export function idsOf({ snapshots }: Pick<State, 'snapshots'>): string[] {
  const seen = new Set<string>()
  return snapshots.map(({ id, key }, order) => {
    const own = id ?? key
    const unique = seen.has(own) ? `${own}#${String(order)}` : own
    seen.add(unique)
    return unique
  })
}

/** The plugin stores what lies outside of the project by its absolute path (section 3): a relative way out is none of its own. */
function leavesProject(path: string): string | undefined {
  return !path.startsWith('/') && path.split('/').includes('..') ? 'the tracked path leads out of the project, as the agent never stores it' : undefined
}
