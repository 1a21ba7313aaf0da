import { lstatSync } from 'node:fs'
import { writtenPrompt } from '../../formats/claude-code/written-prompt.js'
import type { Recorder } from '../../recorder/api.js'
import { promptBegin, type HookEvent, type TurnEvent } from './event.js'

/** Says what came of a hook: `warn` for what could not be recorded. */
export type Say = (level: 'info' | 'warn', message: string, error?: unknown) => void

/** Records one event. Never throws: what fails is said, and the recorder notes what is missing. */
export async function recordEvent(recorder: Recorder, event: HookEvent, say: Say): Promise<void> {
  const attempt = async (what: string, act: () => Promise<unknown>): Promise<void> => {
    try {
      await act()
    } catch (error) {
      say('warn', `${what}: ${error instanceof Error ? error.message : String(error)}`, error)
    }
  }
  const naming = (): Promise<void> => attempt('the id of the message was not looked for', () => nameTurn(recorder))
  if (event.kind === 'edit') {
    // The file first: nothing of it is left to save once the hook has ended.
    await Promise.all(event.paths.map((path) => attempt(`${path} was not recorded`, () => edit(recorder, path, say))))
    await naming()
    return
  }
  await naming()
  if (event.kind === 'turn') await attempt('the turn was not recorded', () => turn(recorder, event, say))
  else if (event.kind === 'session-start') await attempt('the session was not begun', () => recorder.sessionStart())
  else await attempt('the end of the session was not recorded', () => recorder.endSession())
}

async function edit(recorder: Recorder, path: string, say: Say): Promise<void> {
  const { outcome, reason } = await recorder.beforeEdit(path)
  const why = reason === undefined ? '' : ` (${reason})`
  say(outcome === 'gap' || outcome === 'left-out' ? 'warn' : 'info', `${path}: ${outcome}${why}`)
}

async function turn(recorder: Recorder, event: TurnEvent, say: Say): Promise<void> {
  const { message, text, transcript: path } = event
  const { changed, gaps } = await recorder.beginTurn(message, {
    ...(text === undefined ? {} : { text }),
    ...(path === undefined || message !== undefined ? {} : { transcript: { path, size: sizeOf(path) } }),
  })
  say(gaps.length > 0 ? 'warn' : 'info', `a turn began: ${String(changed.length)} changed, ${String(gaps.length)} not recorded`)
}

/** Gives the turn that was begun last the id that its message has in the transcript, once it is written there. */
async function nameTurn(recorder: Recorder): Promise<void> {
  const found = recorder.currentTurn()
  if (found?.transcript === undefined || found.text === undefined) return
  const { path, size } = found.transcript
  const message = writtenPrompt(path, size, { text: found.text, whole: Array.from(found.text).length < promptBegin })
  if (message !== undefined) await recorder.nameTurn(message, found.message)
}

/** Bytes; a transcript is not there before the first message. */
function sizeOf(path: string): number {
  try {
    return lstatSync(path).size
  } catch {
    return 0
  }
}
