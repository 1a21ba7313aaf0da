import type { RecordedTurn } from '../formats/pi-candy-undo/recorded.js'

/** What came of a turn that began. */
export interface BegunTurn {
  /** Id of the snapshot that the message means. */
  readonly snapshot: string
  /** False when no tracked file had changed, so that the message means the snapshot before it. */
  readonly own: boolean
  /** Tracked paths that changed since they were recorded last. */
  readonly changed: readonly string[]
  /** Tracked paths whose state could not be recorded; a rewind to this message leaves them alone. */
  readonly gaps: readonly string[]
}

/** What came of looking after a file before an edit. */
export interface PreparedEdit {
  /**
   * `recorded`: its state is saved now. `tracked`: the turn has it already. `gap`: it is tracked, but its state before this edit is
   * not known. `excluded` and `left-out`: it is not tracked.
   */
  readonly outcome: 'recorded' | 'tracked' | 'gap' | 'excluded' | 'left-out'
  /** The path that it is tracked by. */
  readonly path: string
  readonly reason?: string
}

/** What a message is, besides its id. */
export interface MessageWords {
  /** The prompt, or its begin: shown where a message is to be chosen. */
  readonly text?: string
  /** Where the agent writes its conversation, and its size in bytes now: there the id of the message can be found later. */
  readonly transcript?: { readonly path: string; readonly size: number }
}

/**
 * Records the checkpoints of one session while its agent works. Calls may overlap, in this process and between processes: each
 * change of the state is made under the lock of the store, from the state as it is then. Every method throws `LockedError`
 * when the lock cannot be had in time or the session is read-only, `NewerFormatError`, `NoSpaceError`, or system errors; what
 * could not be recorded is noted as a gap then, so that nobody guesses across it.
 */
export interface Recorder {
  /** Makes the baseline, so that the first turn can be undone. */
  sessionStart(): Promise<void>
  /**
   * Takes the state of every tracked file before a turn. A message that was begun already is not begun again.
   * @param message id of the user's message; without it the turn has a random word until `nameTurn`
   */
  beginTurn(message?: string, words?: MessageWords): Promise<BegunTurn>
  /**
   * Gives the turn that was begun last the id of its message. Returns false when there is none.
   * @param word the one it had until now: another turn, begun meanwhile by another process, is left alone
   */
  nameTurn(message: string, word?: string): Promise<boolean>
  /** Saves a file that an agent is about to edit, once per session: its original. `path` absolute, or relative to the working folder. */
  beforeEdit(path: string): Promise<PreparedEdit>
  endSession(): Promise<void>
  /** The turn that was begun last. @throws as above, when the state cannot be read */
  currentTurn(): CurrentTurn | undefined
}

/** A turn, with the begin of its prompt. */
export interface CurrentTurn extends RecordedTurn {
  readonly text?: string
}
