import { randomUUID } from 'node:crypto'
import type { AgentRedo, SavedPath, Store } from '../../formats/format.js'
import { AnchoredFolder } from '../../fs/anchored-folder.js'
import { eachBlockAt } from '../../fs/content.js'
import { FenceError, NoMatchError } from '../../model/errors.js'
import { ExitCode } from '../../model/exit-code.js'
import type { PlannedPath } from '../../model/restore-plan.js'
import type { SessionReading, SessionRef } from '../../model/session.js'
import { publishFiles } from '../../plan/publish-files.js'
import { newToken } from '../../plan/run-id.js'
import { carryOut, type ApplyOptions, type RestoreResult } from './apply.js'
import { planRestore, type RestoreOptions, type RestorePlan } from './plan.js'
import { editsSince, type RedoOptions } from './redo.js'
import { RedoStack } from './redo-stack.js'

/**
 * Carries out a restore for an agent that keeps its own stack of rewinds: its redo point is on the disk before the first file
 * changes, and is taken back when the restore fails (formats/pi-candy-undo section 15, 21 and 22).
 * @param everything a plan for all tracked files, whatever `plan` is limited to: a redo point covers all of them
 * @throws as `applyRestore`, and FenceError when the agent's own state was written to meanwhile
 */
export function applyWithAgentRedo(
  store: Store,
  redo: AgentRedo,
  session: SessionRef,
  plans: { readonly plan: RestorePlan; readonly everything: RestorePlan },
  options: ApplyOptions,
): RestoreResult {
  const stack = new RedoStack(options.sidecar, session.id)
  let published: ReturnType<typeof publishFiles> | undefined
  let prepared: string | undefined
  const result = carryOut(plans.plan, stack, options, (point) => {
    prepared = point
    const files = redo.push(session, savedPaths(plans.everything), { now: options.now, uuid: () => randomUUID() })
    published = publishFiles(store, files, newToken())
    return undefined
  })
  if (result.rolledBack && result.notRolledBack.length === 0) published?.undo()
  published?.keep()
  if (prepared !== undefined && !result.rolledBack) stack.keepReplaced(prepared)
  return result
}

/** A redo along the agent's own stack. */
export interface AgentRedoPlan extends RestorePlan {
  readonly agent: true
}

/**
 * What it takes to undo the newest rewind on the agent's own stack.
 * @throws NoMatchError when there is none; FenceError when the session recorded newer states, unless `force`
 */
export function planAgentRedo(
  store: Store,
  redo: AgentRedo,
  session: SessionRef,
  reading: SessionReading,
  options: RedoOptions & RestoreOptions,
): AgentRedoPlan {
  const top = redo.top(session, reading)
  if ('refusal' in top) throw new NoMatchError(`session ${reading.id}: ${top.refusal}`, { hint: `rewind-admin show ${reading.id}` })
  const { checkpoint } = top
  // The records of the redo point itself are made in the moments after its time.
  const others = { ...reading.history, checkpoints: reading.history.checkpoints.filter((each) => each !== checkpoint) }
  const newer = checkpoint.time === undefined ? [] : editsSince({ ...reading, history: others }, Date.parse(checkpoint.time))
  if (newer.length > 0 && options.force !== true) {
    throw new FenceError(`session ${reading.id} recorded newer states after the rewind (${newer.join(', ')}); nothing was changed`, {
      hint: 'rewind-admin redo --force writes over them; the states written over are kept until the next redo',
    })
  }
  return { ...planRestore(store, reading, checkpoint, options), agent: true }
}

/** Undoes a rewind and takes it off the agent's stack; a redo that fails stays on it. The caller holds the store's lock. */
export function applyAgentRedo(store: Store, redo: AgentRedo, session: SessionRef, plan: AgentRedoPlan, options: ApplyOptions): RestoreResult {
  const stack = new RedoStack(options.sidecar, session.id)
  let prepared: string | undefined
  const result = carryOut(plan, stack, options, (point) => {
    prepared = point
    return undefined
  })
  if (result.rolledBack) return result
  if (prepared !== undefined) stack.keepReplaced(prepared)
  if (result.exitCode === ExitCode.done) publishFiles(store, redo.pop(session), newToken()).keep()
  return result
}

/** What stands at every tracked path now. Links, folders and what cannot be told are left out: nobody guesses. */
function savedPaths({ items }: RestorePlan): SavedPath[] {
  return items.flatMap((item) =>
    item.keys.flatMap((key): SavedPath[] => {
      if (item.node.kind === 'absent') return [{ key, file: undefined }]
      const { node } = item
      return node.kind === 'file' && item.place !== undefined ? [{ key, file: { mode: node.mode, bytes: () => bytesOf(item) } }] : []
    }),
  )
}

function bytesOf({ place, node }: PlannedPath): Buffer {
  if (place === undefined || node.kind !== 'file') return Buffer.alloc(0)
  const folder = AnchoredFolder.open(place.folder)
  try {
    const blocks: Buffer[] = []
    eachBlockAt({ folder, name: place.name }, { offset: 0, size: node.size }, (block) => blocks.push(Buffer.from(block)))
    return Buffer.concat(blocks)
  } finally {
    folder.close()
  }
}
