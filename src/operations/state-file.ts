import { mkdirSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import * as v from 'valibot'
import { atomicWrite } from '../fs/atomic-write.js'
import { readJsonObject } from '../fs/read-small.js'
import { joinSafe } from '../fs/safe-path.js'
import { FenceError } from '../model/errors.js'
import type { BackupRecord } from '../model/backup.js'
import type { Checkpoint } from '../model/history.js'
import type { SessionState } from '../model/session-state.js'
import { newToken } from '../plan/run-id.js'
import { Sidecar, type StorePlace } from '../plan/sidecar.js'

/** Where in the sidecar the states are. */
export const statesFolder = 'states'

/** The version of the state file that this version writes, and the newest that it reads. */
const stateVersion = 1

const stateLimit = 256 * 1024 * 1024
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0))

const recordSchema = v.object({
  name: v.nullable(v.string()),
  version: v.number(),
  time: v.exactOptional(v.string()),
  parent: v.exactOptional(v.string()),
  mode: v.exactOptional(count),
  lossy: v.exactOptional(v.literal(true)),
  unusable: v.exactOptional(v.string()),
})

/** Path to the position of its record: keys are data, so they are no names of members. */
const filesSchema = v.array(v.tuple([v.string(), count]))

const stateSchema = v.object({
  schemaVersion: v.literal(stateVersion),
  session: v.string(),
  project: v.exactOptional(v.string()),
  /** Every record once; checkpoints name them by position, since most repeat. */
  records: v.array(recordSchema),
  checkpoints: v.array(
    v.object({
      id: v.string(),
      aliases: v.exactOptional(v.array(v.string())),
      kind: v.exactOptional(v.picklist(['baseline', 'redo-point'])),
      time: v.exactOptional(v.string()),
      files: filesSchema,
    }),
  ),
  originals: filesSchema,
  tracked: v.array(v.string()),
})

type StateJson = v.InferOutput<typeof stateSchema>

/** What stands where the state of a session should be. */
export type StateFile =
  | { readonly kind: 'missing' }
  | { readonly kind: 'state'; readonly state: SessionState }
  | { readonly kind: 'newer' }
  | { readonly kind: 'unusable'; readonly reason: string }

/** Where our own state of a session lies: `<sidecar>/states/<session>/state.json`. Throws FenceError for an id that is no name. */
export function stateFile(store: Pick<StorePlace, 'sidecar'>, session: string): string {
  return sessionFile(store, session, 'state.json')
}

/** Where a file of ours about a session lies. Throws FenceError for an id that is no name. */
export function sessionFile(store: Pick<StorePlace, 'sidecar'>, session: string, name: string): string {
  if (session.includes('/')) throw new FenceError(`refused the session ${JSON.stringify(session)}: its id is not a name`)
  return join(joinSafe(join(store.sidecar, statesFolder), session), name)
}

/** Reads our own state of a session; never throws for what stands there. */
export function readState(store: Pick<StorePlace, 'sidecar'>, session: string): StateFile {
  const file = readJsonObject(stateFile(store, session), { follow: false, limit: stateLimit })
  if (file.kind === 'missing') return { kind: 'missing' }
  if (file.kind === 'unusable') return { kind: 'unusable', reason: file.reason }
  const version = file.value.schemaVersion
  if (typeof version === 'number' && version > stateVersion) return { kind: 'newer' }
  const parsed = v.safeParse(stateSchema, file.value)
  if (parsed.success) return fromJson(parsed.output)
  const [issue] = parsed.issues
  return { kind: 'unusable', reason: `${v.getDotPath(issue) ?? 'it'}: ${issue.message}` }
}

/**
 * Writes our own state of a session at once; a file that stands there and cannot be used is kept beside it. Hold the store's lock.
 * @throws NoSpaceError, FenceError
 */
export function writeState(store: StorePlace, state: SessionState, before: StateFile): void {
  const file = stateFile(store, state.session)
  if (before.kind === 'unusable') renameSync(file, `${file}.${newToken()}.unusable`)
  writeSessionFile(store, file, toJson(state))
}

/** Writes a file of ours about a session at once, as JSON. Hold the store's lock. @throws NoSpaceError, FenceError */
export function writeSessionFile(store: StorePlace, file: string, value: object): void {
  const sidecar = new Sidecar(store)
  sidecar.prepare()
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  sidecar.withRoom(() => { atomicWrite(file, Buffer.from(`${JSON.stringify(value)}\n`), { token: newToken() }) })
  for (const path of [dirname(dirname(file)), dirname(file), file]) sidecar.own(path)
}

/** True when both say the same. */
export function sameState(a: SessionState, b: SessionState): boolean {
  return JSON.stringify(toJson(a)) === JSON.stringify(toJson(b))
}

function toJson(state: SessionState): StateJson {
  const records: BackupRecord[] = []
  const places = new Map<string, number>()
  const placeOf = ({ name, version, time, parent, mode, lossy, unusable }: BackupRecord): number => {
    const key = JSON.stringify([name, version, time, parent, mode, lossy, unusable])
    const known = places.get(key)
    if (known !== undefined) return known
    places.set(key, records.length)
    return records.push({
      name,
      version,
      ...(time === undefined ? {} : { time }),
      ...(parent === undefined ? {} : { parent }),
      ...(mode === undefined ? {} : { mode }),
      ...(lossy === undefined ? {} : { lossy }),
      ...(unusable === undefined ? {} : { unusable }),
    }) - 1
  }
  const filesOf = (files: ReadonlyMap<string, BackupRecord>): [string, number][] => [...files].map(([path, record]) => [path, placeOf(record)])
  const checkpoints = state.checkpoints.map(({ id, aliases, kind, time, files }) => ({
    id,
    ...(aliases === undefined ? {} : { aliases: [...aliases] }),
    ...(kind === undefined ? {} : { kind }),
    ...(time === undefined ? {} : { time }),
    files: filesOf(files),
  }))
  const originals = filesOf(state.originals)
  const { session, project, tracked } = state
  return { schemaVersion: stateVersion, session, ...(project === undefined ? {} : { project }), records, checkpoints, originals, tracked: [...tracked] }
}

function fromJson({ session, project, records, checkpoints, originals, tracked }: StateJson): StateFile {
  const filesOf = (files: StateJson['originals']): Map<string, BackupRecord> | undefined => {
    const map = new Map<string, BackupRecord>()
    for (const [path, place] of files) {
      const record = records[place]
      if (record === undefined) return undefined
      map.set(path, record)
    }
    return map
  }
  const first = filesOf(originals)
  const read: Omit<Checkpoint, 'order'>[] = []
  for (const { files, ...checkpoint } of checkpoints) {
    const own = filesOf(files)
    if (own !== undefined) read.push({ ...checkpoint, files: own })
  }
  if (first === undefined || read.length < checkpoints.length) return { kind: 'unusable', reason: 'it names a record that it does not have' }
  return { kind: 'state', state: { session, ...(project === undefined ? {} : { project }), checkpoints: read, originals: first, tracked } }
}
