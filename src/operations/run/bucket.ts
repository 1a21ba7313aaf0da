import { dayMs } from '../../model/period.js'
import type { Sample } from '../verify/options.js'

/**
 * The bucket of backups that is read on a day: the next one every day, so that as many days as there are buckets cover all,
 * wherever one begins. Days are those of the calendar here, since a night that begins at a fixed hour is an hour early or late
 * twice a year.
 * @param now milliseconds since 1970
 */
export function bucketOf(now: number, buckets: number): Sample {
  const here = new Date(now)
  const day = Date.UTC(here.getFullYear(), here.getMonth(), here.getDate()) / dayMs
  return { kind: 'bucket', number: (((day % buckets) + buckets) % buckets) + 1, of: buckets }
}
