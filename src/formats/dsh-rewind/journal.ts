import { join } from 'node:path'
import { readPlain, NotRegularError } from '../../fs/blocks.js'
import { listFolder } from '../../fs/folder.js'
import { systemErrorCode } from '../../model/errors.js'
import { isFields, textOf, type Fields } from '../../model/fields.js'
import { groupsNamedIn, isBlobRef, journalId } from './layout.js'

/** A journal of more bytes than this is not read. */
const journalLimit = 256 * 1024 * 1024

const states = ['running', 'rollback-running', 'completed', 'rolled-back', 'recovery-required'] as const

export type JournalState = (typeof states)[number]

/** Where a journal keeps the content of a file. */
export type JournalBytes = { readonly blob: string } | { readonly text: string }

/** What a restore of the plugin did, or meant to do, to one path. `null` content means that there is no file. */
export interface JournalAction {
  /** Absolute. */
  readonly path: string
  readonly action: 'restore' | 'delete'
  readonly before: JournalBytes | null
  readonly rescue: JournalBytes | null
  readonly rescueError?: string
  readonly mode?: number
  readonly rescueMode?: number
  readonly parent?: string
  readonly done: boolean
  readonly failed?: string
}

/** One restore of the plugin (section 1.9), of either generation. */
export interface Journal {
  readonly kind: 'journal'
  /** File name in the session folder. It stays, whatever version the content has. */
  readonly name: string
  readonly id: string
  readonly sessionId: string
  readonly targetSeq: number
  /** Milliseconds since 1970; 0 when it is not recorded. */
  readonly startedAt: number
  readonly state: JournalState
  readonly actions: readonly JournalAction[]
  readonly rollbackError?: string
}

/** A journal that cannot be followed; it is kept and nothing it names goes. */
export interface DamagedJournal {
  readonly kind: 'damaged'
  readonly name: string
  readonly id: string
  readonly reason: string
  /** Groups that its bytes seem to name. */
  readonly groups: readonly number[]
}

/** Every journal of a session, in the order of their names. */
export function readJournals(folder: string): (Journal | DamagedJournal)[] {
  return listFolder(folder).entries.flatMap(({ name }) => {
    const id = journalId(name)
    return id === undefined ? [] : [readJournal(folder, name, id)]
  })
}

/** True when nothing is left to do for a journal. */
export function isFinished({ state }: Journal): boolean {
  return state === 'completed' || state === 'rolled-back'
}

/** Groups that a journal keeps from being dropped (R114). */
export function groupsOf(journal: Journal | DamagedJournal): readonly number[] {
  if (journal.kind === 'damaged') return journal.groups
  const blobs = journal.actions.flatMap(({ before, rescue }) => [before, rescue]).flatMap((bytes) => (bytes !== null && 'blob' in bytes ? [bytes.blob] : []))
  return [journal.targetSeq, ...blobs.flatMap(groupsNamedIn)]
}

function readJournal(folder: string, name: string, id: string): Journal | DamagedJournal {
  const damaged = (reason: string, groups: readonly number[] = []): DamagedJournal => ({ kind: 'damaged', name, id, reason, groups })
  let bytes: Buffer | undefined
  try {
    bytes = readPlain(join(folder, name), journalLimit)
  } catch (error) {
    return damaged(error instanceof NotRegularError ? `it is ${error.found}` : `it cannot be read (${systemErrorCode(error) ?? 'unknown error'})`)
  }
  if (bytes === undefined) return damaged('it is too large for a journal')
  const parsed = parseJournal(name, bytes)
  return typeof parsed === 'string' ? damaged(parsed, groupsNamedIn(bytes.toString('latin1'))) : parsed
}

/** The journal, or what is wrong with it. */
function parseJournal(name: string, bytes: Buffer): Journal | string {
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch {
    return 'it is not valid JSON'
  }
  if (!isFields(value)) return 'it is not a JSON object'
  const { version, targetSeq, startedAt } = value
  if (version !== undefined && version !== 1 && version !== 2) return `it has version ${JSON.stringify(version)}`
  const id = textOf(value.id)
  const sessionId = textOf(value.sessionId)
  const state = states.find((known) => known === value.state)
  if (id === undefined || sessionId === undefined || typeof targetSeq !== 'number') return 'a field that it needs is missing'
  if (state === undefined) return 'it has no known state'
  if (!Array.isArray(value.actions)) return 'it has no list of actions'
  const actions: JournalAction[] = []
  for (const each of value.actions as unknown[]) {
    const action = parseAction(each)
    if (typeof action === 'string') return action
    actions.push(action)
  }
  const rollbackError = textOf(value.rollbackError)
  return {
    kind: 'journal',
    name,
    id,
    sessionId,
    targetSeq,
    startedAt: typeof startedAt === 'number' && Number.isFinite(startedAt) ? startedAt : 0,
    state,
    actions,
    ...(rollbackError === undefined ? {} : { rollbackError }),
  }
}

function parseAction(value: unknown): JournalAction | string {
  if (!isFields(value)) return 'an action of it is not an object'
  const path = textOf(value.path)
  const { action } = value
  if (path === undefined || (action !== 'restore' && action !== 'delete')) return 'an action of it names no path, or none that is known'
  const before = parseBytes(value.before)
  const rescue = parseBytes(value.rescue)
  if (before === undefined || rescue === undefined) return 'it refers to something outside the session'
  if (action === 'restore' && before === null) return 'it would restore a file that did not exist'
  return { path, action, before, rescue, ...optionalFields(value), done: value.done === true }
}

function optionalFields(value: Fields): Partial<JournalAction> {
  const { mode, rescueMode, parent, failed, rescueError } = value
  return {
    ...(typeof rescueError === 'string' ? { rescueError } : {}),
    ...(typeof mode === 'number' ? { mode: mode & 0o7777 } : {}),
    ...(typeof rescueMode === 'number' ? { rescueMode: rescueMode & 0o7777 } : {}),
    ...(typeof parent === 'string' && parent !== '' ? { parent } : {}),
    ...(typeof failed === 'string' ? { failed } : {}),
  }
}

/** `undefined` for anything that is not content, or that could lead out of the session (section 1.9). */
function parseBytes(value: unknown): JournalBytes | null | undefined {
  if (value === null) return null
  if (typeof value === 'string') return { text: value }
  if (!isFields(value)) return undefined
  if (typeof value.text === 'string') return { text: value.text }
  return typeof value.blob === 'string' && isBlobRef(value.blob) ? { blob: value.blob } : undefined
}
