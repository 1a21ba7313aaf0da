import { closeSync, fsyncSync, futimesSync, lstatSync, openSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Conversations, Mending } from '../../formats/conversation.js'
import type { Store } from '../../formats/format.js'
import { writeWhole } from '../../fs/atomic-write.js'
import { RewindAdminError, systemErrorCode } from '../../model/errors.js'
import type { KeptItem } from '../../model/report.js'
import { membersOf, type SessionRef } from '../../model/session.js'
import type { PlannedItem, ReplaceAction } from '../../plan/action.js'
import { planItem } from '../../plan/planned-item.js'
import { stagingPath } from '../../plan/sidecar.js'
import { stagedIdentity } from './rebuild.js'

/** One transcript that mending would change. */
export interface MendPlan {
  readonly session: string
  /** Relative to the root. */
  readonly path: string
  readonly mending: Mending
  /** The transcript as it was when it was read. */
  readonly old: PlannedItem
}

/** Reads the transcripts of a session for what mending would change. Writes nothing. */
export function planMending(store: Store, conversations: Conversations, session: SessionRef, quiet: { now: number; quietMs: number }): { plans: MendPlan[]; kept: KeptItem[] } {
  const plans: MendPlan[] = []
  const kept: KeptItem[] = []
  for (const { path } of membersOf(session, 'transcript')) {
    try {
      const old = planItem(store.root, { kind: 'transcript', path })?.item
      if (old?.type !== 'file') continue
      const mending = conversations.mendTranscript(path, () => undefined)
      if (!changes(mending)) continue
      const written = lstatSync(join(store.root, path)).mtimeMs
      if (quiet.now - written <= quiet.quietMs) kept.push({ session: session.id, reason: `${path} was written to a short while ago; it is damaged and left alone until it is quiet` })
      else plans.push({ session: session.id, path, mending, old })
    } catch (error) {
      if (!(error instanceof RewindAdminError) && systemErrorCode(error) === undefined) throw error
      kept.push({ session: session.id, reason: `${path} cannot be mended: ${error instanceof Error ? error.message : String(error)}` })
    }
  }
  return { plans, kept }
}

/** What a mending does, in words. */
export function mendingWords({ nulRuns, nulBytes, split, ended }: Mending): string {
  const parts = [
    ...(nulRuns > 0 ? [`${String(nulBytes)} NUL bytes in ${String(nulRuns)} ${nulRuns === 1 ? 'run' : 'runs'} are left out`] : []),
    ...(split > 0 ? [`${String(split)} ${split === 1 ? 'line that holds' : 'lines that hold'} more than one record ${split === 1 ? 'is' : 'are'} split`] : []),
    ...(ended ? ['the cut last line is ended'] : []),
  ]
  return `${parts.join('; ')}; every other byte stays`
}

/**
 * Writes the mended transcript into the sidecar, with the time of the old one so that its age stays, and makes the action
 * that puts it in place.
 * @param name of the staged file, new for each call
 * @throws LockedError when the transcript changes meanwhile; system errors. Nothing is left then.
 */
export function stageMending(store: Store, conversations: Conversations, plan: MendPlan, name: string): ReplaceAction {
  const staged = stagingPath(store, name)
  try {
    const fd = openSync(staged, 'wx', 0o600)
    try {
      conversations.mendTranscript(plan.path, (bytes) => { writeWhole(fd, bytes) })
      const { atimeMs, mtimeMs } = lstatSync(join(store.root, plan.path))
      futimesSync(fd, atimeMs / 1000, mtimeMs / 1000)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    const { session, path, old, mending } = plan
    return { kind: 'replace', session, path, old, staged: name, stagedIdentity: stagedIdentity(staged), appendOnly: true, bytes: 0, reason: mendingWords(mending) }
  } catch (error) {
    rmSync(staged, { force: true })
    throw error
  }
}

function changes({ nulRuns, split, ended }: Mending): boolean {
  return nulRuns > 0 || split > 0 || ended
}
