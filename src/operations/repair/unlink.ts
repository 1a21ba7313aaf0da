import { chmodSync, closeSync, fsyncSync, openSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Store } from '../../formats/format.js'
import { AnchoredFolder } from '../../fs/anchored-folder.js'
import { sameBytes } from '../../fs/content.js'
import { Transfer } from '../../fs/link-or-copy.js'
import { probeFolder } from '../../fs/probe.js'
import { FenceError } from '../../model/errors.js'
import { isBackupName } from '../../model/names.js'
import { membersOf, type SessionRef } from '../../model/session.js'
import type { PlannedItem, ReplaceAction } from '../../plan/action.js'
import { planItem } from '../../plan/planned-item.js'
import { stagingPath } from '../../plan/sidecar.js'
import { stagedIdentity } from './rebuild.js'

/** One backup that gets a file of its own. */
export interface UnlinkPlan {
  readonly session: string
  /** Relative to the root. */
  readonly path: string
  readonly old: PlannedItem
  /** The sessions that have a name of the same file, its own among them. */
  readonly sharers: readonly string[]
  readonly reason: string
}

interface SharedName {
  readonly session: string
  readonly name: string
  readonly links: number
}

/**
 * Backups that are one file under several names, and those of them that get one of their own: the fork keeps the file it was
 * given, and the session it was forked from gets the new one (formats/qwen-code section 7). Where a name lies outside of the
 * sessions of the store, every one of them gets a new file. Reads only.
 */
export function planUnlinking(store: Store, sessions: readonly SessionRef[]): UnlinkPlan[] {
  const plans: UnlinkPlan[] = []
  for (const names of sharedNames(store, sessions).values()) {
    const keeper = names.some(({ links }) => links > names.length) ? undefined : keeperOf(store, sessions, names)
    const sharers = [...new Set(names.map(({ session }) => session))]
    for (const each of names) {
      if (each === keeper) continue
      const path = `${store.backupFolder(each.session)}/${each.name}`
      const old = planItem(store.root, { kind: 'backups', path })?.item
      if (old?.type !== 'file') continue
      const others = sharers.filter((session) => session !== each.session)
      const reason = others.length === 0 ? 'it has another name outside of the sessions' : `session ${others.join(', ')} has the same file`
      plans.push({ session: each.session, path, old, sharers, reason: `${reason}; it gets one of its own with the same bytes` })
    }
  }
  return plans
}

/** Makes the new file in the sidecar, with bytes, mode and times of the old one, and the action that puts it in place. @throws system errors */
export function stageUnlinking(store: Store, { session, path, old, reason }: UnlinkPlan, name: string): ReplaceAction {
  const staged = stagingPath(store, name)
  try {
    new Transfer({ method: 'copy' }).take(join(store.root, path), staged, 'one')
    assertSameBytes(join(store.root, path), staged, old.identity.size)
    chmodSync(staged, old.mode)
    const fd = openSync(staged, 'r')
    try {
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    return { kind: 'replace', session, path, old, staged: name, stagedIdentity: stagedIdentity(staged), bytes: 0, reason }
  } catch (error) {
    rmSync(staged, { force: true })
    throw error
  }
}

/** What is replaced does not go to the trash: the copy is read back before. @throws FenceError when it differs */
function assertSameBytes(path: string, staged: string, size: number): void {
  const folder = AnchoredFolder.open(dirname(path))
  try {
    if (!sameBytes(staged, folder, basename(path), { offset: 0, size })) throw new FenceError(`the copy of ${path} does not hold its bytes; it was left as it is`, { hint: 'run again' })
  } finally {
    folder.close()
  }
}

/** Names of backups by inode, of those that have more than one. */
function sharedNames(store: Store, sessions: readonly SessionRef[]): Map<string, SharedName[]> {
  const byInode = new Map<string, SharedName[]>()
  for (const session of sessions) {
    if (membersOf(session, 'backups').length === 0) continue
    const { entries } = probeFolder({ path: join(store.root, store.backupFolder(session.id)), digest: 'none' })
    for (const { name, node, links, inode } of entries) {
      if (node !== 'file' || links < 2 || !isBackupName(name)) continue
      const known = byInode.get(inode) ?? []
      known.push({ session: session.id, name, links })
      byInode.set(inode, known)
    }
  }
  return byInode
}

/** The name that keeps the file: that of a fork of which none of the others is a fork. */
function keeperOf(store: Store, sessions: readonly SessionRef[], names: readonly SharedName[]): SharedName | undefined {
  const refs = new Map(sessions.map((session) => [session.id, session]))
  const sourceOf = (session: string): string | undefined => {
    const ref = refs.get(session)
    return ref === undefined ? undefined : store.head?.(ref).forkedFrom
  }
  const sources = new Set(names.map(({ session }) => sourceOf(session)))
  return names.findLast(({ session }) => sourceOf(session) !== undefined && !sources.has(session)) ?? names.at(-1)
}
