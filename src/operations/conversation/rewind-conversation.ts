import type { Prompt } from '../../formats/conversation.js'
import type { Store } from '../../formats/format.js'
import { UsageError } from '../../model/errors.js'
import type { Json, Report } from '../../model/report.js'
import type { SessionRef } from '../../model/session.js'
import { fork } from '../fork/fork.js'
import type { ForkContext, ForkOptions } from '../fork/options.js'
import { removeImages, writeImages } from './images.js'
import { selectMessage } from './select-message.js'

export interface ConversationOptions extends Pick<ForkOptions, 'method'> {
  /** Id of the new session. */
  readonly newId: string
  /** Where the pictures of the prompt are written; none are without it. */
  readonly imagesFolder?: string
}

/** The message that a conversation is taken back to, as it can be sent again. */
export interface PromptAgain {
  /** Whole id of the message. */
  readonly message: string
  readonly text: string
  readonly permissionMode?: string
  /** Number of pictures in it. */
  readonly images: number
}

/** What a conversation rewind came to. */
export interface ConversationRewind extends PromptAgain {
  /** The session to go on in; absent when nothing stands before the message, and a new one begins by itself. */
  readonly session?: string
  /** Paths of the pictures that were written. */
  readonly imagePaths: readonly string[]
  /** Report of the fork. */
  readonly report?: Report
}

/**
 * What a conversation rewind to a message would leave to be sent again. Changes nothing.
 * @throws NoMatchError or UsageError when the message is none, or the format's conversations cannot be written
 */
export function promptAgain(store: Store, session: SessionRef, message: string): PromptAgain {
  const { id, prompt } = promptOf(store, session, message)
  return promptFacts(id, prompt)
}

/**
 * Takes a conversation back to just before a message: a new session whose transcript is the old one cut there, with the
 * checkpoints of what is left and their backups (as `fork` with `at`), so that the agent can resume it. The old session keeps
 * its bytes. Hold the store's lock. Either all of it is done or nothing: `rewind` does the code first and rolls it back when
 * this throws.
 * @param message id of a user message, or a unique prefix
 * @throws as `fork`; UsageError when a picture would overwrite another file
 */
export async function rewindConversation(
  store: Store,
  session: SessionRef,
  message: string,
  options: ConversationOptions,
  context: ForkContext,
): Promise<ConversationRewind> {
  const { id, prompt, isFirst } = promptOf(store, session, message)
  const { paths, made } = options.imagesFolder === undefined ? { paths: [], made: [] } : writeImages(options.imagesFolder, id, prompt.images)
  const facts = { ...promptFacts(id, prompt), imagePaths: paths }
  if (isFirst) return facts
  try {
    const method = options.method === undefined ? {} : { method: options.method }
    const report = await fork(store, session.id, options.newId, { at: id, ...method }, context)
    if (!report.applied) throw new UsageError(`the conversation was left as it is: ${report.errors[0]?.message ?? 'its backups cannot be read'}`, { hint: 'rewind-admin verify' })
    return { ...facts, session: options.newId, report }
  } catch (error) {
    removeImages(made)
    throw error
  }
}

/** The fields of a conversation rewind as a report has them. */
export function conversationJson(rewind: ConversationRewind): Record<string, Json> {
  return {
    session: rewind.session ?? null,
    message: rewind.message,
    prompt: rewind.text,
    permissionMode: rewind.permissionMode ?? null,
    images: rewind.images,
    imagePaths: [...rewind.imagePaths],
  }
}

function promptOf(store: Store, session: SessionRef, given: string): { id: string; prompt: Prompt; isFirst: boolean } {
  const { conversations } = store
  if (conversations?.resume === undefined) throw new UsageError(`conversations of the format ${store.format} cannot be rewound from outside`, { hint: 'rewind the files alone with --scope code' })
  const refusal = conversations.refusal?.(session)
  if (refusal !== undefined) throw new UsageError(`the conversation of session ${session.id} cannot be rewound: ${refusal}`, { hint: 'rewind the files alone with --scope code' })
  const { id, parent } = selectMessage(store, session, given)
  const prompt = conversations.prompt(session, id)
  if (prompt === undefined) throw new UsageError(`the line of message ${id} cannot be read; the conversation was left as it is`)
  return { id, prompt, isFirst: parent === undefined }
}

function promptFacts(message: string, { text, permissionMode, images }: Prompt): PromptAgain {
  return { message, text, ...(permissionMode === undefined ? {} : { permissionMode }), images: images.length }
}
