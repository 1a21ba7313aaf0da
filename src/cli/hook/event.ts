import { isAbsolute, resolve } from 'node:path'
import { UsageError } from '../../model/errors.js'
import { isFields, textOf, type Fields } from '../../model/fields.js'
import type { HookAgent } from './options.js'

interface Place {
  readonly session: string
  readonly cwd: string
}

/** A prompt of the user's; `text` is the begin of it, `transcript` where the agent writes it. */
export interface TurnEvent extends Place {
  readonly kind: 'turn'
  readonly message?: string
  readonly text?: string
  readonly transcript?: string
}

/** What an agent says through a hook, whichever it is. Paths are absolute. */
export type HookEvent =
  | TurnEvent
  | (Place & { readonly kind: 'session-start' | 'session-end' })
  | (Place & { readonly kind: 'edit'; readonly paths: readonly string[] })

/** Characters of a prompt that are recorded, so that messages can be told apart. */
export const promptBegin = 200

/**
 * The event in the input of a hook; `undefined` for one that has nothing to record.
 * @param fallback the working folder where the input names none
 * @throws UsageError for what is no input of this agent
 */
export function hookEvent(agent: HookAgent, input: unknown, fallback: string): HookEvent | undefined {
  if (!isFields(input)) throw new UsageError('the input of the hook is no JSON object')
  return agent === 'claude-code' ? claudeEvent(input, fallback) : genericEvent(input, fallback)
}

const noFile = 'the input of the hook names no file'

/** Which member of the input of a tool is the file that it is about to write. */
const editedFile: ReadonlyMap<unknown, string> = new Map([['Edit', 'file_path'], ['MultiEdit', 'file_path'], ['Write', 'file_path'], ['NotebookEdit', 'notebook_path']])

function claudeEvent(input: Fields, fallback: string): HookEvent | undefined {
  const { hook_event_name: name } = input
  const member = editedFile.get(input.tool_name)
  if (name === 'PreToolUse' && member === undefined) return undefined
  if (name !== 'PreToolUse' && name !== 'SessionStart' && name !== 'UserPromptSubmit' && name !== 'SessionEnd') return undefined
  const place = placeOf(input.session_id, input.cwd, fallback)
  if (name === 'SessionStart') return { kind: 'session-start', ...place }
  if (name === 'SessionEnd') return { kind: 'session-end', ...place }
  if (name === 'UserPromptSubmit') {
    const transcript = textOf(input.transcript_path)
    return { kind: 'turn', ...place, ...beginOf(input.prompt), ...(transcript === undefined || !isAbsolute(transcript) ? {} : { transcript }) }
  }
  const path = isFields(input.tool_input) ? textOf(input.tool_input[member ?? '']) : undefined
  if (path === undefined || path === '') throw new UsageError(noFile)
  return { kind: 'edit', ...place, paths: [resolve(place.cwd, path)] }
}

function genericEvent(input: Fields, fallback: string): HookEvent | undefined {
  const { event: kind } = input
  const place = placeOf(input.session, input.cwd, fallback)
  if (kind === 'session-start' || kind === 'session-end') return { kind, ...place }
  if (kind === 'turn') {
    const message = textOf(input.message)
    return { kind, ...place, ...(message === undefined || message === '' ? {} : { message }), ...beginOf(input.text) }
  }
  if (kind !== 'edit') throw new UsageError(`the input of the hook has no event that is known: ${JSON.stringify(kind)}`)
  const paths = Array.isArray(input.paths) ? (input.paths as unknown[]).map(textOf) : []
  if (paths.length === 0 || !paths.every((path) => path !== undefined && path !== '')) throw new UsageError(noFile)
  return { kind, ...place, paths: [...new Set((paths as string[]).map((path) => resolve(place.cwd, path)))] }
}

function placeOf(session: unknown, cwd: unknown, fallback: string): Place {
  if (typeof session !== 'string' || session === '') throw new UsageError('the input of the hook names no session')
  return { session, cwd: typeof cwd === 'string' && isAbsolute(cwd) ? cwd : fallback }
}

function beginOf(prompt: unknown): { readonly text?: string } {
  // Whole characters: half of one is no text.
  return typeof prompt === 'string' ? { text: Array.from(prompt.slice(0, 2 * promptBegin)).slice(0, promptBegin).join('') } : {}
}
