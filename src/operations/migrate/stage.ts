import { closeSync, constants, fchmodSync, fsyncSync, futimesSync, openSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { MigratedFile, Store } from '../../formats/format.js'
import { writeWhole } from '../../fs/atomic-write.js'
import { identityOf, statusOf } from '../../fs/identity.js'
import { FenceError } from '../../model/errors.js'
import type { ReplaceAction } from '../../plan/action.js'
import { planItem } from '../../plan/planned-item.js'
import { stagingPath } from '../../plan/sidecar.js'

/** What a file of a migration is staged as. */
export interface Staging {
  readonly session: string
  /** Of the staged file, new for each call. */
  readonly name: string
  readonly reason: string
  /** The path of the file is relative to the folder that holds the root. */
  readonly beside?: true
}

/**
 * Writes a file of a migration beside our other files and makes the action that publishes it; what stands at its place goes to
 * the trash.
 * @throws what the file's `write` throws; system errors. Nothing is left then.
 */
export function stageFile(store: Store, file: MigratedFile, { session, name, reason, beside }: Staging): ReplaceAction {
  const old = planItem(beside === true ? dirname(store.root) : store.root, { kind: 'transcript', path: file.path })?.item
  const staged = stagingPath(store, name)
  try {
    const fd = openSync(staged, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600)
    try {
      file.write((bytes) => { writeWhole(fd, bytes) })
      if (file.mode !== undefined) fchmodSync(fd, file.mode)
      if (file.mtimeMs !== undefined) futimesSync(fd, file.mtimeMs / 1000, file.mtimeMs / 1000)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    const made = statusOf(staged)
    if (made === undefined) throw new FenceError(`${join(store.sidecar, 'staging', name)} is gone; nothing was replaced`)
    return {
      kind: 'replace',
      session,
      path: file.path,
      ...(beside === undefined ? {} : { beside }),
      ...(old === undefined ? {} : { old }),
      staged: name,
      stagedIdentity: identityOf(made),
      bytes: 0,
      reason,
    }
  } catch (error) {
    rmSync(staged, { force: true })
    throw error
  }
}

/** Takes staged files away that were not published. */
export function sweepStaged(store: Store, names: readonly string[]): void {
  for (const name of names) rmSync(join(store.sidecar, 'staging', name), { force: true })
}
