import { randomUUID } from 'node:crypto'
import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { NewFile, Store } from '../../formats/format.js'
import { FenceError } from '../../model/errors.js'
import { finding, type Finding } from '../../model/finding.js'
import type { KeptItem } from '../../model/report.js'
import type { SessionRef } from '../../model/session.js'
import type { ReplaceAction } from '../../plan/action.js'
import { planItem } from '../../plan/planned-item.js'

/** Records of a session that are put in place of broken ones. */
export interface RecordPlan {
  readonly session: string
  readonly file: NewFile
  /** What proves them, in words. */
  readonly proof: string
}

/** What can be done about the records of one session. */
export interface RecordRepair {
  readonly plans: readonly RecordPlan[]
  readonly findings: readonly Finding[]
  readonly kept: readonly KeptItem[]
}

/**
 * What its format can rebuild of the records of a session. Nothing is written. A session that changed within `quietMs` is left
 * alone: an open agent holds its records in memory and writes over whatever is put there.
 */
export function planRecords(store: Store, ref: SessionRef, quiet: { readonly now: number; readonly quietMs: number }): RecordRepair {
  const { now, quietMs } = quiet
  const rebuilt = store.rebuildRecords?.(ref, { now, uuid: () => randomUUID() })
  if (rebuilt === undefined) return { plans: [], findings: [], kept: [] }
  if ('refused' in rebuilt) {
    const path = ref.members.find(({ kind }) => kind === 'transcript')?.path ?? ref.id
    return { plans: [], findings: [finding('state-damaged', rebuilt.refused, { session: ref.id, path, remedy: 'none from proof: a copy of the file that was made elsewhere' })], kept: [] }
  }
  const { file, proof } = rebuilt
  const written = store.read(ref, { now }).lastWritten ?? lstatSync(join(store.root, file.path), { throwIfNoEntry: false })?.mtimeMs
  if (written !== undefined && now - written <= quietMs) {
    return { plans: [], findings: [], kept: [{ session: ref.id, reason: `${file.path} is damaged, but the session was written to a short while ago; it is left alone until it is quiet` }] }
  }
  return { plans: [{ session: ref.id, file, proof }], findings: [], kept: [] }
}

/** The action that publishes rebuilt records; what stands there goes to the trash. @throws FenceError when it changed meanwhile */
export function recordAction(store: Store, { session, file, proof }: RecordPlan): ReplaceAction {
  const old = planItem(store.root, { kind: 'transcript', path: file.path })?.item
  const { was, mode, bytes } = file
  if (was !== undefined && (old?.identity.size !== was.size || old.identity.mtimeNs !== was.mtimeNs)) {
    throw new FenceError(`${file.path} changed since it was read; it was left as it is`, { hint: 'run again when the session is quiet' })
  }
  return {
    kind: 'replace',
    session,
    path: file.path,
    ...(old === undefined ? {} : { old }),
    content: bytes.toString('base64'),
    ...(mode === undefined ? {} : { mode }),
    bytes: 0,
    reason: proof,
  }
}
