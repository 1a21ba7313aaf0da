import type { Store } from '../formats/format.js'
import { FenceError, NewerFormatError, NoMatchError } from '../model/errors.js'
import { ExitCode } from '../model/exit-code.js'
import type { Checkpoint } from '../model/history.js'
import { noItems, type Json, type Report } from '../model/report.js'
import { checkpointsBeginning, findCheckpoint, idNamed } from '../model/resolve.js'
import { isChange } from '../model/restore-plan.js'
import type { SessionReading, SessionRef } from '../model/session.js'
import { conversationJson, promptAgain, rewindConversation, type ConversationRewind, type PromptAgain } from './conversation/rewind-conversation.js'
import type { ForkContext } from './fork/options.js'
import { readSession } from './read-session.js'
import { applyAgentRedo, applyWithAgentRedo, planAgentRedo } from './restore/agent-redo.js'
import { agentNotes } from './restore/agent-notes.js'
import { applyRestore, blockedPaths, skippedPaths, takeBack, type RestoreResult } from './restore/apply.js'
import { diffStats, unifiedDiff } from './restore/diff.js'
import { planRestore, type RestoreOptions, type RestorePlan, type RewindScope } from './restore/plan.js'
import { applyRedo, planRedo } from './restore/redo.js'
import { SealStore } from './seals.js'

export interface RewindOptions {
  readonly scope: RewindScope
  /** Only these files: absolute, relative to the start folder, or as recorded. */
  readonly files?: readonly string[]
  /** Restores what can be restored although some backups are missing or damaged. */
  readonly partial?: boolean
  /** Adds a unified diff to the report. */
  readonly diff?: boolean
  readonly apply?: boolean
  /** Id of the session in which the conversation goes on. */
  readonly newId: string
  /** Where the pictures of the prompt are written. */
  readonly imagesFolder?: string
}

export interface RewindContext extends ForkContext {
  /** The user's home folder, absolute. */
  readonly home: string
  readonly windows: boolean
}

/**
 * Takes the code, the conversation or both back to the start of a message. Both means the code first; when any file fails,
 * the conversation is left alone and the files are put back: never half a rewind. Without `apply` nothing is written. With
 * it, hold the store's lock.
 * @throws NoMatchError when the message has no checkpoint or the session no such message; what planning throws; and what
 *   stopped the conversation, after the files were put back, or FenceError when some of them could not be
 */
export async function rewind(store: Store, ref: SessionRef, message: string, options: RewindOptions, context: RewindContext): Promise<Report> {
  const reading = readSession(store, ref, { now: context.now })
  const withCode = options.scope !== 'conversation'
  const withConversation = options.scope !== 'code'
  const checkpoint = withCode ? checkpointFor(store, ref, reading, message) : undefined
  const again = withConversation ? promptAgain(store, ref, checkpoint?.id ?? idNamed(reading.history, message)) : undefined
  const plan = checkpoint === undefined ? undefined : planCode(store, reading, checkpoint, options, context)
  const shown = plan === undefined ? noChanges : changesJson(plan, options.diff === true, agentNotes(store, plan))
  if (options.apply !== true) return report(store, reading, checkpoint, { plan, shown, again })

  const result = plan === undefined || checkpoint === undefined ? undefined : applyCode(store, ref, { reading, checkpoint, plan }, options, context)
  const failed = result !== undefined && result.exitCode !== ExitCode.done
  if (!withConversation || failed) return report(store, reading, checkpoint, { plan, shown, again, result })
  try {
    const images = options.imagesFolder === undefined ? {} : { imagesFolder: options.imagesFolder }
    const conversation = await rewindConversation(store, ref, again?.message ?? message, { newId: options.newId, ...images }, context)
    return report(store, reading, checkpoint, { plan, shown, again, result, conversation })
  } catch (error) {
    const left = plan === undefined || result === undefined ? [] : takeBack(plan, result, applyOptions(store, options, context))
    if (left.length === 0) throw error
    const [why, paths] = [error instanceof Error ? error.message : String(error), left.map(({ path }) => path).join(', ')]
    throw new FenceError(`${why}; these files could not be put back: ${paths}`, { hint: `rewind-admin redo ${reading.id} --apply`, cause: error })
  }
}

/**
 * Undoes the newest rewind of a session's files. Without `apply` nothing is written; with it, hold the store's lock.
 * @throws NoMatchError without a rewind to undo; FenceError when the session recorded newer states, unless `force`
 */
export function redo(store: Store, ref: SessionRef, options: { readonly apply?: boolean; readonly force?: boolean; readonly diff?: boolean }, context: RewindContext): Report {
  const reading = readSession(store, ref, { now: context.now })
  const force = options.force === true
  const { agentRedo } = store
  if (agentRedo !== undefined) {
    const plan = planAgentRedo(store, agentRedo, ref, reading, { force, ...restoreOptions(store, reading, {}, context) })
    const shown = changesJson(plan, options.diff === true, new Map())
    const result = options.apply === true ? applyAgentRedo(store, agentRedo, ref, plan, applyOptions(store, {}, context)) : undefined
    return { ...report(store, reading, undefined, { plan, shown, ...(result === undefined ? {} : { result }) }), command: 'redo' }
  }
  const plan = planRedo(store, reading, { force })
  const shown = changesJson(plan, options.diff === true, new Map())
  const result = options.apply === true ? applyRedo(plan, applyOptions(store, {}, context)) : undefined
  return { ...report(store, reading, undefined, { plan, shown, ...(result === undefined ? {} : { result }) }), command: 'redo' }
}

