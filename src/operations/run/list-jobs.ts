import { ExitCode } from '../../model/exit-code.js'
import { durationText } from '../../model/expiry.js'
import { noItems, type Json, type Report } from '../../model/report.js'
import { conditionTexts, stepTexts, type Job, type JobStep } from './job.js'

/** Every job, its steps, what they do, and when they are carried out. */
export function listJobs(jobs: readonly Job[]): Report {
  return {
    command: 'run',
    roots: [],
    applied: false,
    summary: { jobs: jobs.length },
    ...noItems,
    exitCode: ExitCode.done,
    extra: { jobs: jobs.map(({ name, describe, steps }) => ({ name, describe, steps: steps.map(rowOf) })) },
  }
}

function rowOf({ step, when, everyMs, buckets }: JobStep): Json {
  const does = buckets === undefined ? stepTexts[step] : `read one of ${String(buckets)} buckets of the backups, the next one every day, and seal what is new`
  const conditions = [...(when === undefined ? [] : [conditionTexts[when]]), ...(everyMs === undefined ? [] : [`every ${durationText(everyMs)}`])]
  return { step, does, ...(conditions.length === 0 ? {} : { when: conditions.join('; ') }), ...(buckets === undefined ? {} : { buckets }) }
}
