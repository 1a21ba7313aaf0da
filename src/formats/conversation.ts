import type { ReadDeltas, SessionRef } from '../model/session.js'

/** What a fork of a transcript shall be. */
export interface ForkRequest {
  /** Id of the new session. */
  readonly newId: string
  /** Id of the message before which the conversation is cut; all of it is copied otherwise. */
  readonly before?: string
  /** What a reading of the session parsed already; used where its transcript is still the same. */
  readonly deltas?: readonly ReadDeltas[]
}

/** What a fork of a transcript came to. */
export interface ForkOutline {
  readonly messages: number
  readonly checkpoints: number
  /** Lines of the old transcript that are damaged; of them only whole records were copied. */
  readonly notWhole: number
}

/** What mending a transcript changes. */
export interface Mending {
  /** Runs of NUL bytes that are left out, and how many bytes they are. */
  readonly nulRuns: number
  readonly nulBytes: number
  /** Lines that held more than one record, or a cut one and a whole one, and become a line for each. */
  readonly split: number
  /** True when the last line was cut and is ended, so that what the agent appends does not join it. */
  readonly ended: boolean
}

/** A picture in a prompt. */
export interface PromptImage {
  /** As recorded, for instance `image/png`. */
  readonly mediaType: string
  readonly bytes: Buffer
}

/** A message of the user's with all that is needed to send it again. */
export interface Prompt {
  readonly text: string
  /** The permission mode that held when it was sent, as the agent calls it. */
  readonly permissionMode?: string
  readonly images: readonly PromptImage[]
}

/** What can be done with the conversations of a format whose rules for writing them are known. */
export interface Conversations {
  /** The command that goes on with a session; without it a conversation cannot be rewound from outside, only code can. */
  readonly resume?: (session: string) => string
  /** True for a text that can be the id of a session. */
  isSessionId(text: string): boolean
  /** Why nothing can be made of a conversation that can be read; absent when it can. */
  refusal?(session: SessionRef): string | undefined
  /** Path of the transcript of a fork of `session`, relative to the root. */
  transcriptPath(session: SessionRef, newId: string): string
  /**
   * Name of the folder of the root that holds all of a session. With it a fork is made as that one folder, and only where no
   * session of its id is; without it, transcript and backups are given to whatever is there.
   */
  ownFolder?(newId: string): string
  /**
   * Hands over the transcript of a fork in pieces. Throws `NoMatchError`, `UsageError`, `NewerFormatError` or
   * `LockedError`; what was handed over until then is worthless.
   */
  forkTranscript(session: SessionRef, request: ForkRequest, write: (bytes: Buffer) => void): ForkOutline
  /**
   * Hands over a transcript without its NUL runs and with a line for each record; other bytes are as they are. The pieces
   * are reused after each call. Throws the system error when it cannot be read, `LockedError` when it changes meanwhile.
   */
  mendTranscript(path: string, write: (bytes: Buffer) => void): Mending
  /** One message of the user's; `undefined` when there is none of that id. */
  prompt(session: SessionRef, message: string): Prompt | undefined
}
