import type { Job } from '../src/operations/run/job.js'

/** Once a night: finish what was interrupted, check and seal, then make room. */
export const nightly: Job = {
  name: 'nightly',
  describe: 'Finish interrupted runs, verify and seal, enforce the cap, expire old sessions, empty the old trash',
  steps: [{ step: 'recover' }, { step: 'verify-quick' }, { step: 'cap' }, { step: 'expire' }, { step: 'empty-trash' }],
}
