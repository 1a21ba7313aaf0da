import type { Job } from '../src/operations/run/job.js'
import { integrity } from './integrity.js'
import { nightly } from './nightly.js'
import { report } from './report.js'

/** Every job that comes with the program. */
export const jobs: readonly Job[] = [nightly, integrity, report]
