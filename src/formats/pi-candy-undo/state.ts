import { isFields, textOf, type Fields } from '../../model/fields.js'

/** The only version of state.json there is (formats/pi-candy-undo section 2). */
export const stateVersion = 1

/**
 * What a path was at one version (formats/pi-candy-undo section 2). Of everything here, `from` is the JSON value that it
 * was read from: fields of it that are not known are written again. What is made new has none.
 */
export interface StateRecord {
  /** `null` says that there was no plain file. */
  readonly backupFileName: string | null
  readonly version: number
  /** ISO 8601. */
  readonly backupTime?: string
  /** Why nobody can tell what it says; then it is written as it was read. */
  readonly unusable?: string
  readonly from?: unknown
}

export interface Snapshot {
  /** Absent in states from before the current shape. */
  readonly id?: string
  /** `baseline`, the id of a message, or a random UUID. */
  readonly key: string
  readonly kind: 'baseline' | 'operation' | 'redo-point'
  /** ISO 8601. */
  readonly createdAt?: string
  /** Stored path to its record. Keys are data: any text may stand there. */
  readonly files: ReadonlyMap<string, StateRecord>
  readonly from?: Fields
}

export interface RedoItem {
  readonly type: 'code' | 'conversation' | 'both'
  /** Key of a redo-point snapshot. */
  readonly restoreKey: string | null
  /** Entry of the conversation to return to. */
  readonly oldLeafId: string | null
  /** ISO 8601. */
  readonly createdAt?: string
  readonly from?: Fields
}

/** A value that has not the shape it should have, by its JSON path. */
interface StateFault {
  /** Such as `$.snapshots[3].files["a.txt"].version`. */
  readonly at: string
  readonly reason: string
}

export interface State {
  readonly sessionId: string
  /** Oldest first. */
  readonly snapshots: readonly Snapshot[]
  /** Stored path to what it was just before the agent's first change. */
  readonly originals: ReadonlyMap<string, StateRecord>
  /** In the order of first tracking. */
  readonly trackedFiles: readonly string[]
  /** A stack; the last one is the top. */
  readonly redo: readonly RedoItem[]
  readonly from?: Fields
}

/** What the bytes of a state.json are. The plugin takes whatever is no `state` for no state at all. */
export type ParsedState =
  | {
      readonly kind: 'state'
      readonly state: State
      /** What is wrong inside; snapshots, redo items and tracked paths that they name whole are not in `state`. */
      readonly faults: readonly StateFault[]
      /** True when something in it has a shape from before the current one. */
      readonly old: boolean
    }
  | { readonly kind: 'newer'; readonly version: number }
  | { readonly kind: 'unusable'; readonly reason: string; readonly at: string }

/** Reads a state.json by the acceptance test of the plugin (section 2), and then looks at every value in it. Never throws. */
export function parseState(bytes: Buffer): ParsedState {
  if (bytes.length === 0) return unusable('it is empty (0 bytes)')
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch (error) {
    return unusable(error instanceof SyntaxError ? 'it is not valid JSON' : 'it is not valid UTF-8')
  }
  if (!isFields(value)) return unusable('its top level is not a JSON object')
  const { version } = value
  if (typeof version === 'number' && Number.isInteger(version) && version > stateVersion) return { kind: 'newer', version }
  if (version !== stateVersion) return unusable('it is not 1', '$.version')
  const { sessionId } = value
  if (typeof sessionId !== 'string') return unusable('it is not a text', '$.sessionId')
  for (const name of ['snapshots', 'trackedFiles', 'redo'] as const) {
    if (!Array.isArray(value[name])) return unusable('it is not a list', `$.${name}`)
  }
  if (typeof value.originals !== 'object' || value.originals === null) return unusable('it is not an object', '$.originals')
  return new StateReader().read(value, sessionId)
}

/**
 * The bytes of a state.json: unknown fields of every level kept, two spaces, a final newline (section 16).
 * @param written texts of parts that were written before, for one who writes state after state: most parts are the same. None of
 *   them may be changed in place then
 */
export function serialiseState(state: State, written = new WeakMap<object, string>()): Buffer {
  const { from, sessionId, snapshots, originals, trackedFiles, redo } = state
  const value: Fields = { ...from, version: stateVersion, sessionId, snapshots, originals, trackedFiles, redo }
  const texts = Object.entries(value).flatMap(([name, each]) => {
    if (each === undefined) return []
    const text = each === snapshots ? listText(snapshots, written) : each === originals ? partText(written, originals, '  ', recordsOut) : each === redo ? textAt(redo.map(redoOut), '  ') : undefined
    return [`  ${JSON.stringify(name)}: ${text ?? (typeof each === 'object' && each !== null ? partText(written, each, '  ', (same) => same) : JSON.stringify(each))}`]
  })
  return Buffer.from(`{\n${texts.join(',\n')}\n}\n`)
}

function partText<T extends object>(written: WeakMap<object, string>, part: T, indent: string, out: (part: T) => unknown): string {
  const known = written.get(part)
  if (known !== undefined) return known
  const text = textAt(out(part), indent)
  written.set(part, text)
  return text
}

/** JSON text as it stands behind an indent; a line feed in it is never part of a value. */
function textAt(value: unknown, indent: string): string {
  return JSON.stringify(value, undefined, 2).replaceAll('\n', `\n${indent}`)
}

function listText(snapshots: readonly Snapshot[], written: WeakMap<object, string>): string {
  if (snapshots.length === 0) return '[]'
  return `[\n${snapshots.map((each) => `    ${partText(written, each, '    ', snapshotOut)}`).join(',\n')}\n  ]`
}