function checkpointFor(store: Store, ref: SessionRef, reading: SessionReading, message: string): Checkpoint {
  const found = store.checkpointAt === undefined ? findCheckpoint(reading.history, message) : store.checkpointAt(ref, reading, message)
  if (found !== undefined) return found
  const newer = reading.findings.find(({ id }) => id === 'newer-format')
  if (newer !== undefined) throw new NewerFormatError(`session ${reading.id}: ${newer.message}; nothing was changed`, { hint: 'update rewind-admin' })
  const several = checkpointsBeginning(reading.history, message).length
  const words = several > 1 ? `${String(several)} checkpoints begin with ${message}` : `session ${reading.id} has no checkpoint for message ${message}`
  throw new NoMatchError(words, { hint: `rewind-admin show ${reading.id}` })
}

function planCode(store: Store, reading: SessionReading, checkpoint: Checkpoint, options: Pick<RewindOptions, 'files'>, context: RewindContext): RestorePlan {
  return planRestore(store, reading, checkpoint, restoreOptions(store, reading, options, context))
}

function restoreOptions(store: Store, reading: SessionReading, { files }: Pick<RewindOptions, 'files'>, context: RewindContext): RestoreOptions {
  const seals = new SealStore(store.sidecar).get(reading.id)?.backups
  return {
    home: context.home,
    windows: context.windows,
    ...(files === undefined ? {} : { files }),
    sealOf: (name) => seals?.get(name)?.sha256 ?? reading.history.references.get(name)?.digest,
  }
}

interface Code {
  readonly reading: SessionReading
  readonly checkpoint: Checkpoint
  readonly plan: RestorePlan
}

function applyCode(store: Store, ref: SessionRef, { reading, checkpoint, plan }: Code, options: RewindOptions, context: RewindContext): RestoreResult {
  const { agentRedo } = store
  const how = applyOptions(store, options, context)
  if (agentRedo === undefined) return applyRestore(plan, how)
  const everything = options.files === undefined ? plan : planCode(store, reading, checkpoint, {}, context)
  return applyWithAgentRedo(store, agentRedo, ref, { plan, everything }, how)
}

function applyOptions(store: Store, options: Pick<RewindOptions, 'partial'>, context: RewindContext): Parameters<typeof applyRestore>[1] {
  const { syncFileSystem } = context
  return { sidecar: store.sidecar, now: context.now, partial: options.partial === true, ...(syncFileSystem === undefined ? {} : { syncFileSystem }) }
}

interface Shown {
  readonly changes: Json
  readonly diff?: string
  readonly insertions: number
  readonly deletions: number
}

const noChanges: Shown = { changes: [], insertions: 0, deletions: 0 }

/** Counted before anything is written: afterwards there is no difference left. */
function changesJson(plan: RestorePlan, withDiff: boolean, notes: ReadonlyMap<string, string>): Shown {
  const stats = diffStats(plan)
  return {
    changes: stats.map(({ path, action, insertions, deletions, binary }) => {
      const note = notes.get(path)
      return { path, action, insertions, deletions, ...(binary ? { binary } : {}), ...(note === undefined ? {} : { note }) }
    }),
    insertions: stats.reduce((sum, { insertions }) => sum + insertions, 0),
    deletions: stats.reduce((sum, { deletions }) => sum + deletions, 0),
    ...(withDiff ? { diff: unifiedDiff(plan) } : {}),
  }
}

interface Parts {
  readonly plan: RestorePlan | undefined
  readonly shown: Shown
  readonly again?: PromptAgain | undefined
  readonly result?: RestoreResult | undefined
  readonly conversation?: ConversationRewind
}

function report(store: Store, reading: SessionReading, checkpoint: Checkpoint | undefined, parts: Parts): Report {
  const { plan, shown, again, result, conversation } = parts
  const applied = (result !== undefined && !result.rolledBack && result.exitCode === ExitCode.done) || conversation !== undefined
  const failed = result?.failed ?? (plan === undefined ? [] : blockedPaths(plan))
  const skipped = result?.skipped ?? (plan === undefined ? [] : skippedPaths(plan))
  const notRolledBack = result?.notRolledBack ?? []
  // The new session lacks what the old one lacks already: said, as `fork` says it.
  const made = conversation?.report
  const count = plan?.items.filter(({ decision }) => isChange(decision)).length ?? 0
  return {
    command: 'rewind',
    roots: [store.root],
    applied: applied || (result?.changed.length ?? 0) > 0,
    summary: {
      session: reading.id,
      checkpoint: checkpoint?.id ?? again?.message ?? null,
      time: checkpoint?.time ?? null,
      changes: result === undefined ? count : result.changed.length,
      insertions: shown.insertions,
      deletions: shown.deletions,
      skipped: skipped.length,
      failed: failed.length,
      ...(result === undefined ? {} : { rolledBack: result.rolledBack, redoPoint: result.point ?? null }),
    },
    ...noItems,
    findings: made?.findings ?? [],
    errors: [...[...failed, ...notRolledBack].map(({ path, code, reason }) => ({ code, path, message: reason })), ...(made?.errors ?? [])],
    exitCode: made?.exitCode ?? result?.exitCode ?? (failed.length > 0 ? ExitCode.partial : ExitCode.done),
    extra: {
      changes: shown.changes,
      skipped: skipped.map(({ path, reason }) => ({ path, reason })),
      failed: failed.map(({ path, reason }) => ({ path, reason })),
      ...(shown.diff === undefined ? {} : { diff: shown.diff }),
      ...conversationFields(again, conversation),
    },
  }
}

function conversationFields(again: PromptAgain | undefined, conversation: ConversationRewind | undefined): Readonly<Record<string, Json>> {
  if (conversation !== undefined) return { conversation: conversationJson(conversation) }
  if (again === undefined) return {}
  const { message, text, permissionMode, images } = again
  return { conversation: { session: null, message, prompt: text, permissionMode: permissionMode ?? null, images, imagePaths: [] } }
}
