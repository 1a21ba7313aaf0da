import { hash } from 'node:crypto'
import { closeSync, constants, fchmodSync, fsyncSync, futimesSync, openSync, readSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../../formats/format.js'
import { writeWhole } from '../../fs/atomic-write.js'
import { openPlain } from '../../fs/blocks.js'
import { identityOf, statusOf, type Identity } from '../../fs/identity.js'
import { digestFile } from '../../fs/probe.js'
import { FenceError } from '../../model/errors.js'
import { encodeText, proofWords, type Rebuild } from '../../model/repair-plan.js'
import type { SessionRef } from '../../model/session.js'
import type { ReplaceAction } from '../../plan/action.js'
import { planItem } from '../../plan/planned-item.js'
import { stagingPath } from '../../plan/sidecar.js'
import { readGitObject, type ExecFile } from './git-objects.js'
import { textOfProof } from './text-proof.js'

const blockSize = 1024 * 1024

/**
 * Makes the bytes of a rebuild in the sidecar and the action that publishes them. What stands at the place goes to the trash.
 * @param name of the staged file, new for each call
 * @throws FenceError when the bytes are no longer those that were proven; system errors. Nothing is left then.
 */
export async function stageRebuild(store: Store, session: SessionRef, rebuild: Rebuild, name: string, exec: ExecFile | undefined): Promise<ReplaceAction> {
  const staged = stagingPath(store, name)
  try {
    const fd = openSync(staged, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600)
    try {
      await writeProof(store, session, rebuild, fd, exec)
      fchmodSync(fd, rebuild.mode)
      futimesSync(fd, rebuild.mtimeMs / 1000, rebuild.mtimeMs / 1000)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    if (digestFile(staged).digest !== rebuild.proof.sha256) throw noLonger(rebuild)
    const path = `${store.backupFolder(rebuild.session)}/${rebuild.name}`
    const old = planItem(store.root, { kind: 'backups', path })?.item
    return {
      kind: 'replace',
      session: rebuild.session,
      path,
      ...(old === undefined ? {} : { old }),
      staged: name,
      stagedIdentity: stagedIdentity(staged),
      bytes: 0,
      reason: proofWords(rebuild.proof),
    }
  } catch (error) {
    rmSync(staged, { force: true })
    throw error
  }
}

/** The staged file as the plan has to find it again. @throws FenceError when it is gone */
export function stagedIdentity(path: string): Identity {
  const status = statusOf(path)
  if (status === undefined) throw new FenceError(`${path} is gone; nothing was replaced`)
  return identityOf(status)
}

async function writeProof(store: Store, session: SessionRef, rebuild: Rebuild, fd: number, exec: ExecFile | undefined): Promise<void> {
  const { proof } = rebuild
  switch (proof.kind) {
    case 'fork':
      copyPlain(join(store.root, store.backupFolder(proof.session), rebuild.name), fd)
      return
    case 'file':
      copyPlain(proof.path, fd)
      return
    case 'transcript': {
      const text = textOfProof(store, session, proof.proof)
      if (text === undefined) throw noLonger(rebuild)
      writeWhole(fd, encodeText(text, proof.form))
      return
    }
    case 'git':
      if (exec === undefined) throw noLonger(rebuild)
      writeWhole(fd, checked(await readGitObject(exec, proof.folder, proof.object), rebuild))
  }
}

function checked(bytes: Buffer, rebuild: Rebuild): Buffer {
  if (hash('sha256', bytes, 'hex') !== rebuild.proof.sha256) throw noLonger(rebuild)
  return bytes
}

function copyPlain(path: string, to: number): void {
  const from = openPlain(path)
  try {
    const block = Buffer.allocUnsafe(blockSize)
    for (let count = readSync(from, block); count > 0; count = readSync(from, block)) writeWhole(to, block.subarray(0, count))
  } finally {
    closeSync(from)
  }
}

function noLonger({ name, proof }: Rebuild): FenceError {
  return new FenceError(`${name} was not rebuilt: ${proofWords(proof)} is no longer what it was`, { hint: 'run again' })
}
