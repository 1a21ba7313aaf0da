import { lstatSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import type { Store } from '../formats/format.js'
import { readJsonObject } from '../fs/read-small.js'
import { isBackupName } from '../model/names.js'
import type { SessionReading } from '../model/session.js'
import type { Plan } from '../plan/action.js'
import { sessionFile, writeSessionFile } from './state-file.js'

/** Name of a backup to when a cap of ours removed it, milliseconds since 1970. */
type Capped = ReadonlyMap<string, number>

const fileName = 'capped.json'
const limit = 64 * 1024 * 1024
const cappedSchema = v.object({ schemaVersion: v.literal(1), backups: v.array(v.tuple([v.string(), v.number()])) })

/**
 * What caps of ours removed of a session. The agent's own list goes on naming it where the cap was below the agent's
 * (formats/qwen-code section 6: lists are not rewritten), and it is not lost. What cannot be read says nothing.
 */
function readCapped(store: Pick<Store, 'sidecar'>, session: string): Capped {
  const file = readJsonObject(sessionFile(store, session, fileName), { follow: false, limit })
  const parsed = file.kind === 'object' ? v.safeParse(cappedSchema, file.value) : undefined
  return new Map(parsed?.success === true ? parsed.output.backups : [])
}

function writeCapped(store: Store, session: string, capped: Capped): void {
  if (capped.size === 0) rmSync(sessionFile(store, session, fileName), { force: true })
  else writeSessionFile(store, sessionFile(store, session, fileName), { schemaVersion: 1, backups: [...capped] })
}

/**
 * Notes what a plan of `cap` is about to remove while records go on naming it; call `forgetReturned` when the plan was carried out.
 * Returns the sessions. Hold the store's lock.
 * @throws NoSpaceError, FenceError, system errors
 */
export function noteCapped(store: Store, { command, actions }: Plan, now: number): string[] {
  const noted: string[] = []
  for (const action of command === 'cap' ? actions : []) {
    // Where records are rewritten nothing names it any more.
    if (action.kind !== 'trash-backups' || action.needs !== undefined) continue
    const folder = `${store.backupFolder(action.session)}/`
    const names = action.items.flatMap(({ path }) => (path.startsWith(folder) && isBackupName(path.slice(folder.length)) ? [path.slice(folder.length)] : []))
    if (names.length === 0) continue
    writeCapped(store, action.session, new Map([...readCapped(store, action.session), ...names.map((name): [string, number] => [name, now])]))
    noted.push(action.session)
  }
  return noted
}

/** Forgets what is there again, or still: when it is lost later, that is a loss. Hold the store's lock. @throws as `noteCapped` */
export function forgetReturned(store: Store, session: string): void {
  const before = readCapped(store, session)
  const gone = new Map([...before].filter(([name]) => !isThere(store, session, name)))
  if (gone.size < before.size) writeCapped(store, session, gone)
}

/** Gives a fork the memory of its source. Hold the store's lock. @throws as `noteCapped` */
export function carryCapped(store: Store, from: string, to: string): void {
  const capped = new Map([...readCapped(store, from)].filter(([name]) => !isThere(store, to, name)))
  if (capped.size > 0) writeCapped(store, to, new Map([...capped, ...readCapped(store, to)]))
}

/** A reading in which backups that a cap of ours removed count as dropped. A name that was used anew since counts as what it is. */
export function withCapped(store: Store, reading: SessionReading): SessionReading {
  const capped = readCapped(store, reading.id)
  if (capped.size === 0) return reading
  const references = new Map(reading.history.references)
  for (const [name, at] of capped) {
    const reference = references.get(name)
    if (reference === undefined || isThere(store, reading.id, name)) continue
    if (reference.time === undefined || !(Date.parse(reference.time) > at)) references.set(name, { ...reference, dropped: true })
  }
  return { ...reading, history: { ...reading.history, references } }
}

function isThere(store: Store, session: string, name: string): boolean {
  return lstatSync(join(store.root, store.backupFolder(session), name), { throwIfNoEntry: false }) !== undefined
}
