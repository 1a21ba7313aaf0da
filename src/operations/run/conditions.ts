import type { Store } from '../../formats/format.js'
import { durationText } from '../../model/expiry.js'
import type { Condition, Job, JobStep } from './job.js'
import { isRemoving } from './job.js'
import { lastDone } from './status-file.js'
import type { StoreState } from './steps.js'

/** A nightly run that begins a little earlier than the one before it still finds a step of "every 7d" due. */
const mostEarlyMs = 3_600_000

const unmet: Readonly<Record<Condition, (state: StoreState) => string | undefined>> = {
  'no-errors-found': ({ errorsFound }) => {
    if (errorsFound === undefined) return 'left out, because nothing was verified in this run'
    return errorsFound === 0 ? undefined : `left out, because verify found ${String(errorsFound)} errors`
  },
  'no-step-failed': ({ failed }) => (failed ? 'left out, because an earlier step failed' : undefined),
}

/** Why a step is not carried out on a store now, or `undefined`. `now` is milliseconds since 1970. */
export function reasonToLeaveOut(store: Store, job: Job, wanted: JobStep, state: StoreState, now: number): string | undefined {
  const { step, when } = wanted
  const session = step === 'cap' || step === 'expire'
  return (
    (isRemoving(step) ? state.unsafe : undefined) ??
    (session ? state.unverified : undefined) ??
    (isRemoving(step) && state.held !== undefined ? `left out, because ${state.held}` : undefined) ??
    (when === undefined ? undefined : unmet[when](state)) ??
    notDue(store, job, wanted, now)
  )
}

function notDue(store: Store, job: Job, { step, everyMs }: JobStep, now: number): string | undefined {
  if (everyMs === undefined) return undefined
  const last = lastDone(store, job.name, step)
  // A time in the future says that the clock was wrong then or is now.
  if (last === undefined || last > now || now - last >= everyMs - Math.min(mostEarlyMs, everyMs / 10)) return undefined
  return `left out, because it was done at ${new Date(last).toISOString()} and is due every ${durationText(everyMs)}`
}
