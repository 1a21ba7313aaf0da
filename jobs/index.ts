import type { Job } from '../src/operations/run/job.js'
import { nightly } from './nightly.js'

/** Every job that comes with the program. */
export const jobs: readonly Job[] = [nightly]
