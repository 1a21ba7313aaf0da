import type { Mending } from '../conversation.js'
import { mendLines } from '../mend-lines.js'
import { recordsIn } from './record-bytes.js'

/** Hands over a transcript of Claude Code with its damage taken out, see `mendLines`. */
export function mendTranscript(path: string, write: (bytes: Buffer) => void): Mending {
  return mendLines(path, recordsIn, write)
}
