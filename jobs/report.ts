import type { Job } from '../src/operations/run/job.js'

/** What there is, and what the next night would do. Changes nothing. */
export const report: Job = {
  name: 'report',
  describe: 'Count what there is, and say what the next night would do',
  steps: [{ step: 'status' }, { step: 'next-night' }],
}
