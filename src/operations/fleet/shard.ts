import { hash } from 'node:crypto'
import { UsageError } from '../../model/errors.js'

/** Part `number`, from 1, of `of` parts. */
export interface Shard {
  readonly number: number
  readonly of: number
}

/**
 * The part of a fleet that this run looks after: `i/n` with i from 1; `n` alone takes the place from `JOB_COMPLETION_INDEX` (from 0, as
 * an indexed Job of Kubernetes sets it); nothing given takes both from `JOB_COMPLETION_INDEX` and `JOB_COMPLETION_COUNT`.
 * `undefined` when nothing says anything: then all of it. Throws `UsageError`.
 */
export function shardOf(given: string | undefined, env: Readonly<Record<string, string | undefined>>): Shard | undefined {
  const pair = given === undefined ? null : /^([0-9]+)\/([0-9]+)$/.exec(given)
  if (pair !== null) return checked(Number(pair[1]), Number(pair[2]), `--shard ${given ?? ''}`)
  const index = env.JOB_COMPLETION_INDEX
  const from = index === undefined || index === '' ? undefined : wholeNumber(index, 'JOB_COMPLETION_INDEX')
  if (given !== undefined) {
    if (!/^[0-9]+$/.test(given)) throw new UsageError(`--shard ${given}: give i/n, or n where JOB_COMPLETION_INDEX is set`)
    if (from === undefined) throw new UsageError(`--shard ${given}: JOB_COMPLETION_INDEX is not set`, { hint: 'give --shard i/n' })
    return checked(from + 1, Number(given), `--shard ${given} with JOB_COMPLETION_INDEX=${index ?? ''}`)
  }
  if (from === undefined) return undefined
  const count = env.JOB_COMPLETION_COUNT
  if (count === undefined || count === '') {
    throw new UsageError('JOB_COMPLETION_INDEX is set, but nothing says how many parts there are', { hint: 'give --shard n, or set JOB_COMPLETION_COUNT' })
  }
  return checked(from + 1, wholeNumber(count, 'JOB_COMPLETION_COUNT'), `JOB_COMPLETION_INDEX=${index ?? ''} with JOB_COMPLETION_COUNT=${count}`)
}

/** Whether a root belongs to a part. It depends on its path alone, so what is added or removed elsewhere moves nothing. */
export function isInShard(root: string, shard: Shard | undefined): boolean {
  return shard === undefined || Number.parseInt(hash('sha256', root, 'hex').slice(0, 12), 16) % shard.of === shard.number - 1
}

function checked(number: number, of: number, words: string): Shard {
  if (Number.isSafeInteger(of) && number >= 1 && number <= of) return { number, of }
  throw new UsageError(`${words}: the part must be from 1 to the number of parts`)
}

function wholeNumber(text: string, name: string): number {
  if (/^[0-9]+$/.test(text)) return Number(text)
  throw new UsageError(`${name} must be a whole number, not ${text}`)
}
