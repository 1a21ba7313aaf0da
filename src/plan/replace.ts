import { closeSync, constants, fsyncSync, openSync, readSync, realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { writeWhole } from '../fs/atomic-write.js'
import { identityOf, sameIdentity, sameInode, statusOf } from '../fs/identity.js'
import { foldersAbove, insideRoot, joinSafe } from '../fs/safe-path.js'
import { FenceError, systemErrorCode } from '../model/errors.js'
import type { ReplaceAction, StagedAction } from './action.js'
import type { Bench } from './move.js'
import { Changed, recheck } from './move.js'
import { stagingPath } from './sidecar.js'
import type { Slot } from './slot.js'

/**
 * Writes the new file of an action that carries its bytes beside our other files; others are ready as they are.
 * @throws FenceError for an action that has neither; system errors
 */
export function stageContent(bench: Bench, action: ReplaceAction, name: string): StagedAction {
  const { staged, stagedIdentity, content } = action
  if (staged !== undefined && stagedIdentity !== undefined) return { ...action, staged, stagedIdentity }
  if (content === undefined) throw new FenceError(`nothing says what ${action.path} shall hold; it was left as it is`)
  const path = stagingPath({ root: bench.root, sidecar: bench.sidecar.path }, name)
  bench.acts.direct.create(path, Buffer.from(content, 'base64'))
  if (action.mode !== undefined) bench.acts.direct.chmod(path, action.mode)
  syncFile(path)
  const made = statusOf(path)
  if (made === undefined) throw new FenceError(`the new file for ${action.path} is gone; the old one stays`)
  return { ...action, staged: name, stagedIdentity: identityOf(made) }
}

/**
 * Publishes a staged file. The old one gets a second name in the trash first, then one rename swaps them: there is no moment
 * without a file at the path. Bytes that another program wrote to the old file meanwhile are carried over (`appendOnly`), or
 * the swap is taken back. The receipt must have been written before.
 * @returns a check for bytes that came late, to be run once more when the run ends
 * @throws Changed, FenceError, system errors; the old file is then still in place
 */
export async function publish(bench: Bench, slot: Slot, action: StagedAction): Promise<() => void> {
  const staged = joinSafe(bench.sidecar.staging, action.staged)
  const stagedNow = statusOf(staged)
  if (stagedNow?.isFile() !== true || !sameIdentity(identityOf(stagedNow), action.stagedIdentity)) {
    throw new Changed(`the new file for ${action.path} is not the one that was made; the old one stays`)
  }
  if (action.old === undefined) {
    await publishNew(bench, staged, action)
    return () => undefined
  }
  const path = action.beside === true ? besidePath(bench.root, action) : recheck(bench.root, action.old)
  if (path === undefined) throw new Changed(`${action.path} is gone`)
  if (action.old.type === 'file') bench.acts.direct.chmod(staged, action.old.mode)
  bench.sidecar.own(staged)
  const kept = slot.placeFor(action.path)
  bench.times.before(dirname(path))
  try {
    await swap(bench, { staged, path, kept }, action)
  } finally {
    bench.times.after(dirname(path))
  }
  let carried = action.old.identity.size
  // Asked for anew: the folder in the trash has another name once it is whole.
  const carry = (): void => { carried = carryTail(slot.at(action.path), path, carried) }
  if (action.appendOnly === true) carry()
  else await takeBackIfWritten(bench, kept, path, action)
  return action.appendOnly === true ? carry : () => undefined
}

/** The path beside the root, re-checked like one inside. @throws FenceError, Changed */
function besidePath(root: string, action: ReplaceAction): string | undefined {
  const folder = dirname(root)
  if (realpathSync.native(folder) !== folder) throw new FenceError(`${action.path} is not beside the store`)
  const path = insideRoot(folder, action.path)
  const status = path === undefined ? undefined : statusOf(path)
  if (status === undefined) return undefined
  if (!status.isFile() || action.old === undefined || !sameIdentity(identityOf(status), action.old.identity)) {
    throw new Changed(`${action.path} changed since the plan was made`)
  }
  return path
}

interface Places {
  readonly staged: string
  readonly path: string
  /** The old file's place in the trash. */
  readonly kept: string
}

async function swap(bench: Bench, { staged, path, kept }: Places, action: ReplaceAction): Promise<void> {
  let linked = true
  try {
    await bench.acts.try((acts) => { acts.link(path, kept) })
  } catch (error) {
    const code = systemErrorCode(error)
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EOPNOTSUPP' && code !== 'EMLINK') throw error
    linked = false
    await bench.acts.try((acts) => { acts.rename(path, kept) })
  }
  try {
    const now = statusOf(linked ? path : kept)
    if (now === undefined || action.old === undefined || !sameIdentity(identityOf(now), action.old.identity)) {
      throw new Changed(`${action.path} changed since the plan was made`)
    }
    await bench.acts.try((acts) => { acts.rename(staged, path) })
  } catch (error) {
    await bench.acts.try((acts) => { if (linked) acts.unlink(kept); else acts.rename(kept, path) })
    throw error
  }
}

async function publishNew(bench: Bench, staged: string, action: ReplaceAction): Promise<void> {
  for (const folder of action.beside === true ? [] : foldersAbove(action.path)) {
    const path = insideRoot(bench.root, folder)
    if (path === undefined) throw new Changed(`the folder for ${action.path} is gone`)
    if (statusOf(path) !== undefined) continue
    bench.times.before(dirname(path))
    bench.acts.direct.mkdir(path, 0o700)
    bench.sidecar.own(path)
    bench.times.after(dirname(path))
  }
  const path = insideRoot(action.beside === true ? dirname(bench.root) : bench.root, action.path)
  if (path === undefined) throw new Changed(`the folder for ${action.path} is gone`)
  bench.sidecar.own(staged)
  bench.times.before(dirname(path))
  try {
    await bench.acts.try((acts) => { acts.link(staged, path) })
    await bench.acts.try((acts) => { acts.unlink(staged) })
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'EEXIST') throw new Changed(`something appeared at ${action.path} meanwhile`)
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EOPNOTSUPP') throw error
    if (statusOf(path) !== undefined) throw new Changed(`something appeared at ${action.path} meanwhile`)
    await bench.acts.try((acts) => { acts.rename(staged, path) })
  } finally {
    bench.times.after(dirname(path))
  }
}

/** A file that is renamed over another must be on the disk before its name is. */
function syncFile(path: string): void {
  const fd = openSync(path, 'r+')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** Appends what was written to the old file beyond `from` to the new one. Returns how far the old one has been read. */
function carryTail(kept: string, path: string, from: number): number {
  const old = openSync(kept, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    const block = Buffer.alloc(64 * 1024)
    let at = from
    for (let got = readSync(old, block, 0, block.length, at); got > 0; got = readSync(old, block, 0, block.length, at)) {
      const fresh = openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_NOFOLLOW)
      try {
        writeWhole(fresh, block.subarray(0, got))
      } finally {
        closeSync(fresh)
      }
      at += got
    }
    return at
  } finally {
    closeSync(old)
  }
}

async function takeBackIfWritten(bench: Bench, kept: string, path: string, action: StagedAction): Promise<void> {
  const old = statusOf(kept)
  const fresh = statusOf(path)
  if (old === undefined || action.old === undefined || sameIdentity(identityOf(old), action.old.identity)) return
  if (fresh === undefined || !sameInode(identityOf(fresh), action.stagedIdentity)) return
  await bench.acts.try((acts) => { acts.rename(kept, path) })
  throw new Changed(`${action.path} was written to while it was replaced; it was put back`)
}
