import { hash } from 'node:crypto'
import { UsageError } from '../../model/errors.js'
import { parseSize } from '../../model/size.js'
import type { Sample } from './options.js'

/** Most buckets there may be, as many as one byte of a digest can tell apart. */
const mostBuckets = 256

/** Reads `n/t`, `x%` or a size with K, M, G or T. Throws `UsageError`. */
export function parseSample(text: string): Sample {
  const bucket = /^([0-9]+)\/([0-9]+)$/.exec(text)
  if (bucket !== null) {
    const [number, of] = [Number(bucket[1]), Number(bucket[2])]
    if (number >= 1 && number <= of && of <= mostBuckets) return { kind: 'bucket', number, of }
    throw new UsageError(`--sample ${text}: the bucket must be from 1 to the number of buckets, of which there may be ${String(mostBuckets)}`)
  }
  const percent = /^([0-9]+(?:\.[0-9]+)?)%$/.exec(text)
  if (percent !== null) {
    const value = Number(percent[1])
    if (value > 0 && value <= 100) return { kind: 'percent', percent: value }
    throw new UsageError(`--sample ${text}: the share must be above 0% and at most 100%`)
  }
  const bytes = parseSize(text) ?? 0
  if (bytes > 0) return { kind: 'bytes', bytes }
  throw new UsageError(`--sample ${text} is not n/t, a share like 5%, or a size like 500M`)
}

/** Decides for one backup whether its content is read. Stable: the same name always falls into the same bucket. */
export type Sampler = (session: string, name: string, size: number) => boolean

/** `random` gives a number from 0 to 1; it picks which share is read. A size limit reads from a random place on. */
export function makeSampler(sample: Sample, random: () => number): Sampler {
  switch (sample.kind) {
    case 'all':
      return () => true
    case 'bucket':
      return (session, name) => point(session, name) % sample.of === sample.number - 1
    case 'percent': {
      const start = random() * 100
      return (session, name) => {
        const place = ((point(session, name) / 2 ** 32) * 100 - start + 100) % 100
        return place < sample.percent
      }
    }
    case 'bytes': {
      let left = sample.bytes
      return (_session, _name, size) => {
        if (left <= 0) return false
        left -= size
        return true
      }
    }
  }
}

function point(session: string, name: string): number {
  return Number.parseInt(hash('sha256', `${session}/${name}`, 'hex').slice(0, 8), 16)
}
