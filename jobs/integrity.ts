import type { Job } from '../src/operations/run/job.js'

/** Once a night: read every byte of a seventh of the backups, so that a week covers all. Removes nothing. */
export const integrity: Job = {
  name: 'integrity',
  describe: 'Read and prove a seventh of the backups, the next seventh every day',
  steps: [{ step: 'verify', buckets: 7 }],
}
