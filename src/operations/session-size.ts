import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { SessionContents, Store } from '../formats/format.js'
import { RewindAdminError, systemErrorCode } from '../model/errors.js'
import type { ErrorItem } from '../model/report.js'
import type { ActivitySources } from '../model/retention.js'
import { membersOf, type Member, type SessionReading, type SessionRef } from '../model/session.js'
import type { PlannedItem } from '../plan/action.js'
import { planItem } from '../plan/planned-item.js'
import type { FreedBytes, Planned } from '../plan/planned-item.js'

/** Everything that a session has on the disk, looked at once. */
export interface SessionSize {
  readonly contents: SessionContents
  /** What would go, with the inodes of each. */
  readonly planned: readonly Planned[]
  /** Newest modification time of its companion files and leftovers, and of its backups; milliseconds since 1970. */
  readonly times: Pick<ActivitySources, 'companion' | 'backup'>
  /** Why the session is left alone whatever its age. */
  readonly blocked?: string
  readonly errors: readonly ErrorItem[]
}

/** What belongs to a session by its format; without a rule of its own, its members as they are. */
export function contentsOf(store: Store, ref: SessionRef): SessionContents {
  return store.contents?.(ref) ?? { own: ref.members, foreign: [], unreadable: [], emptied: [] }
}

/** Looks at every path of a session. What cannot be looked at keeps the whole of it (R11, R108). */
export function sizeUp(store: Store, ref: SessionRef): SessionSize {
  const contents = contentsOf(store, ref)
  const unreadable = unreadableIn(ref, contents)
  if (unreadable !== undefined) return { contents, planned: [], times: {}, blocked: unreadable.message, errors: [unreadable] }
  const looked = lookAt(store, contents.own)
  if ('error' in looked) return { contents, planned: [], times: {}, blocked: looked.error.message, errors: asErrors(looked.error) }
  const { planned } = looked
  return { contents, planned, times: timesOf(contents, planned), errors: [], ...(contents.doubt === undefined ? {} : { blocked: contents.doubt }) }
}

function timesOf(contents: SessionContents, planned: readonly Planned[]): SessionSize['times'] {
  let { companion, backup } = contents
  for (const { item, newestNs } of planned) {
    const at = Math.round(Number(newestNs) / 1e6)
    if (item.kind === 'backups') backup = Math.max(backup ?? at, at)
    else if (item.kind !== 'transcript') companion = Math.max(companion ?? at, at)
  }
  return { companion, backup }
}

/** The first path of a session that cannot be looked at. */
function unreadableIn(ref: SessionRef, { unreadable: [first] }: SessionContents): ErrorItem | undefined {
  if (first === undefined) return undefined
  const { path, code } = first
  return { code, path, message: `${path} cannot be looked at (${code}); session ${ref.id} was left alone` }
}

/** Looks at paths for a plan; what is gone meanwhile is left out. */
export function lookAt(store: Pick<Store, 'root'>, members: readonly Member[]): { planned: Planned[] } | { error: ErrorItem } {
  const planned: Planned[] = []
  for (const member of members) {
    try {
      const item = planItem(store.root, member)
      if (item !== undefined) planned.push(item)
    } catch (error) {
      return { error: asItem(error, member.path) }
    }
  }
  return { planned }
}

/** Bytes that become free when all of it goes, after what was counted before (R68). */
export function freedBy(freed: FreedBytes, planned: readonly Planned[]): number {
  return planned.reduce((sum, { inodes }) => sum + freed.take(inodes), 0)
}

export function itemsOf(planned: readonly Planned[]): PlannedItem[] {
  return planned.map(({ item }) => item)
}

/** A link on the way is no failure: what lies behind it is not ours, and stays (R02, R55). */
export function asErrors(error: ErrorItem): ErrorItem[] {
  return error.code === 'FENCE' ? [] : [error]
}

function asItem(error: unknown, path: string): ErrorItem {
  const code = error instanceof RewindAdminError ? error.code : systemErrorCode(error)
  if (code === undefined) throw error
  const why = error instanceof Error ? error.message : String(error)
  return { code, path, message: `${path} cannot be looked at: ${why}` }
}

/**
 * Newest modification time of the files of members, all the way down, in milliseconds since 1970; 0 for none. The time of a
 * folder says when a name came or went, not when the session was used. Links are not followed.
 */
export function newestFile(store: Pick<Store, 'root'>, members: readonly Member[]): number {
  let newest = 0
  const waiting = members.map(({ path }) => join(store.root, path))
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const status = lstatSync(path, { throwIfNoEntry: false })
    if (status?.isDirectory() === true) for (const name of readdirSync(path)) waiting.push(join(path, name))
    else if (status !== undefined) newest = Math.max(newest, status.mtimeMs)
  }
  return Math.round(newest)
}

/** Newest modification time of the transcripts of a session in milliseconds since 1970; links are not followed. */
export function newestTranscript(root: string, ref: SessionRef): number | undefined {
  let newest: number | undefined
  for (const { path } of membersOf(ref, 'transcript')) {
    try {
      const { mtimeMs } = lstatSync(join(root, path))
      newest = Math.max(newest ?? mtimeMs, mtimeMs)
    } catch {
      return undefined
    }
  }
  return newest === undefined ? undefined : Math.round(newest)
}

/** Why a restore of the agent's own keeps a session from going by age: its files may be the only way back (R114). */
export function unfinishedRestore(reading: SessionReading): string | undefined {
  const found = reading.findings.find(({ id }) => id === 'open-journal' || id === 'damaged-journal')
  return found === undefined ? undefined : `${found.id}: ${found.message}`
}

/** Why what was read of a session does not allow to remove it (promise 4). */
export function doubtAbout(reading: SessionReading): string | undefined {
  if (reading.busy) return 'its transcript changed while it was read'
  const found = reading.findings.find(({ id }) => id === 'newer-format' || id === 'unreadable' || id === 'not-regular')
  return found === undefined ? undefined : `${found.id}: ${found.message}`
}