function snapshotOut({ from, id, key, files, createdAt, kind }: Snapshot): Fields {
  return { ...from, ...(id === undefined ? {} : { id }), key, files: recordsOut(files), ...(createdAt === undefined ? {} : { createdAt }), kind }
}

function redoOut({ from, type, restoreKey, oldLeafId, createdAt }: RedoItem): Fields {
  return { ...from, type, restoreKey, oldLeafId, ...(createdAt === undefined ? {} : { createdAt }) }
}

// `fromEntries` and spreading define properties, so `__proto__` and its like stay plain keys.
function recordsOut(records: ReadonlyMap<string, StateRecord>): Fields {
  return Object.fromEntries(
    [...records].map(([path, { from, backupFileName, version, backupTime, unusable: broken }]) => {
      if (broken !== undefined) return [path, from]
      const known = isFields(from) ? from : {}
      return [path, { ...known, backupFileName, version, ...(backupTime === undefined ? {} : { backupTime }) }]
    }),
  )
}

function unusable(reason: string, at = '$'): ParsedState {
  return { kind: 'unusable', reason, at }
}

class StateReader {
  readonly #faults: StateFault[] = []
  #old = false

  read(value: Fields, sessionId: string): ParsedState {
    const snapshots = list(value.snapshots).flatMap((each, index) => this.#snapshot(each, `$.snapshots[${String(index)}]`))
    const state: State = {
      sessionId,
      snapshots,
      originals: this.#records(value.originals, '$.originals', snapshots[0]?.createdAt),
      trackedFiles: list(value.trackedFiles).flatMap((each, index) => {
        if (typeof each === 'string') return [each]
        this.#fault(`$.trackedFiles[${String(index)}]`, 'it is not a text')
        return []
      }),
      redo: list(value.redo).flatMap((each, index) => this.#redoItem(each, `$.redo[${String(index)}]`)),
      from: value,
    }
    return { kind: 'state', state, faults: this.#faults, old: this.#old }
  }

  #snapshot(value: unknown, at: string): Snapshot[] {
    if (!isFields(value)) return this.#fault(at, 'it is not an object')
    const { id, key, kind, createdAt } = value
    if (typeof key !== 'string') return this.#fault(`${at}.key`, 'it is not a text')
    if (id === undefined) this.#old = true
    else if (typeof id !== 'string') this.#fault(`${at}.id`, 'it is not a text')
    const known = kind === 'baseline' || kind === 'operation' || kind === 'redo-point'
    if (!known) return this.#fault(`${at}.kind`, 'it is none of baseline, operation and redo-point')
    if (!isFields(value.files)) return this.#fault(`${at}.files`, 'it is not an object')
    const time = this.#time(createdAt, `${at}.createdAt`)
    const files = this.#records(value.files, `${at}.files`, time)
    return [{ ...(typeof id === 'string' ? { id } : {}), key, kind, ...(time === undefined ? {} : { createdAt: time }), files, from: value }]
  }

  #records(value: unknown, at: string, time: string | undefined): Map<string, StateRecord> {
    const records = new Map<string, StateRecord>()
    // The plugin accepts a list in place of the object; its keys would be numbers.
    if (!isFields(value)) {
      this.#fault(at, 'it is not an object')
      return records
    }
    for (const [path, each] of Object.entries(value)) records.set(path, this.#record(each, `${at}[${JSON.stringify(path)}]`, time))
    return records
  }

  #record(from: unknown, at: string, time: string | undefined): StateRecord {
    if (from === null) {
      this.#old = true
      return { backupFileName: null, version: 1, ...(time === undefined ? {} : { backupTime: time }), from }
    }
    if (!isFields(from)) return this.#unusable(from, at, 'the record is not an object')
    const { backupFileName, version } = from
    if (backupFileName !== null && typeof backupFileName !== 'string') {
      return this.#unusable(from, `${at}.backupFileName`, 'the record names its backup by neither a text nor null')
    }
    if (typeof version !== 'number' || !Number.isSafeInteger(version) || version < 1) {
      return this.#unusable(from, `${at}.version`, 'the version of the record is not a whole number of 1 or more')
    }
    const backupTime = this.#time(from.backupTime, `${at}.backupTime`)
    return { backupFileName, version, ...(backupTime === undefined ? {} : { backupTime }), from }
  }

  #redoItem(value: unknown, at: string): RedoItem[] {
    if (!isFields(value)) return this.#fault(at, 'it is not an object')
    const { type, restoreKey = null, oldLeafId = null } = value
    if (type !== 'code' && type !== 'conversation' && type !== 'both') {
      return this.#fault(`${at}.type`, 'it is none of code, conversation and both')
    }
    if (restoreKey !== null && typeof restoreKey !== 'string') return this.#fault(`${at}.restoreKey`, 'it is neither a text nor null')
    if (oldLeafId !== null && typeof oldLeafId !== 'string') return this.#fault(`${at}.oldLeafId`, 'it is neither a text nor null')
    const createdAt = this.#time(value.createdAt, `${at}.createdAt`)
    return [{ type, restoreKey, oldLeafId, ...(createdAt === undefined ? {} : { createdAt }), from: value }]
  }

  #time(value: unknown, at: string): string | undefined {
    const text = textOf(value)
    if (text === undefined || Number.isNaN(Date.parse(text))) this.#fault(at, 'it is not a time')
    return text
  }

  #unusable(from: unknown, at: string, reason: string): StateRecord {
    this.#fault(at, reason)
    return { backupFileName: null, version: 1, unusable: reason, from }
  }

  #fault(at: string, reason: string): [] {
    this.#faults.push({ at, reason })
    return []
  }
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : []
}
