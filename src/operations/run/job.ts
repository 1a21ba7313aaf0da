import { ConfigError, UsageError } from '../../model/errors.js'
import type { ConfiguredStep } from '../../settings/job-settings.js'
import { nearestName } from '../../settings/nearest.js'

/** What a job can be made of, each with words for it. Each store goes through all steps before the next store begins. */
export const stepTexts = {
  'recover': 'finish or roll back what interrupted runs left',
  'verify-quick': 'check metadata, and seal what is new',
  'verify': 'check every byte, or one of so many buckets a day, and seal what is new',
  'cap': 'remove backups that no checkpoint within the cap needs',
  'expire': 'remove sessions older than their retention period',
  'empty-trash': 'remove for good what has waited in the trash for longer than the grace period',
  'status': 'count sessions, checkpoints, backups and bytes',
  'next-night': 'say what cap, expire and the trash would remove now',
} as const

export type StepName = keyof typeof stepTexts

export const stepNames = Object.keys(stepTexts) as readonly StepName[]

/** When a step is carried out; without a condition always. */
export const conditionTexts = {
  'no-errors-found': 'an earlier verify step of this run found no error in the store',
  'no-step-failed': 'no earlier step of this run failed on the store',
} as const

export type Condition = keyof typeof conditionTexts

const conditionNames = Object.keys(conditionTexts) as readonly Condition[]

/** One step of a job, with what must be so that it is carried out. A step whose conditions do not hold is left out, and said so. */
export interface JobStep {
  readonly step: StepName
  readonly when?: Condition
  /** Only when this job last did this step on the store so many milliseconds ago, or never. */
  readonly everyMs?: number
  /** Of `verify`: read one of so many buckets of the backups, the next one every day. */
  readonly buckets?: number
}

/** A scheduled piece of work: its steps in order. A step that fails does not stop the next ones unless they rest on it. */
export interface Job {
  readonly name: string
  readonly describe: string
  readonly steps: readonly JobStep[]
}

const removing: readonly StepName[] = ['cap', 'expire', 'empty-trash']

/** True for the steps that a failure of an earlier run holds back. */
export function isRemoving(step: StepName): boolean {
  return removing.includes(step)
}

/**
 * The jobs of the program and those of the configuration. Throws `ConfigError` naming the job, with the nearest name, when a step
 * or a condition is unknown or makes no sense where it stands, or when a job has the name of one of the program's.
 */
export function allJobs(own: readonly Job[], configured: Readonly<Record<string, readonly ConfiguredStep[]>>): Job[] {
  return [...own, ...Object.entries(configured).map(([name, steps]) => configuredJob(name, steps, own))]
}

/** The job with this name. Throws `UsageError` when there is none, and what `allJobs` throws. */
export function findJob(name: string, own: readonly Job[], configured: Readonly<Record<string, readonly ConfiguredStep[]>>): Job {
  const all = allJobs(own, configured)
  const found = all.find((job) => job.name === name)
  if (found !== undefined) return found
  throw new UsageError(`there is no job called ${name}`, { hint: `jobs: ${all.map((job) => job.name).join(', ')}` })
}

function configuredJob(name: string, configured: readonly ConfiguredStep[], own: readonly Job[]): Job {
  if (own.some((job) => job.name === name)) {
    throw new ConfigError(`job ${name}: the program has a job of that name`, { hint: 'give yours another name' })
  }
  const steps = configured.map(({ step, when, everyMs, buckets }): JobStep => ({
    step: known(name, 'step', step, stepNames),
    ...(when === undefined ? {} : { when: known(name, 'condition', when, conditionNames) }),
    ...(everyMs === undefined ? {} : { everyMs }),
    ...(buckets === undefined ? {} : { buckets }),
  }))
  const problem = problemOf(steps)
  if (problem !== undefined) throw new ConfigError(`job ${name} ${problem.what}`, { hint: problem.hint })
  return { name, describe: 'a job of the configuration', steps }
}

function known<T extends string>(job: string, kind: string, word: string, names: readonly T[]): T {
  const found = names.find((name) => name === word)
  if (found !== undefined) return found
  const nearest = nearestName(word, names)
  throw new ConfigError(`job ${job}: there is no ${kind} called ${word}${nearest === undefined ? '' : `; did you mean ${nearest}?`}`, { hint: `${kind}s: ${names.join(', ')}` })
}

function problemOf(steps: readonly JobStep[]): { readonly what: string; readonly hint: string } | undefined {
  const removes = steps.some(({ step }) => step === 'cap' || step === 'expire')
  const [first] = steps
  const settled = first?.step === 'recover' && first.when === undefined && first.everyMs === undefined
  if (removes && !settled) {
    return { what: 'removes, so its first step must be recover, without a condition', hint: 'what an interrupted run left must be settled first' }
  }
  if (steps.some(({ step, buckets }) => buckets !== undefined && step !== 'verify')) {
    return { what: 'has a step with buckets that is not verify', hint: 'only verify reads the backups in buckets' }
  }
  const unchecked = steps.some(({ when }, at) => when === 'no-errors-found' && !steps.slice(0, at).some(({ step }) => step.startsWith('verify')))
  if (unchecked) return { what: 'has a step with the condition no-errors-found and no verify step before it', hint: 'put verify or verify-quick before that step' }
  return undefined
}
