import { FenceError, LockedError, NewerFormatError, UsageError } from '../../model/errors.js'
import type { SessionRef } from '../../model/session.js'
import type { Conversations as ForkRules, ForkOutline, ForkRequest } from '../conversation.js'
import { foldersOf, type Conversations } from './conversations.js'
import { isPiSessionId, statePathOf } from './layout.js'
import { serialiseState } from './state.js'
import { folderNoted, readStateFile, stateTrouble } from './state-file.js'

/**
 * Forks of a session: its state under a new id with an empty redo stack, in a folder that no session has yet (formats/
 * pi-candy-undo sections 9 and 15, 13 to 15). The conversations themselves are pi's and lie outside of the store.
 */
export function forkRulesOf(root: string, conversations: Conversations, baseFolder: string | undefined): ForkRules {
  return {
    isSessionId: isPiSessionId,
    transcriptPath: (_session, newId) => statePathOf(newId),
    ownFolder: (newId) => newId,
    forkTranscript: (session, request, write) => {
      assertSameFolder(conversations, session, request, folderNoted(root, session.id) ?? baseFolder)
      return forkState(root, session, request, write)
    },
    mendTranscript: () => ({ nulRuns: 0, nulBytes: 0, split: 0, ended: false }),
    prompt: () => undefined,
  }
}

function forkState(root: string, session: SessionRef, { newId, before }: ForkRequest, write: (bytes: Buffer) => void): ForkOutline {
  if (before !== undefined) {
    throw new UsageError('the conversation of a fork is cut by pi itself', { hint: `fork it in pi, then run: rewind-admin fork ${session.id} <new id>` })
  }
  const file = readStateFile(root, statePathOf(session.id))
  if (file.kind === 'read' && file.parsed.kind === 'newer') {
    throw new NewerFormatError(`session ${session.id}: ${stateTrouble(file) ?? ''}; nothing was made`, { hint: 'update rewind-admin' })
  }
  const trouble = stateTrouble(file)
  if (trouble !== undefined || file.kind !== 'read' || file.parsed.kind !== 'state') {
    throw new FenceError(`session ${session.id}: ${trouble ?? 'its state cannot be read'}; nothing was made`, { hint: `rewind-admin repair ${session.id}` })
  }
  if (file.changed) throw new LockedError(`the state of session ${session.id} changed while it was read; nothing was made`, { hint: 'run again when the session is quiet' })
  const { state } = file.parsed
  write(serialiseState({ ...state, sessionId: newId, redo: [] }))
  return { messages: 0, checkpoints: state.snapshots.length, notWhole: 0 }
}

/** Relative paths of the state would mean other files in another folder. */
function assertSameFolder(conversations: Conversations, session: SessionRef, { newId }: ForkRequest, baseFolder: string | undefined): void {
  const [from, otherFrom] = foldersOf(conversations, session.id)
  const [to, otherTo] = foldersOf(conversations, newId)
  if (otherFrom !== undefined || otherTo !== undefined) throw new FenceError('a conversation of one of the two sessions is there twice, with two working folders; nothing was made')
  const start = from ?? baseFolder
  if (start === undefined) {
    throw new FenceError(`no conversation says where session ${session.id} was started, and its paths are relative; nothing was made`, {
      hint: 'name the folder of the conversations with --conversations, or the working folder with --cwd',
    })
  }
  if (to === undefined || to === start) return
  throw new FenceError(`session ${newId} was started in ${to}, session ${session.id} in ${start}; the paths would mean other files there, so nothing was made`, {
    hint: 'fork into a session of the same working folder',
  })
}
