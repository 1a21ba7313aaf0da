import { finding, type Finding } from '../../../model/finding.js'
import type { Checkpoint } from '../../../model/history.js'
import { membersOf } from '../../../model/session.js'
import { transcriptOf, type SessionFacts } from '../facts.js'

/** Edits so long after the last checkpoint say that checkpointing stopped (R119), in milliseconds. */
const stoppedAfter = 24 * 60 * 60 * 1000

/** Checkpoints against the cap, against messages, and against the edits that follow them. */
export function checkCheckpoints(facts: SessionFacts): Finding[] {
  const { reading, ref, store } = facts
  const { checkpoints, lines } = reading.history
  const at = { session: ref.id, path: transcriptOf(facts) }
  const findings: Finding[] = []
  if (membersOf(ref, 'transcript').length === 0) return findings
  if (lines === 0 && !reading.busy) {
    const client = reading.clientVersion === undefined ? '' : `, client ${reading.clientVersion}`
    const entry = reading.entrypoint === undefined ? '' : `, started by ${reading.entrypoint}`
    findings.push(finding('no-checkpoints', `the transcript has no history lines${entry}${client}`, at))
  }
  if (checkpoints.length > store.cap) {
    findings.push(finding('over-cap', `${String(checkpoints.length)} checkpoints, the cap is ${String(store.cap)}`, at))
  }
  const { evidence } = reading
  if (evidence === undefined) return findings
  if (evidence.withoutMessage.length > 0) {
    const [first = ''] = evidence.withoutMessage
    const count = evidence.withoutMessage.length
    const more = count === 1 ? '' : ` and ${String(count - 1)} more`
    findings.push(finding('snapshot-without-message', `no message carries the id of checkpoint ${first}${more}`, at))
  }
  if (evidence.foreignLines > 0) {
    findings.push(finding('foreign-lines', `${String(evidence.foreignLines)} lines name another session`, at))
  }
  const last = evidence.edits.length === 0 ? undefined : newestTime(checkpoints)
  const late = last === undefined ? 0 : evidence.edits.filter((edit) => edit.time - last > stoppedAfter).length
  if (late > 0) findings.push(finding('checkpointing-stopped', `${String(late)} edits more than a day after the last checkpoint`, at))
  return findings
}

/** Times in the future of this machine's clock (R08). */
export function checkAges(facts: SessionFacts): Finding[] {
  const { future } = facts.reading
  if (future === undefined) return []
  const message = `the transcript holds the time ${new Date(future).toISOString()}, which has not come yet`
  return [finding('future-activity', message, { session: facts.ref.id, path: transcriptOf(facts) })]
}

function newestTime(checkpoints: readonly Checkpoint[]): number | undefined {
  let newest: number | undefined
  for (const checkpoint of checkpoints) {
    const time = Date.parse(checkpoint.time ?? '')
    if (!Number.isNaN(time) && (newest === undefined || time > newest)) newest = time
  }
  return newest
}
